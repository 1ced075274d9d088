"""Ticks: the times at which a schedule should have run, and the small decision why one did not.

Enumerating them is ``runtime.ticks``, since only Airflow knows its timetables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum

from s3_retention.core.schedule import PRESETS

GRACE = timedelta(minutes=5)
"""How long the watch waits for a tick before it says that it did not run."""
HEARTBEAT = timedelta(minutes=10)
"""A scheduler that lives lets the watch, every five minutes, pass within this time of any tick."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One time at which a DAG should run, in UTC: ``run_after``, with its data interval."""

    due_at: datetime
    starts_at: datetime
    ends_at: datetime

    @classmethod
    def at(cls, moment: datetime) -> Tick:
        """Make the anchor of a series that has no tick yet."""
        return cls(moment, moment, moment)

    @property
    def run_id(self) -> str:
        """The id that Airflow gives to the scheduled run of this tick."""
        return f"scheduled__{self.due_at.astimezone(timezone.utc).isoformat()}"


TicksBetween = Callable[[Tick, datetime], Sequence[Tick] | None]
"""All ticks after the first argument and before the second, in order; None where nobody can tell."""


class Cause(str, Enum):
    """Why a tick did not run, as far as is known."""

    PAUSED = "paused"
    NO_SCHEDULER_HEARTBEAT = "no_scheduler_heartbeat"
    MAX_ACTIVE_RUNS = "max_active_runs"
    NO_POLICY_FILE = "no_policy_file"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the ledger knows about one tick.

    ``has_run``: a run of this very tick left a trace. ``had_active_run``: another run of the policy was under way.
    ``had_heartbeat``: the watch passed around that time; None where it had never passed before.
    """

    due_at: datetime
    has_run: bool
    had_active_run: bool
    had_heartbeat: bool | None


def decide_cause(evidence: Evidence, *, is_paused: bool | None, has_policy_file: bool) -> Cause:
    """Say why a tick did not run: what is known of its own time comes before how things stand now."""
    if evidence.had_heartbeat is False:
        return Cause.NO_SCHEDULER_HEARTBEAT
    if evidence.had_active_run:
        return Cause.MAX_ACTIVE_RUNS
    if not has_policy_file:
        return Cause.NO_POLICY_FILE
    return Cause.PAUSED if is_paused else Cause.UNKNOWN


def describe_timetable(schedule: str | None, zone: str) -> str | None:
    """Write a schedule as one stable text, five cron fields and the zone; None is "no tick is expected".

    A preset and its cron fields are one timetable.
    """
    return None if schedule is None else f"{' '.join(PRESETS.get(schedule, schedule).split())} {zone}"


def read_timetable(timetable: str) -> tuple[str, str]:
    """Read what ``describe_timetable`` wrote: cron fields and zone."""
    schedule, _, zone = timetable.rpartition(" ")
    return schedule, zone
