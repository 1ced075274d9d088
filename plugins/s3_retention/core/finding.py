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

    from s3_retention.core.capacity import Capacity

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


WARN_AT = 0.8
"""The share of an age limit at which the watch warns, before anything is over it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: at most one is open for each policy, kind and subject. ``detail`` holds plain JSON values."""

    policy: str
    kind: FindingKind
    detail: Mapping[str, Any]
    subject: str = ""


def missed_intervals(facts: Facts) -> Finding:
    """Missed ticks whose time no later run has covered yet."""
    count, causes = facts["num_missed"], ", ".join(facts["causes"])
    return _finding(
        facts,
        FindingKind.MISSED_INTERVALS,
        f"{_count(count, 'tick')} did not run ({causes}), the oldest at {facts['oldest_at'].isoformat()}, and no "
        "later run has covered the time yet",
        num_missed=count,
        oldest_at=facts["oldest_at"].isoformat(),
        newest_at=facts["newest_at"].isoformat(),
        causes=list(facts["causes"]),
    )


def ticks_unknown(policy: str, timetable: str) -> Finding:
    """Ticks that nobody can enumerate, so that missed ones are not noticed."""
    return _finding(
        {"policy": policy},
        FindingKind.TICKS_UNKNOWN,
        f"the ticks of {timetable!r} cannot be told, so that missed ones go unnoticed: see the log of the watch",
        timetable=timetable,
    )


def watermark_age(facts: Facts, *, max_age: timedelta | None, now: datetime) -> Finding | None:
    """A watermark that is older than it may be; None where it is young enough, or where there is no limit.

    A policy cannot be behind for longer than since its first claim, however far back that one reached.
    """
    since = max(filter(None, (facts["completed_through"], facts["first_claimed_at"])))
    age = now - since
    if max_age is None or age <= max_age:
        return None
    return _finding(
        facts,
        FindingKind.WATERMARK_AGE,
        f"everything due before {facts['completed_through'].isoformat()} has ended, and nothing since then: "
        f"behind for {_age(age)}, and {format_duration(max_age)} is the limit",
        completed_through=facts["completed_through"].isoformat(),
        age=_age(age),
        max_age=format_duration(max_age),
    )


def quarantine_open(facts: Facts, *, now: datetime) -> Finding:
    """Commands that wait in quarantine, one finding for each failure class."""
    count, age = facts["num_commands"], _age(now - facts["oldest_at"])
    failure_class = facts["failure_class"]
    return _finding(
        facts,
        FindingKind.QUARANTINE_OPEN,
        f"{_count(count, 'command')} of class {failure_class} in quarantine, the oldest for {age}",
        failure_class,
        num_commands=count,
        oldest_at=facts["oldest_at"].isoformat(),
        oldest_age=age,
    )


def stragglers(facts: Facts) -> Finding:
    """Objects that the last interval found although they were due before it."""
    count = facts["num_stragglers"]
    return _finding(
        facts,
        FindingKind.STRAGGLERS,
        f"{_count(count, 'object')} of interval {facts['interval_key']} had been due before it: still present after "
        "the deadline",
        num_stragglers=count,
        interval_key=facts["interval_key"],
    )


def interval_stuck(facts: Facts, *, now: datetime) -> Finding:
    """An interval whose scan has begun and that nobody holds."""
    age = _age(now - facts["first_claimed_at"])
    return _finding(
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
    return _finding(
        facts,
        FindingKind.BATCHES_STOPPED,
        f"{_count(facts['num_batches'], 'batch', 'batches')} stopped by {stopped_class} ({facts['message']}): the "
        "rest waits for the next run",
        stopped_class,
        num_batches=facts["num_batches"],
        num_commands=int(facts["num_commands"]),
        stopped_message=facts["message"],
    )


def falling_behind(policy: str, capacity: Capacity) -> Finding | None:
    """A policy that cannot keep up: None where it can."""
    if not capacity.is_falling_behind:
        return None
    return _finding(
        {"policy": policy},
        FindingKind.FALLING_BEHIND,
        str(capacity),
        age=_age(capacity.age),
        growth_per_run=_age(capacity.growth),
        num_arriving_per_run=None if capacity.num_arriving is None else round(capacity.num_arriving),
        num_drained_per_run=round(capacity.num_drained),
    )


def oldest_unclaimed(facts: Facts, *, max_age: timedelta | None, now: datetime) -> Finding | None:
    """An object that the last scan saw, and that has been due for too long without an interval; else None."""
    due_at = facts["next_due_at"]
    if due_at is None or max_age is None or now - due_at <= max_age:
        return None
    return _finding(
        facts,
        FindingKind.OLDEST_UNCLAIMED,
        f"the oldest unclaimed object has been due for {round_duration(now - due_at)}, and "
        f"{format_duration(max_age)} is the limit",
        due_at=due_at.isoformat(),
        age=_age(now - due_at),
        max_age=format_duration(max_age),
    )


def age_limit(facts: Facts, where: str, *, limit: timedelta, now: datetime) -> Finding:
    """Commands near or over the age limit of their policy; ``where`` is ``commands`` or ``quarantine``."""
    age, count = now - facts["oldest_at"], int(facts["num_commands"])
    waiting = "in quarantine" if where == "quarantine" else "planned and not ended"
    over = "over the limit of" if age > limit else "near the limit of"
    return _finding(
        facts,
        FindingKind.AGE_LIMIT,
        f"{_count(count, 'command')} {waiting}, the oldest for {round_duration(age)}, {over} "
        f"{format_duration(limit)}; nothing is dropped",
        where,
        num_commands=count,
        oldest_at=facts["oldest_at"].isoformat(),
        age=_age(age),
        limit=format_duration(limit),
    )


def late_run(facts: Facts, *, safety_delay: timedelta) -> Finding | None:
    """A run that has not ended by its deadline, or that was told as late since the last pass; else None.

    One that died counts as ended when a later run has covered its time.
    """
    through = facts["completed_through"]
    is_covered = through is not None and through >= facts["due_at"] - safety_delay
    if not facts["is_new"] and is_covered:
        return None
    ended = (
        "has not reported" if facts["ended_at"] is None else f"reported at {facts['ended_at'].isoformat()}"
    )
    return _finding(
        facts,
        FindingKind.LATE_RUN,
        f"run {facts['run_id']} is late: at its deadline, {facts['deadline_at'].isoformat()}, it was "
        f"{facts['state']}; it {ended}",
        facts["run_id"],
        run_id=facts["run_id"],
        due_at=facts["due_at"].isoformat(),
        deadline_at=facts["deadline_at"].isoformat(),
        state=facts["state"],
    )


def no_policy_file(facts: Facts) -> Finding:
    """Commands that wait, of a policy whose file is gone or broken: no run can end them."""
    return _finding(
        facts,
        FindingKind.NO_POLICY_FILE,
        f"{_count(int(facts['num_commands']), 'command')} in {_count(facts['num_batches'], 'batch', 'batches')} "
        "planned and not ended, and there is no policy file by which a run could end them",
        num_commands=int(facts["num_commands"]),
        num_batches=facts["num_batches"],
    )


def replay_unfinished(facts: Facts, *, now: datetime) -> Finding:
    """A replay that nobody holds any more."""
    count, age = int(facts["num_commands"]), round_duration(now - facts["first_claimed_at"])
    return _finding(
        facts,
        FindingKind.REPLAY_UNFINISHED,
        f"the replay of {facts['interval_key']} was begun {age} ago and is not ended, and nobody holds it: "
        f"{_count(count, 'command')} wait; replay the same interval again, which resumes it",
        f"{facts['interval_id']}/{facts['generation']}",
        interval_key=facts["interval_key"],
        generation=facts["generation"],
        num_commands=count,
        claimed_by=facts["claimed_by"],
    )


def _finding(facts: Facts, kind: FindingKind, message: str, subject: str = "", **detail: Any) -> Finding:
    policy = facts["policy"]
    return Finding(policy, kind, {"message": f"policy {policy}: {message}", **detail}, subject)


def _count(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _age(age: timedelta) -> str:
    return format_duration(timedelta(seconds=max(0, int(age.total_seconds()))))
