"""Writes the findings: opens what is new, freshens what is open, closes what has healed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from s3_retention.core import approval, finding, lateness
from s3_retention.core.capacity import MAX_RUNS, MAX_SLICES, judge_capacity
from s3_retention.store import (
    findings,
    intervals,
    kill_switches,
    row_entries,
    run_reports,
    tenant_pauses,
    watermarks,
)
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from s3_retention.core.capacity import Capacity
    from s3_retention.core.finding import Finding
    from s3_retention.core.watched import WatchedPolicy
    from s3_retention.store.connection import Connection

LEFT_FOR = timedelta(days=7)
"""How long a row that names an object that is gone is told of."""
Watched = dict[str, "WatchedPolicy"]
MAX_NAMED = 20
"""Paused tenants that a finding names."""


def run(
    conn: Connection, watched: Sequence[WatchedPolicy], *, unknown_ticks: Iterable[WatchedPolicy] = ()
) -> tuple[int, int]:
    """Look at everything and write what a person should know: the number of findings opened, and closed.

    ``unknown_ticks`` are policies whose ticks could not be told in this pass. The facts and the findings are of one
    transaction.
    """
    by_name = {one.name: one for one in watched}
    with transaction(conn):
        now = watermarks.read_clock(conn)
        found = [
            *_find(conn, by_name, now=now),
            *_find_ages(conn, by_name, now=now),
            *_find_capacity(conn, watched),
            *(finding.ticks_unknown(one.name, one.timetable or "") for one in unknown_ticks),
        ]
        return findings.see(conn, found, now=now)


def capacity_of(
    conn: Connection, policy: str, *, width: timedelta | None, safety_delay: timedelta
) -> Capacity | None:
    """Judge whether a policy keeps up, by what its last runs reported; None while there are too few."""
    return judge_capacity(
        run_reports.list_last_figures(conn, policy=policy, max_rows=MAX_RUNS),
        intervals.find_arrivals(conn, policy=policy, max_rows=MAX_SLICES),
        width=width,
        safety_delay=safety_delay,
    )


def _find(conn: Connection, watched: Watched, *, now: datetime) -> Iterator[Finding]:
    yield from (finding.missed_intervals(row) for row in findings.count_missed_open(conn))
    yield from (finding.quarantine_open(row, now=now) for row in findings.count_quarantine_open(conn))
    yield from (finding.interval_stuck(row, now=now) for row in findings.list_stuck_intervals(conn))
    yield from (finding.batches_stopped(row) for row in findings.count_stopped_batches(conn))
    yield from (finding.rows_left(row) for row in row_entries.count_left(conn, since=now - LEFT_FOR))
    yield from (finding.replay_unfinished(row, now=now) for row in findings.list_unfinished_replays(conn))
    yield from (finding.kill_switch(row, now=now) for row in kill_switches.list_open(conn))
    yield from (
        finding.tenants_paused(row, now=now) for row in tenant_pauses.sum_open(conn, max_rows=MAX_NAMED)
    )
    yield from (approval.plan_waits(row, now=now) for row in findings.list_waiting_plans(conn))
    yield from (approval.plan_rejected(row) for row in findings.list_rejected_plans(conn))
    safety_delays = {name: one.safety_delay for name, one in watched.items()}
    yield from (lateness.late_run(row) for row in findings.list_late_runs(conn, safety_delays))


def _find_ages(conn: Connection, watched: Watched, *, now: datetime) -> Iterator[Finding]:
    """Find what is older than it may be: watermarks, objects without an interval, commands without an end."""
    limits = {name: one.max_command_age for name, one in watched.items() if one.max_command_age is not None}
    max_ages = {name: one.max_age for name, one in watched.items()}
    for row in findings.list_watermark_ages(conn):
        old = lateness.watermark_age(row, max_age=max_ages.get(row["policy"]), now=now)
        yield from () if old is None else (old,)
    for row in findings.list_last_planned(conn):
        if row["num_stragglers"]:
            yield finding.stragglers(row)
        old = lateness.oldest_unclaimed(row, max_age=max_ages.get(row["policy"]), now=now)
        yield from () if old is None else (old,)
    befores = {name: now - lateness.WARN_AT * limit for name, limit in limits.items()}
    for row in findings.count_open_commands(conn):
        name = row["policy"]
        if name in watched and not watched[name].has_file:
            yield finding.no_policy_file(row)
        if name in befores and row["oldest_at"] <= befores[name]:
            yield lateness.age_limit(row, "commands", limit=limits[name], now=now)
    for row in findings.count_quarantine_old(conn, befores):
        yield lateness.age_limit(row, "quarantine", limit=limits[row["policy"]], now=now)


def _find_capacity(conn: Connection, watched: Sequence[WatchedPolicy]) -> Iterator[Finding]:
    for one in watched:
        capacity = capacity_of(conn, one.name, width=one.width, safety_delay=one.safety_delay)
        behind = None if capacity is None else lateness.falling_behind(one.name, capacity)
        yield from () if behind is None else (behind,)
