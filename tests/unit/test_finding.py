"""Findings: what each says, and when there is one."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core import finding

if TYPE_CHECKING:
    from s3_retention.core.finding import Finding

UTC = timezone.utc
NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def test_a_watermark_is_found_when_it_is_older_than_it_may_be_and_not_before() -> None:
    facts = {"policy": "p", "completed_through": NOW - DAY, "first_claimed_at": NOW - 9 * DAY}
    assert finding.watermark_age(facts, max_age=DAY, now=NOW) is None
    assert finding.watermark_age(facts, max_age=None, now=NOW) is None
    found = finding.watermark_age(facts, max_age=DAY, now=NOW + timedelta(seconds=61))
    assert found is not None
    assert found.detail["message"] == (
        "policy p: everything due before 2026-06-09T12:00:00+00:00 has ended, and nothing since then: "
        "behind for 1d1m1s, and 1d is the limit"
    )


def test_a_policy_is_not_behind_for_longer_than_since_its_first_claim() -> None:
    facts = {
        "policy": "p",
        "completed_through": datetime(1970, 1, 1, tzinfo=UTC),
        "first_claimed_at": NOW - timedelta(hours=1),
    }
    assert finding.watermark_age(facts, max_age=DAY, now=NOW) is None
    assert finding.watermark_age(facts, max_age=timedelta(minutes=59), now=NOW) is not None
    never = facts | {"first_claimed_at": None}
    assert finding.watermark_age(never, max_age=DAY, now=NOW) is not None


FOUND: dict[str, tuple[Finding, str, str]] = {
    "missed": (
        finding.missed_intervals(
            {"policy": "p", "num_missed": 2, "oldest_at": NOW, "newest_at": NOW, "causes": ["paused"]}
        ),
        "",
        (
            "2 ticks did not run (paused), the oldest at 2026-06-10T12:00:00+00:00, and no later run has covered "
            "the time yet"
        ),
    ),
    "unknown": (
        finding.ticks_unknown("p", "0 3 * * * UTC"),
        "",
        "the ticks of '0 3 * * * UTC' cannot be told, so that missed ones go unnoticed: see the log of the watch",
    ),
    "quarantine": (
        finding.quarantine_open(
            {"policy": "p", "failure_class": "permission", "num_commands": 1200, "oldest_at": NOW - DAY},
            now=NOW,
        ),
        "permission",
        "1,200 commands of class permission in quarantine, the oldest for 1d",
    ),
    "stragglers": (
        finding.stragglers({"policy": "p", "interval_key": "k", "num_stragglers": 1}),
        "",
        "1 object of interval k had been due before it: still present after the deadline",
    ),
    "stuck": (
        finding.interval_stuck(
            {
                "policy": "p",
                "interval_id": 7,
                "interval_key": "k",
                "claimed_by": "d/r",
                "first_claimed_at": NOW - DAY,
            },
            now=NOW,
        ),
        "",
        "interval k was first claimed 1d ago, has no plan, and nobody holds it; last held by d/r",
    ),
    "stopped": (
        finding.batches_stopped(
            {
                "policy": "p",
                "stopped_class": "auth",
                "num_batches": 2,
                "num_commands": 9,
                "message": "ExpiredToken",
            }
        ),
        "auth",
        "2 batches stopped by auth (ExpiredToken): the rest waits for the next run",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_finding_says_itself_in_one_sentence_and_holds_plain_values(name: str) -> None:
    found, subject, message = FOUND[name]
    assert found.subject == subject
    detail: dict[str, Any] = json.loads(json.dumps(dict(found.detail)))
    assert detail["message"] == f"policy p: {message}"
