"""The form of the hold DAG: what it takes, and how it says what it does not."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from s3_retention.core.lever import (
    LiftHold,
    PauseTenant,
    PlaceHold,
    ResumeDeletes,
    ResumeTenant,
    Scope,
    StopDeletes,
    parse_lever,
)
from s3_retention.errors import LeverError

PLACE = {"action": "place", "reason": " a court order ", "bucket": "a-bucket", "scope": "key", "name": "k"}
LIFT = {"action": "lift", "reason": "over", "scope": "key", "hold_id": 7}
STOP = {"action": "stop", "reason": "look first", "scope": "key"}
PAUSE = {"action": "pause_tenant", "reason": " they move out ", "scope": "key", "tenant": " a/\u00e9 "}


def test_a_hold_is_read_with_its_key_byte_for_byte() -> None:
    form = PLACE | {"name": " a%20b/\u00e9 ", "ends_at": "2027-01-31T00:00:00Z"}
    ends_at = datetime(2027, 1, 31, tzinfo=timezone.utc)
    assert parse_lever(form) == PlaceHold("a-bucket", Scope.KEY, " a%20b/\u00e9 ", "a court order", ends_at)


def test_a_whole_bucket_has_no_name() -> None:
    form = PLACE | {"scope": "bucket", "name": None}
    assert parse_lever(form) == PlaceHold("a-bucket", Scope.BUCKET, "", "a court order", None)


def test_the_others_are_read_with_what_belongs_to_them() -> None:
    assert parse_lever(LIFT) == LiftHold(7, "over")
    assert parse_lever(STOP) == StopDeletes(None, "look first")
    assert parse_lever(STOP | {"policy": "digests"}) == StopDeletes("digests", "look first")
    assert parse_lever(STOP | {"action": "resume"}) == ResumeDeletes(None, "look first")


def test_a_tenant_is_read_byte_for_byte() -> None:
    assert parse_lever(PAUSE) == PauseTenant(None, " a/\u00e9 ", "they move out")
    resume = PAUSE | {"action": "resume_tenant", "policy": "digests", "name": ""}
    assert parse_lever(resume) == ResumeTenant("digests", " a/\u00e9 ", "they move out")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "action = None: it is one of place, lift, stop, resume, pause_tenant, resume_tenant"),
        (PLACE | {"action": "drop"}, "action = 'drop': it is one of"),
        (PLACE | {"reason": "  "}, "reason is empty"),
        (PLACE | {"reason": None}, "reason is empty"),
        (PLACE | {"bucket": None}, "bucket = None: "),
        (PLACE | {"bucket": "s3://a-bucket"}, "bucket = 's3://a-bucket': "),
        (PLACE | {"scope": "tenant"}, "scope = 'tenant': it is one of key, prefix, bucket"),
        (PLACE | {"name": ""}, "name is empty: write the key"),
        (PLACE | {"scope": "prefix", "name": None}, "name is empty: write the prefix"),
        (PLACE | {"scope": "bucket"}, "name = 'k': a hold on the whole bucket has none"),
        (PLACE | {"name": "x" * 1025}, "at most 1024 bytes"),
        (PLACE | {"name": "\u00e9" * 513}, "at most 1024 bytes"),
        (PLACE | {"name": "a\0b"}, "none of them is zero"),
        (PLACE | {"name": 5}, "name = 5: write the key or the prefix as text"),
        (PLACE | {"ends_at": "tomorrow"}, "ends_at = 'tomorrow': write a time with its zone"),
        (PLACE | {"ends_at": "2027-01-31T00:00:00"}, "write a time with its zone"),
        (PLACE | {"hold_id": 7}, "hold_id are not for action = place: leave them empty"),
        (PLACE | {"hold_id": 7, "policy": "p"}, "hold_id and policy are not for action = place"),
        (LIFT | {"hold_id": None}, "hold_id = None: write the number of the hold"),
        (LIFT | {"hold_id": 0}, "hold_id = 0: write the number"),
        (LIFT | {"hold_id": True}, "hold_id = True: write the number"),
        (LIFT | {"bucket": "a-bucket"}, "bucket are not for action = lift"),
        (STOP | {"policy": "No!"}, "policy = 'No!': "),
        (STOP | {"name": "k"}, "name are not for action = stop"),
        (STOP | {"tenant": "acme"}, "tenant are not for action = stop"),
        (PLACE | {"tenant": "acme"}, "tenant are not for action = place"),
        (PAUSE | {"tenant": None}, "tenant = None: write the tenant as the policy reads it"),
        (PAUSE | {"tenant": ""}, "tenant = '': write the tenant"),
        (PAUSE | {"tenant": 5}, "tenant = 5: write the tenant"),
        (PAUSE | {"tenant": "a\0b"}, "has a NUL or a lone surrogate"),
        (PAUSE | {"tenant": "a\ud800"}, "has a NUL or a lone surrogate"),
        (PAUSE | {"tenant": "\u00e9" * 513}, "has at most 1024 bytes"),
        (PAUSE | {"policy": "No!"}, "policy = 'No!': "),
        (PAUSE | {"hold_id": 7}, "hold_id are not for action = pause_tenant"),
        (PAUSE | {"action": "resume_tenant", "tenant": None}, "tenant = None: write the tenant"),
    ],
)
def test_what_cannot_be_done_is_refused_with_field_value_and_fix(form: dict[str, Any], said: str) -> None:
    with pytest.raises(LeverError) as error:
        parse_lever(form)
    assert said in str(error.value)
