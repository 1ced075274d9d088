"""A retention whose end has come still stands in a HEAD, and holds nothing: a denial is for another reason then."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.outcome import FailureClass, Outcome
from tests.factories import facts
from tests.fakes import fake_gateway, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

UTC = timezone.utc
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ENDED, GOING_ON = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)
HEADERS = {"ResponseMetadata": {"HTTPHeaders": {"date": "Mon, 01 Jun 2026 12:00:00 GMT"}}}
LOCKED = facts(version_id="v1")


def denied(**arguments: Any) -> Any:
    errors = [one | {"Code": "AccessDenied"} for one in arguments["Delete"]["Objects"]]
    return {"Errors": errors, "ResponseMetadata": {"HTTPStatusCode": 200}}


def shown(**lock: Any) -> Callable[..., Any]:
    return lambda **_: HEADERS | lock


def refuse(**_: Any) -> Any:
    raise refusal("AccessDenied", 403)


def told(until: datetime | None, mode: str, *, is_held: bool, by: str) -> Outcome:
    """What becomes of a version that is denied, with its lock told by a HEAD, or by its two questions."""
    status = "ON" if is_held else "OFF"
    calls: dict[str, Any] = {"get_object_retention": refuse, "get_object_legal_hold": refuse}
    if by == "head":
        seen = {
            "ObjectLockMode": mode,
            "ObjectLockRetainUntilDate": until,
            "ObjectLockLegalHoldStatus": status,
        }
        calls["head_object"] = shown(**seen)
    else:
        calls = {
            "head_object": shown(),
            "get_object_retention": shown(Retention={"Mode": mode, "RetainUntilDate": until}),
            "get_object_legal_hold": shown(LegalHold={"Status": status}),
        }
    (outcome,) = fake_gateway(delete_objects=denied, **calls).delete_chunk([LOCKED])
    return outcome


@pytest.mark.parametrize("by", ["head", "questions"])
@pytest.mark.parametrize("mode", ["GOVERNANCE", "COMPLIANCE"])
class TestARetention:
    def test_that_has_ended_leaves_a_denial_to_be_a_matter_of_permission(self, mode: str, by: str) -> None:
        for until in (ENDED, NOW):
            outcome = told(until, mode, is_held=False, by=by)
            assert (outcome.kind, outcome.not_before) == (FailureClass.PERMISSION, None)

    def test_that_goes_on_is_a_lock_until_its_end(self, mode: str, by: str) -> None:
        outcome = told(GOING_ON, mode, is_held=False, by=by)
        assert (outcome.kind, outcome.not_before) == (FailureClass.LOCKED, GOING_ON)

    def test_that_has_ended_under_a_legal_hold_is_a_lock_without_an_end(self, mode: str, by: str) -> None:
        outcome = told(ENDED, mode, is_held=True, by=by)
        assert (outcome.kind, outcome.not_before) == (FailureClass.LOCKED, None)
        assert outcome.message == "the version is under a legal hold, which has no end"
