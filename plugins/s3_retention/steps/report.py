"""Closes a run: counts, checks the balance, and ends the interval or leaves it to the next run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from s3_retention.core.capacity import RunFigures
from s3_retention.core.interval import IntervalState
from s3_retention.core.report import RunReport
from s3_retention.errors import BatchStoppedError, NotPlannedError, UnbalancedError
from s3_retention.steps.find import capacity_of
from s3_retention.store import (
    aborted_uploads,
    batches,
    failed_attempts,
    intervals,
    quarantine,
    replays,
    row_entries,
    run_reports,
    watermarks,
)
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import Window
    from s3_retention.store.connection import Connection

MAX_TENANTS = 20
MAX_SHOWN = 20
"""Unaccounted commands that an error names."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What a run worked on: one plan of one interval. Generation 0 is its first plan, more is a replay."""

    interval_id: int
    generation: int
    interval_key: str
    policy: str
    is_planned: bool


def run(
    conn: Connection,
    holder: Holder,
    *,
    policy: str | None,
    interval_id: int | None,
    window: Window | None = None,
    triggered_at: datetime | None = None,
    tell: Callable[[RunReport], None] | None = None,
) -> RunReport:
    """Report the run; complete its interval or replay when nothing of it is open, and give its lease back.

    ``policy`` and ``interval_id`` are those of a cleanup, and ``window`` that of its policy, where it can be read: by
    it is told whether the policy keeps up. ``triggered_at`` is when the run was due or asked for. A run that went on to
    further slices reports on its last one. The report is in the ledger, and told to ``tell``, before anything is
    raised. Raises ``NotPlannedError`` when the scan or the plan failed, ``UnbalancedError``, which names commands that
    nothing accounts for, and ``BatchStoppedError`` when a batch was stopped: each keeps the run red.
    """
    dealt = batches.list_of_run(conn, holder=holder)
    with transaction(conn):
        # Its completion and the counts are of one moment.
        work = _end_interval(conn, holder, policy, interval_id) or _end_replay(conn, holder)
        report = _count(conn, holder, policy, work, sum(one.num_commands for one in dealt))
        report = _date(conn, holder, report, work, triggered_at)
        report = _insert(conn, holder, report, work, window)
    if tell is not None:
        tell(report)
    if work is not None and not work.is_planned:
        raise NotPlannedError
    if not report.is_balanced:
        raise UnbalancedError(_explain(conn, holder, report))
    stopped = [one for one in dealt if one.stopped_class is not None]
    if stopped:
        left = f"{report.num_by_outcome['stopped']:,} commands stay pending for the next run"
        if stopped[0].kind == "redrive":
            left = "what the redrive could not end waits in quarantine for another one"
        raise BatchStoppedError(
            f"{left}: batch {stopped[0].batch_id} was stopped by {stopped[0].stopped_class} "
            f"({stopped[0].stopped_message})"
        )
    return report


def _end_interval(
    conn: Connection, holder: Holder, policy: str | None, interval_id: int | None
) -> _Work | None:
    if policy is None or interval_id is None:
        return None
    last = intervals.find_of_run(conn, policy=policy, holder=holder)
    interval_id = last.interval_id if last else interval_id
    watermarks.hold(conn, policy=policy)
    if intervals.complete(conn, interval_id):
        watermarks.move_completed_through(conn, interval_id=interval_id)
    intervals.release(conn, interval_id, holder=holder)
    found = intervals.get(conn, interval_id)
    is_planned = found.state is not IntervalState.CLAIMED
    return _Work(interval_id, 0, found.interval.key, policy, is_planned)


def _end_replay(conn: Connection, holder: Holder) -> _Work | None:
    """End the replay of this run; None when it has none."""
    replay = replays.find_of_run(conn, holder=holder)
    if replay is None:
        return None
    watermarks.hold(conn, policy=replay.policy)
    replays.complete(conn, replay.interval_id, replay.generation)
    replays.release(conn, replay.interval_id, replay.generation, holder=holder)
    is_planned = replay.state is not IntervalState.CLAIMED
    return _Work(replay.interval_id, replay.generation, replay.interval_key, replay.policy, is_planned)


def _insert(
    conn: Connection, holder: Holder, report: RunReport, work: _Work | None, window: Window | None
) -> RunReport:
    """Write the report; give it with what it says, together with those before it, about keeping up."""
    figures = None
    if work is not None and work.generation == 0:
        now = watermarks.read_clock(conn)
        since = intervals.find_unclaimed_since(conn, policy=work.policy) or now
        figures = RunFigures(now, since, report.num_drained, report.num_remaining)
    run_reports.insert(
        conn,
        holder=holder,
        policy=work.policy if work else None,
        interval_id=work.interval_id if work else None,
        counts=report.counts(),
        is_balanced=report.is_balanced,
        figures=figures,
    )
    if figures is None or work is None or window is None:
        return report
    capacity = capacity_of(conn, work.policy, width=window.width, safety_delay=window.safety_delay)
    return replace(report, capacity=capacity)


def _count(
    conn: Connection, holder: Holder, policy: str | None, work: _Work | None, num_dealt: int
) -> RunReport:
    num_by_outcome: Counter[str] = Counter()
    num_by_detail: Counter[str] = Counter()
    num_deleted_bytes = num_drained = 0
    for row in run_reports.count_commands(conn, holder=holder):
        num_by_outcome[row["outcome"]] += row["num_objects"]
        num_drained += row["num_drained"]
        if row["detail"] is not None:
            num_by_detail[f"{row['outcome']}:{row['detail']}"] += row["num_objects"]
        if row["outcome"] == "deleted":
            num_deleted_bytes += int(row["num_bytes"])
    redriven = quarantine.count_redriven(conn, holder=holder)
    tenants = run_reports.count_tenants(
        conn,
        holder=holder,
        interval_id=work.interval_id if work else None,
        generation=work.generation if work else 0,
        max_rows=MAX_TENANTS,
    )
    remaining = 0
    if work is not None:
        remaining = batches.count_remaining(conn, interval_id=work.interval_id, generation=work.generation)
    return RunReport(
        policy=work.policy if work else policy,
        interval_key=work.interval_key if work else None,
        num_discovered=num_dealt,
        num_by_outcome=num_by_outcome,
        num_by_detail=num_by_detail,
        num_failed_attempts_by_class=failed_attempts.count(conn, holder=holder),
        num_deleted_bytes=num_deleted_bytes,
        num_remaining=remaining,
        num_drained=num_drained,
        num_uploads_aborted=aborted_uploads.count(conn, holder=holder),
        num_redriven_by_class=Counter({row["failure_class"]: row["num_selected"] for row in redriven}),
        num_resolved_by_class=Counter({row["failure_class"]: row["num_resolved"] for row in redriven}),
        tenants=tuple(tenants),
        num_rows_by_outcome=row_entries.count(conn, holder=holder),
    )


def _date(
    conn: Connection, holder: Holder, report: RunReport, work: _Work | None, triggered_at: datetime | None
) -> RunReport:
    """Add when the run did what, and the hashes of its plan."""
    times = run_reports.time_run(conn, holder=holder, triggered_at=triggered_at)
    if work is None or not work.is_planned:
        return replace(report, seconds=times.seconds())
    plan = run_reports.hash_plan(conn, interval_id=work.interval_id, generation=work.generation)
    # What an earlier run has planned took this one no time.
    is_own = times.claimed_at is not None and plan["planned_at"] >= times.claimed_at
    return replace(
        report,
        plan_hash=plan["plan_hash"],
        rules_hash=plan["rules_hash"],
        seconds=(replace(times, planned_at=plan["planned_at"]) if is_own else times).seconds(),
    )


def _explain(conn: Connection, holder: Holder, report: RunReport) -> str:
    pending = run_reports.list_pending(conn, holder=holder, max_rows=MAX_SHOWN)
    shown = "\n".join(
        f"  s3://{row['bucket']}/{row['key']} (operation {row['operation_id']}, batch {row['batch_id']}, "
        f"map index {row['map_index']})"
        for row in pending
    )
    return (
        f"the run does not balance: {report.num_discovered:,} commands were dealt to it, "
        f"{sum(report.num_by_outcome.values()) - report.num_pending:,} are accounted for and "
        f"{report.num_pending:,} are pending; the next run resumes them. The first of them:\n{shown}"
    )
