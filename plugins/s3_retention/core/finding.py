"""Findings: what a person should know, decided from what the ledger holds. Each says itself in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from s3_retention.core.durations import format_duration, round_duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Facts = dict[str, Any]
"""One row of the ledger's answer; its columns are those of the query."""


class FindingKind(str, Enum):
    """What can be found. What each means, and what to do, stands in docs/runbook.md."""

    MISSED_INTERVALS = "missed_intervals"
    TICKS_UNKNOWN = "ticks_unknown"
    WATERMARK_AGE = "watermark_age"
    QUARANTINE_OPEN = "quarantine_open"
    STRAGGLERS = "stragglers"
    INTERVAL_STUCK = "interval_stuck"
    BATCHES_STOPPED = "batches_stopped"
    FALLING_BEHIND = "falling_behind"
    OLDEST_UNCLAIMED = "oldest_unclaimed"
    AGE_LIMIT = "age_limit"
    LATE_RUN = "late_run"
    NO_POLICY_FILE = "no_policy_file"
    REPLAY_UNFINISHED = "replay_unfinished"
    KILL_SWITCH = "kill_switch"
    TENANTS_PAUSED = "tenants_paused"
    PLAN_WAITS = "plan_waits"
    PLAN_REJECTED = "plan_rejected"
    ROWS_LEFT = "rows_left"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: at most one is open for each policy, kind and subject. ``detail`` holds plain JSON values."""

    policy: str | None
    kind: FindingKind
    detail: Mapping[str, Any]
    subject: str = ""


def missed_intervals(facts: Facts) -> Finding:
    """Missed ticks whose time no later run has covered yet."""
    count, causes = facts["num_missed"], ", ".join(facts["causes"])
    return make_finding(
        facts,
        FindingKind.MISSED_INTERVALS,
        f"{say_count(count, 'tick')} did not run ({causes}), the oldest at {facts['oldest_at'].isoformat()}, and no "
        "later run has covered the time yet",
        num_missed=count,
        oldest_at=facts["oldest_at"].isoformat(),
        newest_at=facts["newest_at"].isoformat(),
        causes=list(facts["causes"]),
    )


def ticks_unknown(policy: str, timetable: str) -> Finding:
    """Ticks that nobody can enumerate, so that missed ones are not noticed."""
    return make_finding(
        {"policy": policy},
        FindingKind.TICKS_UNKNOWN,
        f"the ticks of {timetable!r} cannot be told, so that missed ones go unnoticed: see the log of the watch",
        timetable=timetable,
    )


def quarantine_open(facts: Facts, *, now: datetime) -> Finding:
    """Commands that wait in quarantine, one finding for each failure class."""
    count, age = facts["num_commands"], say_age(now - facts["oldest_at"])
    failure_class = facts["failure_class"]
    return make_finding(
        facts,
        FindingKind.QUARANTINE_OPEN,
        f"{say_count(count, 'command')} of class {failure_class} in quarantine, the oldest for {age}",
        failure_class,
        num_commands=count,
        oldest_at=facts["oldest_at"].isoformat(),
        oldest_age=age,
    )


def stragglers(facts: Facts) -> Finding:
    """Objects that the last interval found although they were due before it."""
    count = facts["num_stragglers"]
    return make_finding(
        facts,
        FindingKind.STRAGGLERS,
        f"{say_count(count, 'object')} of interval {facts['interval_key']} had been due before it: still present after "
        "the deadline",
        num_stragglers=count,
        interval_key=facts["interval_key"],
    )


def interval_stuck(facts: Facts, *, now: datetime) -> Finding:
    """An interval whose scan has begun and that nobody holds."""
    age = say_age(now - facts["first_claimed_at"])
    return make_finding(
        facts,
        FindingKind.INTERVAL_STUCK,
        f"interval {facts['interval_key']} was first claimed {age} ago, has no plan, and nobody holds it; last "
        f"held by {facts['claimed_by']}",
        interval_id=facts["interval_id"],
        interval_key=facts["interval_key"],
        claimed_by=facts["claimed_by"],
        age=age,
    )


def batches_stopped(facts: Facts) -> Finding:
    """Batches that wait for the next run because the store, the identity or the policy is at fault."""
    stopped_class = facts["stopped_class"]
    return make_finding(
        facts,
        FindingKind.BATCHES_STOPPED,
        f"{say_count(facts['num_batches'], 'batch', 'batches')} stopped by {stopped_class} ({facts['message']}): the "
        "rest waits for the next run",
        stopped_class,
        num_batches=facts["num_batches"],
        num_commands=int(facts["num_commands"]),
        stopped_message=facts["message"],
    )


def rows_left(facts: Facts) -> Finding:
    """Rows that were attached while their object was being deleted, in the last days."""
    return make_finding(
        facts,
        FindingKind.ROWS_LEFT,
        f"{say_count(facts['num_rows'], 'row')} named objects when they were being deleted, and name them still; the "
        f"last at {facts['newest_at'].isoformat()}: row {facts['row_id']}",
        num_rows=facts["num_rows"],
        newest_at=facts["newest_at"].isoformat(),
        row_id=facts["row_id"],
    )


def no_policy_file(facts: Facts) -> Finding:
    """Commands that wait, of a policy whose file is gone or broken: no run can end them."""
    return make_finding(
        facts,
        FindingKind.NO_POLICY_FILE,
        f"{say_count(facts['num_batches'], 'open batch', 'open batches')} of "
        f"{say_count(int(facts['num_commands']), 'command')}, and there is no policy file by which a run could end "
        "them",
        num_commands=int(facts["num_commands"]),
        num_batches=facts["num_batches"],
    )


def replay_unfinished(facts: Facts, *, now: datetime) -> Finding:
    """A replay that nobody holds any more."""
    count, age = int(facts["num_commands"]), round_duration(now - facts["first_claimed_at"])
    return make_finding(
        facts,
        FindingKind.REPLAY_UNFINISHED,
        f"the replay of {facts['interval_key']} was begun {age} ago and is not ended, and nobody holds it: "
        f"its open batches hold {say_count(count, 'command')}; replay the same interval again, which resumes it",
        f"{facts['interval_id']}/{facts['generation']}",
        interval_key=facts["interval_key"],
        generation=facts["generation"],
        num_commands=count,
        claimed_by=facts["claimed_by"],
    )


def kill_switch(facts: Facts, *, now: datetime) -> Finding:
    """A switch that is set: of one policy, or of all where it names none."""
    policy, age = facts["policy"], say_age(now - facts["set_at"])
    what = "every policy" if policy is None else f"policy {policy}"
    return Finding(
        policy,
        FindingKind.KILL_SWITCH,
        {
            "message": f"{what} deletes nothing: stopped {age} ago by {facts['set_by']} ({facts['reason']})",
            "set_by": facts["set_by"],
            "reason": facts["reason"],
            "age": age,
        },
    )


def tenants_paused(facts: Facts, *, now: datetime) -> Finding:
    """Tenants that are paused in one policy, or in all where it names none; the longest paused are named."""
    policy, count, age = facts["policy"], facts["num_tenants"], say_age(now - facts["oldest_at"])
    what = "every policy" if policy is None else f"policy {policy}"
    named = [f"{one['tenant']!r} by {one['paused_by']} ({one['reason']})" for one in facts["oldest"]]
    if count > len(named):
        named.append(f"and {count - len(named):,} more")
    return Finding(
        policy,
        FindingKind.TENANTS_PAUSED,
        {
            "message": f"{what} deletes nothing of {say_count(count, 'tenant')}, the longest paused for {age}: "
            + ", ".join(named),
            "num_tenants": count,
            "oldest_age": age,
            "tenants": facts["oldest"],
        },
    )


def make_finding(facts: Facts, kind: FindingKind, message: str, subject: str = "", **detail: Any) -> Finding:
    """Make a finding about the policy of these facts; ``detail`` holds plain JSON values besides the message."""
    policy = facts["policy"]
    return Finding(policy, kind, {"message": f"policy {policy}: {message}", **detail}, subject)


def say_count(count: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun: ``1 batch``, ``1,200 batches``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def say_age(age: timedelta) -> str:
    """Write an age in whole seconds, canonically."""
    return format_duration(timedelta(seconds=max(0, int(age.total_seconds()))))
