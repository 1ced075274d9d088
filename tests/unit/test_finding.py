"""Findings: what each says, and when there is one."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core import finding, lateness
from s3_retention.core.capacity import Capacity

if TYPE_CHECKING:
    from s3_retention.core.finding import Finding

UTC = timezone.utc
NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def test_a_watermark_is_found_when_it_is_older_than_it_may_be_and_not_before() -> None:
    facts = {"policy": "p", "completed_through": NOW - DAY, "first_claimed_at": NOW - 9 * DAY}
    assert lateness.watermark_age(facts, max_age=DAY, now=NOW) is None
    assert lateness.watermark_age(facts, max_age=None, now=NOW) is None
    found = lateness.watermark_age(facts, max_age=DAY, now=NOW + timedelta(seconds=61))
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
    assert lateness.watermark_age(facts, max_age=DAY, now=NOW) is None
    assert lateness.watermark_age(facts, max_age=timedelta(minutes=59), now=NOW) is not None
    never = facts | {"first_claimed_at": None}
    assert lateness.watermark_age(never, max_age=DAY, now=NOW) is not None


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
    "near the age limit": (
        lateness.age_limit(
            {"policy": "p", "num_commands": 3, "oldest_at": NOW - timedelta(days=12)},
            "quarantine",
            limit=14 * DAY,
            now=NOW,
        ),
        "quarantine",
        "3 commands in quarantine, the oldest for 12 d, near the limit of 14d; nothing is dropped",
    ),
    "over the age limit": (
        lateness.age_limit(
            {"policy": "p", "num_commands": 1, "oldest_at": NOW - timedelta(days=14, hours=4)},
            "commands",
            limit=14 * DAY,
            now=NOW,
        ),
        "commands",
        "1 command in open batches, the oldest for 14 d 4 h, over the limit of 14d; nothing is dropped",
    ),
    "no policy file": (
        finding.no_policy_file({"policy": "p", "num_commands": 1200, "num_batches": 1}),
        "",
        ("1 open batch of 1,200 commands, and there is no policy file by which a run could end them"),
    ),
    "replay": (
        finding.replay_unfinished(
            {
                "policy": "p",
                "interval_id": 7,
                "generation": 2,
                "interval_key": "k",
                "claimed_by": "d/r",
                "first_claimed_at": NOW - DAY,
                "num_commands": 9,
            },
            now=NOW,
        ),
        "7/2",
        (
            "the replay of k was begun 1 d ago and is not ended, and nobody holds it: its open batches hold 9 "
            "commands; replay the same interval again, which resumes it"
        ),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_finding_says_itself_in_one_sentence_and_holds_plain_values(name: str) -> None:
    found, subject, message = FOUND[name]
    assert found.subject == subject
    detail: dict[str, Any] = json.loads(json.dumps(dict(found.detail)))
    assert detail["message"] == f"policy p: {message}"


def test_an_object_that_is_due_for_too_long_without_an_interval_is_found() -> None:
    facts = {"policy": "p", "next_due_at": NOW - DAY}
    assert lateness.oldest_unclaimed(facts, max_age=DAY, now=NOW) is None
    assert lateness.oldest_unclaimed(facts, max_age=None, now=NOW + 9 * DAY) is None
    assert lateness.oldest_unclaimed({"policy": "p", "next_due_at": None}, max_age=DAY, now=NOW) is None
    found = lateness.oldest_unclaimed(facts, max_age=DAY, now=NOW + timedelta(hours=3, minutes=12))
    assert found is not None
    assert found.detail["message"] == (
        "policy p: the oldest unclaimed object has been due for 1 d 3 h, and 1d is the limit"
    )


@pytest.mark.parametrize("ended_at", [None, NOW])
def test_a_late_run_says_how_it_stood_at_its_deadline_and_whether_it_has_reported(
    ended_at: datetime | None,
) -> None:
    facts = {"policy": "p", "run_id": "r", "due_at": NOW - DAY, "deadline_at": NOW, "state": "running"}
    found = lateness.late_run(facts | {"ended_at": ended_at})
    assert found.subject == "r"
    ended = "has not reported" if ended_at is None else "reported at 2026-06-10T12:00:00+00:00"
    assert found.detail["message"] == (
        f"policy p: run r is late: at its deadline, 2026-06-10T12:00:00+00:00, it was running; it {ended}"
    )


def test_only_a_policy_that_falls_behind_is_found() -> None:
    slow = Capacity(timedelta(minutes=192), timedelta(minutes=4), 120.4, 100.2, is_falling_behind=True)
    found = lateness.falling_behind("p", slow)
    assert found is not None
    assert found.detail == {
        "message": "policy p: falling behind: oldest unclaimed object is 3 h 12 min old and grows by 4 min per run; "
        "120 commands fall due per run and 100 are drained",
        "age": "3h12m",
        "growth_per_run": "4m",
        "num_arriving_per_run": 120,
        "num_drained_per_run": 100,
    }
    assert lateness.falling_behind("p", replace(slow, is_falling_behind=False)) is None
