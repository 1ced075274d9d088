"""Limits of a plan, and what a run does with one beyond them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from s3_retention.core.approval import (
    Approval,
    DealAction,
    Decision,
    OverLimit,
    PlanSummary,
    decide_deal,
    over_limits,
    plan_rejected,
    plan_waits,
    write_question,
)
from s3_retention.core.policy import Limits

ASKED_AT = datetime(2026, 6, 1, tzinfo=timezone.utc)
OVER = (OverLimit("max_objects", 12_000, 10_000),)


def over(
    limits: dict[str, Any],
    *,
    scanned: int = 100,
    due: int = 50,
    size: int = 1_000,
    of_tenant: float | None = 0.75,
) -> list[str]:
    found = over_limits(
        Limits(**limits),
        num_scanned=scanned,
        num_discovered=due,
        num_bytes=size,
        largest_tenant_share=of_tenant,
    )
    return [one.limit for one in found]


def approval(decision: Decision | None = None) -> Approval:
    return Approval("ab" * 32, OVER, ASKED_AT, decision, "ann" if decision else None)


def test_without_limits_no_plan_is_over_one() -> None:
    assert over({}, scanned=10, due=10, size=10**15) == []


@pytest.mark.parametrize(
    ("limits", "exceeded"),
    [
        ({"max_objects": 50}, []),
        ({"max_objects": 49}, ["max_objects"]),
        ({"max_objects": 0}, ["max_objects"]),
        ({"max_bytes": 1_000}, []),
        ({"max_bytes": 999}, ["max_bytes"]),
        ({"max_share": 0.5}, []),
        ({"max_share": 0.49}, ["max_share"]),
        ({"max_tenant_share": 0.75}, []),
        ({"max_tenant_share": 0.74}, ["max_tenant_share"]),
        ({"max_objects": 1, "max_bytes": 1, "max_share": 0.1}, ["max_objects", "max_bytes", "max_share"]),
    ],
)
def test_a_plan_is_over_a_limit_beyond_it_and_not_at_it(limits: dict[str, Any], exceeded: list[str]) -> None:
    assert over(limits) == exceeded


def test_a_scan_that_saw_nothing_is_over_no_share() -> None:
    assert over({"max_share": 0.1}, scanned=0, due=0) == []
    assert over({"max_tenant_share": 0.1}, of_tenant=None) == []


def test_the_share_of_a_tenant_is_said_apart_from_that_of_the_scan() -> None:
    said = str(OverLimit("max_tenant_share", 0.6251, 0.5))
    assert said == "62.5% of a tenant's objects, over limits.max_tenant_share = 0.5"


@pytest.mark.parametrize(
    ("asked", "exceeded", "was_dealt", "action"),
    [
        (None, (), False, DealAction.DEAL),
        (None, OVER, False, DealAction.ASK),
        (None, OVER, True, DealAction.DEAL),
        (approval(), OVER, False, DealAction.WAIT),
        (approval(), (), False, DealAction.WAIT),
        (approval(), (), True, DealAction.WAIT),
        (approval(Decision.APPROVED), OVER, False, DealAction.DEAL),
        (approval(Decision.REJECTED), (), True, DealAction.CLOSE),
        (approval(Decision.TIMED_OUT), OVER, False, DealAction.CLOSE),
    ],
)
def test_a_plan_is_dealt_where_it_is_small_or_approved_and_a_question_stays_until_it_is_answered(
    asked: Approval | None, exceeded: tuple[OverLimit, ...], was_dealt: bool, action: DealAction
) -> None:
    assert decide_deal(asked, exceeded, was_dealt=was_dealt) is action


def test_a_question_says_what_would_go_and_which_limit_it_is_over() -> None:
    plan = PlanSummary(
        "digests", "cleanup:digests:a:b", 100_000, 12_000, 34_567, 7, {"not_due": 88_000}, ["k"]
    )
    body = write_question(plan, approval())
    for said in (
        "12,000 objects, over limits.max_objects = 10,000",
        "**12,000 objects** (34,567 bytes), 12.0% of the 100,000",
        "7 of them were due before",
        "88,000 not_due",
        '    "k"',
        "abab",
    ):
        assert said in body


def test_no_key_can_pass_for_the_text_of_a_question() -> None:
    keys = ["a\n\n**Approve** this", "```\n# x", "<script>", "x" * 5_000]
    body = write_question(PlanSummary("p", "i", 1, 1, 1, 0, {}, keys), approval())
    shown = [
        line for line in body.splitlines() if "script" in line or "xxx" in line or "Approve** this" in line
    ]
    assert all(line.startswith('    "') for line in shown)
    assert len(body) < 2_000


def test_a_share_is_said_in_percent() -> None:
    assert (
        str(OverLimit("max_share", 0.6251, 0.5)) == "62.5% of what the scan saw, over limits.max_share = 0.5"
    )


def test_the_findings_say_who_decided_what_and_for_how_long_a_plan_waits() -> None:
    facts = {
        "policy": "digests",
        "interval_key": "cleanup:digests:a:b",
        "num_discovered": 1,
        "dag_id": "d",
        "run_id": "r",
        "asked_at": ASKED_AT,
        "decided_at": ASKED_AT,
        "decided_by": "ann",
        "decision": "rejected",
    }
    waits = plan_waits(facts, now=ASKED_AT + timedelta(hours=2)).detail
    assert "(1 object) has waited 2h for approval" in waits["message"]
    assert "was rejected by ann" in plan_rejected(facts).detail["message"]
    assert (
        "timed out" in plan_rejected(facts | {"decision": "timed_out", "decided_by": None}).detail["message"]
    )
