"""The ticks of a timetable, enumerated by Airflow itself.

``next_dagrun_info`` is the scheduler's, not of the public SDK: whatever goes wrong here is answered with None,
"nobody can tell", and never with a tick that may not have been one.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import structlog

from s3_retention.core.ticks import Tick, read_timetable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.ticks import TicksBetween

log = structlog.get_logger("s3_retention")

_LONG_BEFORE = timedelta(days=3_660)


def ticks_of_timetable(timetable: Any) -> TicksBetween:
    """Give the enumeration of a DAG's own timetable, as the SDK has it or as the scheduler has it."""

    def ticks_between(last: Tick, before: datetime) -> Sequence[Tick] | None:
        try:
            return _enumerate(_to_core(timetable), last, before)
        except Exception:
            log.warning("the ticks of a timetable cannot be told", timetable=str(timetable), exc_info=True)
            return None

    return ticks_between


def ticks_of_policy(timetable: str) -> TicksBetween:
    """Give the enumeration of a timetable as the ledger holds it: no DAG need be loaded, or exist."""

    def ticks_between(last: Tick, before: datetime) -> Sequence[Tick] | None:
        try:
            from airflow.timetables.trigger import CronTriggerTimetable

            schedule, zone = read_timetable(timetable)
            made = CronTriggerTimetable(schedule, timezone=zone)
        except Exception:
            log.warning("the timetable of a policy cannot be read", timetable=timetable, exc_info=True)
            return None
        return ticks_of_timetable(made)(last, before)

    return ticks_between


def _to_core(timetable: Any) -> Any:
    # In a task of Airflow 3.2 and later, `dag.timetable` is of the SDK and has no logic.
    if hasattr(timetable, "next_dagrun_info"):
        return timetable
    from airflow.serialization.encoders import coerce_to_core_timetable

    return coerce_to_core_timetable(timetable)


def _enumerate(timetable: Any, last: Tick, before: datetime) -> list[Tick]:
    import pendulum
    from airflow.timetables.base import DataInterval, TimeRestriction

    # Timetables with data intervals step over one that begins where the last one did: an anchor, and a tick of a
    # timetable without them, has no length.
    starts_at = last.starts_at if last.starts_at < last.ends_at else last.ends_at - _LONG_BEFORE
    interval = DataInterval(pendulum.instance(starts_at), pendulum.instance(last.ends_at))
    # With catchup, or it would jump to the clock of this machine.
    every_one = TimeRestriction(earliest=None, latest=None, catchup=True)
    ticks: list[Tick] = []
    due_at = last.due_at
    while True:
        info = timetable.next_dagrun_info(last_automated_data_interval=interval, restriction=every_one)
        if info is None or info.run_after >= before:
            return ticks
        if info.run_after <= due_at:
            raise ValueError(f"{timetable!r} gives {info.run_after} after {due_at}")
        interval, due_at = info.data_interval, info.run_after
        ticks.append(Tick(*map(_to_utc, (due_at, interval.start, interval.end))))


def _to_utc(at: datetime) -> datetime:
    """Make a plain datetime of the standard library of Airflow's pendulum."""
    utc = at.astimezone(timezone.utc)
    return datetime(
        utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, timezone.utc
    )
