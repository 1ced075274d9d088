"""Flags the ticks of a schedule that did not run, each once, and resolves those that a later run has covered.

It runs beside the claim and never gates it: what a missed tick would have covered, the next run takes anyway.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.ticks import GRACE, Cause, Tick, decide_cause
from s3_retention.store import intervals, missed_intervals, schedules, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from s3_retention.core.ticks import TicksBetween
    from s3_retention.core.watched import WatchedPolicy
    from s3_retention.store.connection import Connection


def _no_runs(_: Sequence[str]) -> frozenset[str]:
    return frozenset()


def _nobody_knows() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Hints:
    """What Airflow says of a DAG when it is asked. The ledger can do without.

    ``runs_among`` gives those of the run ids that Airflow has, in whatever state. ``is_paused`` is None where
    that is not known.
    """

    runs_among: Callable[[Sequence[str]], frozenset[str]] = _no_runs
    is_paused: Callable[[], bool | None] = _nobody_knows


@dataclass(frozen=True, slots=True)
class FlagResult:
    """What was flagged: counts by cause. ``is_unknown``: the ticks could not be told, and nothing was flagged."""

    num_flagged: dict[str, int] = field(default_factory=dict)
    num_resolved: int = 0
    is_unknown: bool = False
    is_new_series: bool = False


def run(
    conn: Connection,
    watched: WatchedPolicy,
    *,
    this: Tick | None,
    ticks_between: TicksBetween,
    hints: Hints,
    flagged_by: str,
) -> FlagResult:
    """Flag every tick between the last one that is accounted for and ``this``, and resolve what was covered.

    ``this`` is the tick of the scheduled run that asks. Without one, the watch or a manual run asks: then ticks
    count up to the grace before now, and none while a run of the policy is under way, since Airflow may still run
    the next one late. A policy that is new, or whose timetable changed, starts a series and flags nothing.
    """
    now = watermarks.read_clock(conn)
    anchor = this or Tick.at(now)
    if _starts_series(conn, watched, anchor):
        return FlagResult(num_resolved=_resolve(conn, watched, this), is_new_series=True)
    series = schedules.get(conn, policy=watched.name)
    is_busy = this is None and intervals.has_live_lease(conn, policy=watched.name)
    if series is None or watched.timetable is None or is_busy:
        return FlagResult(num_resolved=_resolve(conn, watched, this))
    last = series[1]
    until = now - GRACE if this is None else this.due_at
    ticks = ticks_between(last, until) if last.due_at < until else ()
    flagged = _flag(conn, watched, ticks or (), this=this, hints=hints, flagged_by=flagged_by)
    return FlagResult(
        num_flagged=dict(Counter(cause.value for _, cause in flagged)),
        num_resolved=_resolve(conn, watched, this),
        is_unknown=ticks is None,
    )


def _starts_series(conn: Connection, watched: WatchedPolicy, anchor: Tick) -> bool:
    name, dag_id, timetable = watched.name, watched.dag_id, watched.timetable
    with transaction(conn):
        known = schedules.lock(conn, policy=name)
        if known is None:
            return timetable is not None and schedules.insert(
                conn, policy=name, dag_id=dag_id, timetable=timetable, last=anchor
            )
        if known[0] == timetable:
            return False
        schedules.start_series(conn, policy=name, dag_id=dag_id, timetable=timetable, last=anchor)
    return True


def _flag(
    conn: Connection,
    watched: WatchedPolicy,
    ticks: Sequence[Tick],
    *,
    this: Tick | None,
    hints: Hints,
    flagged_by: str,
) -> list[tuple[datetime, Cause]]:
    """Flag the ticks that did not run, and move the series to the last of them or to ``this``."""
    causes = _causes(conn, watched, ticks, hints)
    with transaction(conn):
        series = schedules.lock(conn, policy=watched.name)
        if series is None or series[0] != watched.timetable:
            return []  # another flagger has just started a new series
        # What another flagger accounted for since we looked is its own: it may have run.
        missed = [(due_at, cause) for due_at, cause in causes if due_at > series[1].due_at]
        flagged = missed_intervals.insert(conn, missed, policy=watched.name, flagged_by=flagged_by)
        last = this or (ticks[-1] if ticks else None)
        if last is not None:
            schedules.move_last_tick(conn, policy=watched.name, last=last)
    return flagged


def _causes(
    conn: Connection, watched: WatchedPolicy, ticks: Sequence[Tick], hints: Hints
) -> list[tuple[datetime, Cause]]:
    if not ticks:
        return []
    evidence = missed_intervals.find_evidence(conn, ticks, policy=watched.name, dag_id=watched.dag_id)
    in_airflow = hints.runs_among([tick.run_id for tick in ticks])
    is_paused = hints.is_paused()
    return [
        (one.due_at, decide_cause(one, is_paused=is_paused, has_policy_file=watched.has_file))
        for tick, one in zip(ticks, evidence, strict=True)
        if not one.has_run and tick.run_id not in in_airflow
    ]


def _resolve(conn: Connection, watched: WatchedPolicy, this: Tick | None) -> int:
    with transaction(conn):
        late = 0
        if this is not None:
            late = missed_intervals.resolve_late(conn, policy=watched.name, due_at=this.due_at)
        return late + missed_intervals.resolve_covered(
            conn, policy=watched.name, safety_delay=watched.safety_delay
        )
