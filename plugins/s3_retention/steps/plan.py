"""Plans an interval: one complete scan, every candidate decided, one command per object that is due.

The scan and the plan are always whole; a run drains as much of the plan as its limits allow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from s3_retention.core.approval import DealAction
from s3_retention.core.interval import BEGINNING, Interval, IntervalState
from s3_retention.errors import ClaimLostError
from s3_retention.steps import approve, decide, scan
from s3_retention.steps.claim import use_policy_version
from s3_retention.steps.collecting import collects_rarely
from s3_retention.steps.decide import Bounds, PlanResult
from s3_retention.steps.turns import takes_short_turns
from s3_retention.store import intervals, ledger_entries, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.sources.row_source import PlanSource
    from s3_retention.steps.scan import Scan
    from s3_retention.store.connection import Connection

GENERATION = 0
"""The first plan of an interval; a replay adds a generation."""
MAX_SLICES = 100
"""Slices that one run closes because nothing was due in them."""


@collects_rarely()
@takes_short_turns()
def run(
    conn: Connection,
    source: PlanSource,
    policy: RetentionPolicy,
    interval_id: int,
    holder: Holder,
    *,
    max_batches: int,
) -> PlanResult:
    """Plan the interval unless it is planned already, and deal open batches to this run, unless it must be asked.

    Where ``window.width`` has cut the interval short and nothing is due in it, it is closed, and the run goes on by the
    same scan: the time up to the next due object is one interval, and that object's slice is the next; a run that did
    so goes on from its last interval.
    Raises ``ClaimLostError`` when another run has the interval, ``StoreError`` when the scan is not complete,
    ``PlanRefusedError`` when the plan would expire everything, the clocks of ledger and store disagree or the
    interval has not ended yet, ``PolicyChangedError`` when the rules changed under the same version. In each case
    nothing is planned.
    """
    lease = policy.window.lease
    with transaction(conn):
        # As a claim does: between a look at who has the interval and the claim, another run must not take it.
        watermarks.hold(conn, policy=policy.name)
        mine = intervals.find_of_run(conn, policy=policy.name, holder=holder)
        claimed = mine or intervals.get(conn, interval_id)
        interval_id = claimed.interval_id
        if claimed.state is IntervalState.COMPLETED:
            return _planned(conn, interval_id)
        if claimed.claimed_by != holder.run:
            raise ClaimLostError
        # The file may have been edited since the claim.
        use_policy_version(conn, policy)
        fence = intervals.claim(conn, interval_id, policy_version=policy.version, lease=lease, holder=holder)
        ledger_entries.ensure_partition(conn, interval_id=interval_id)
    if claimed.state is IntervalState.CLAIMED:
        scan.refuse_future_end(conn, claimed.interval)

        def heartbeat() -> None:
            intervals.renew(conn, interval_id, fence=fence, lease=lease)

        scanned = scan.run(conn, source, policy, heartbeat)
        result = _store_plan(conn, policy, holder, (interval_id, fence), scanned)
        interval_id, fence = _skip_empty_slices(conn, policy, holder, scanned, result, (interval_id, fence))
    done, dealt = approve.go_on(conn, policy, holder, (interval_id, fence), max_batches=max_batches)
    return replace(_planned(conn, interval_id), batches=dealt, is_waiting=done is DealAction.WAIT)


def _store_plan(
    conn: Connection, policy: RetentionPolicy, holder: Holder, at: tuple[int, int], scanned: Scan
) -> PlanResult:
    interval_id, fence = at
    interval = intervals.get(conn, interval_id).interval
    with transaction(conn):
        # Before the interval, as a claim does: the other way round, two runs would wait for each other.
        watermarks.hold(conn, policy=policy.name)
        intervals.renew(conn, interval_id, fence=fence, lease=policy.window.lease)
        result = decide.run(conn, policy, scanned, Bounds(interval.starts_at, interval.ends_at))
        decide.store_commands(
            conn,
            policy,
            holder,
            interval_id=interval_id,
            generation=GENERATION,
            canary=decide.canary_of(conn, policy, interval_id),
        )
        _mark_planned(conn, policy, interval_id, fence, result)
    return result


def _skip_empty_slices(
    conn: Connection,
    policy: RetentionPolicy,
    holder: Holder,
    scanned: Scan,
    result: PlanResult,
    at: tuple[int, int],
) -> tuple[int, int]:
    """Go on from an interval in which nothing is due to one in which something is: its id and fence.

    By the scan that was made nothing is due before ``next_due_at``: up to there time is closed as one interval. None
    ends after that scan began, less the safety delay, so that the scan was complete for each.
    """
    window, cutoff = policy.window, scanned.started_at - policy.window.safety_delay
    for _ in range(MAX_SLICES):
        if result.num_discovered or window.width is None:
            return at
        with transaction(conn):
            position, _ = watermarks.lock(conn, policy=policy.name, start_at=BEGINNING)
            empty_until = min(result.next_due_at or cutoff, cutoff)
            is_empty = position < empty_until
            ends_at = empty_until if is_empty else min(position + window.width, cutoff)
            if ends_at <= position or not _complete(conn, policy, at):
                return at
            at = _take(conn, policy, holder, Interval(policy.name, position, ends_at))
            if is_empty:
                _mark_planned(conn, policy, *at, result)
            else:
                ledger_entries.ensure_partition(conn, interval_id=at[0])
        if not is_empty:
            result = _store_plan(conn, policy, holder, at, scanned)
    return at


def _complete(conn: Connection, policy: RetentionPolicy, at: tuple[int, int]) -> bool:
    """Complete an interval without commands, under its fence; False when something of it is open after all."""
    interval_id, fence = at
    intervals.renew(conn, interval_id, fence=fence, lease=policy.window.lease)
    if not intervals.complete(conn, interval_id):
        return False
    watermarks.move_completed_through(conn, interval_id=interval_id)
    return True


def _take(conn: Connection, policy: RetentionPolicy, holder: Holder, interval: Interval) -> tuple[int, int]:
    interval_id = intervals.insert(
        conn, interval, policy_version=policy.version, lease=policy.window.lease, holder=holder
    )
    return interval_id, intervals.get(conn, interval_id).fence


def _mark_planned(
    conn: Connection, policy: RetentionPolicy, interval_id: int, fence: int, result: PlanResult
) -> None:
    intervals.mark_planned(
        conn,
        interval_id,
        fence=fence,
        lease=policy.window.lease,
        num_scanned=result.num_scanned,
        num_discovered=result.num_discovered,
        num_bytes=result.num_bytes,
        num_stragglers=result.num_stragglers,
        num_kept_by_reason=result.num_kept_by_reason,
        next_due_at=result.next_due_at,
        largest_tenant_share=result.largest_tenant_share,
    )
    decide.store_waits(conn, result, interval_id=interval_id, generation=GENERATION)
    watermarks.move_position(conn, interval_id=interval_id)


def _planned(conn: Connection, interval_id: int) -> PlanResult:
    row = intervals.get_row(conn, interval_id)
    return PlanResult(
        num_scanned=row["num_scanned"],
        num_discovered=row["num_discovered"],
        num_bytes=int(row["num_bytes"]),
        num_stragglers=row["num_stragglers"],
        num_kept_by_reason=row["num_kept_by_reason"],
        next_due_at=row["next_due_at"],
        largest_tenant_share=row["largest_tenant_share"],
    )
