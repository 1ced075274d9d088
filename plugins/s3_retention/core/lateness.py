"""Findings about what takes too long: watermarks, objects without an interval, commands without an end, late runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.durations import format_duration, round_duration
from s3_retention.core.finding import Facts, Finding, FindingKind, make_finding, say_age, say_count

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from s3_retention.core.capacity import Capacity

WARN_AT = 0.8
"""The share of an age limit at which the watch warns, before anything is over it."""


def behind_since(facts: Facts) -> datetime:
    """Since when a policy may be behind: not for longer than since its first claim, however far back that reached."""
    since: datetime = max(filter(None, (facts["completed_through"], facts["first_claimed_at"])))
    return since


def watermark_age(facts: Facts, *, max_age: timedelta | None, now: datetime) -> Finding | None:
    """A watermark that is older than it may be; None where it is young enough, or where there is no limit."""
    age = now - behind_since(facts)
    if max_age is None or age <= max_age:
        return None
    return make_finding(
        facts,
        FindingKind.WATERMARK_AGE,
        f"everything due before {facts['completed_through'].isoformat()} has ended, and nothing since then: "
        f"behind for {say_age(age)}, and {format_duration(max_age)} is the limit",
        completed_through=facts["completed_through"].isoformat(),
        age=say_age(age),
        max_age=format_duration(max_age),
    )


def falling_behind(policy: str, capacity: Capacity) -> Finding | None:
    """A policy that cannot keep up: None where it can."""
    if not capacity.is_falling_behind:
        return None
    return make_finding(
        {"policy": policy},
        FindingKind.FALLING_BEHIND,
        str(capacity),
        age=say_age(capacity.age),
        growth_per_run=say_age(capacity.growth),
        num_arriving_per_run=None if capacity.num_arriving is None else round(capacity.num_arriving),
        num_drained_per_run=round(capacity.num_drained),
    )


def oldest_unclaimed(facts: Facts, *, max_age: timedelta | None, now: datetime) -> Finding | None:
    """An object that the last scan saw, and that has been due for too long without an interval; else None."""
    due_at = facts["next_due_at"]
    if due_at is None or max_age is None or now - due_at <= max_age:
        return None
    return make_finding(
        facts,
        FindingKind.OLDEST_UNCLAIMED,
        f"the oldest unclaimed object has been due for {round_duration(now - due_at)}, and "
        f"{format_duration(max_age)} is the limit",
        due_at=due_at.isoformat(),
        age=say_age(now - due_at),
        max_age=format_duration(max_age),
    )


def age_limit(facts: Facts, where: str, *, limit: timedelta, now: datetime) -> Finding:
    """Commands near or over the age limit of their policy; ``where`` is ``commands`` or ``quarantine``."""
    age, count = now - facts["oldest_at"], int(facts["num_commands"])
    waiting = "in quarantine" if where == "quarantine" else "in open batches"
    over = "over the limit of" if age > limit else "near the limit of"
    return make_finding(
        facts,
        FindingKind.AGE_LIMIT,
        f"{say_count(count, 'command')} {waiting}, the oldest for {round_duration(age)}, {over} "
        f"{format_duration(limit)}; nothing is dropped",
        where,
        num_commands=count,
        oldest_at=facts["oldest_at"].isoformat(),
        age=say_age(age),
        limit=format_duration(limit),
    )


def late_run(facts: Facts) -> Finding:
    """A run that had not succeeded by its deadline, until it has reported or a later run has covered its time."""
    ended = (
        "has not reported" if facts["ended_at"] is None else f"reported at {facts['ended_at'].isoformat()}"
    )
    return make_finding(
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
