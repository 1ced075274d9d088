"""Closes a run: counts, checks the balance, and ends the interval or leaves it to the next run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from s3_retention.core.interval import IntervalState
from s3_retention.core.report import RunReport
from s3_retention.errors import BatchStoppedError, NotPlannedError, UnbalancedError
from s3_retention.store import batches, intervals, run_reports, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection

MAX_SHOWN = 20
"""Unaccounted commands that an error names."""


def run(conn: Connection, holder: Holder, *, policy: str | None, interval_id: int | None) -> RunReport:
    """Report the run; complete its interval when nothing of it is open, and give its lease back.

    The report is in the ledger before anything is raised. Raises ``NotPlannedError`` when the scan or the plan
    failed, ``UnbalancedError``, which names commands that
    nothing accounts for, and ``BatchStoppedError`` when a batch was stopped: both keep the run red.
    """
    dealt = batches.list_of_run(conn, holder=holder)
    with transaction(conn):
        if interval_id is not None:
            watermarks.hold(conn, policy=intervals.get(conn, interval_id).interval.policy)
            # The interval first: its completion and the counts are of one moment.
            if intervals.complete(conn, interval_id):
                watermarks.move_completed_through(conn, interval_id=interval_id)
            intervals.release(conn, interval_id, holder=holder)
        report = _count(conn, holder, policy, interval_id, sum(one.num_commands for one in dealt))
        run_reports.insert(
            conn,
            holder=holder,
            policy=policy,
            interval_id=interval_id,
            counts=report.counts(),
            is_balanced=report.is_balanced,
        )
        planned = interval_id is None or intervals.get(conn, interval_id).state is not IntervalState.CLAIMED
    if not planned:
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


def _count(
    conn: Connection, holder: Holder, policy: str | None, interval_id: int | None, num_dealt: int
) -> RunReport:
    num_by_outcome: Counter[str] = Counter()
    num_by_detail: Counter[str] = Counter()
    num_deleted_bytes = 0
    for row in run_reports.count_commands(conn, holder=holder):
        num_by_outcome[row["outcome"]] += row["num_objects"]
        if row["detail"] is not None:
            num_by_detail[f"{row['outcome']}:{row['detail']}"] += row["num_objects"]
        if row["outcome"] == "deleted":
            num_deleted_bytes += int(row["num_bytes"])
    key = None if interval_id is None else intervals.get(conn, interval_id).interval.key
    remaining = 0 if interval_id is None else batches.count_remaining(conn, interval_id=interval_id)
    return RunReport(policy, key, num_dealt, num_by_outcome, num_by_detail, num_deleted_bytes, remaining)


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
