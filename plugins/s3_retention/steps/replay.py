"""Replays one completed interval: the same scan, rules and commands, bounded on both sides.

What earlier plans of the interval have settled is not repeated; what has appeared since in its slice of due time is
picked up. The watermark does not move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from s3_retention.core.interval import ClaimAction, IntervalState, decide_claim
from s3_retention.core.policy import Mode
from s3_retention.errors import ReplayRefusedError
from s3_retention.steps import deal, decide, scan
from s3_retention.steps.claim import use_policy_version
from s3_retention.steps.decide import Bounds, PlanResult
from s3_retention.store import intervals, ledger_entries, replays, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from s3_retention.core.holder import Holder
    from s3_retention.core.interval import ClaimedInterval, Interval
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.sources.row_source import PlanSource
    from s3_retention.steps.scan import Scan
    from s3_retention.store.connection import Connection


def find_policy_name(conn: Connection, interval_key: str) -> str:
    """Find whose interval it is. Raises ``ReplayRefusedError`` when there is none of this name."""
    return _find(conn, interval_key).interval.policy


def run(
    conn: Connection,
    source: PlanSource,
    policy: RetentionPolicy,
    interval_key: str,
    holder: Holder,
    *,
    acted_by: str | None,
    max_batches: int,
) -> PlanResult:
    """Plan the replay unless this run has done so, and deal its open batches to this run.

    An unfinished replay of the interval, which no run holds any more, is taken over before a new one is begun.
    Raises ``ReplayRefusedError`` when the interval is not completed, another run replays it, or the policy is in mode
    simulate; what ``plan.run`` raises besides. In each case nothing is planned.
    """
    lease = policy.window.lease
    claimed = _find(conn, interval_key)
    interval_id, interval = claimed.interval_id, claimed.interval
    _refuse(policy, claimed)
    with transaction(conn):
        generation, fence, state = _claim(conn, policy, claimed, holder, acted_by)
    if state is IntervalState.COMPLETED:
        return _planned(conn, interval_id, generation)
    if state is IntervalState.CLAIMED:
        scan.refuse_future_end(conn, interval)

        def heartbeat() -> None:
            replays.renew(conn, interval_id, generation, fence=fence, lease=lease)

        scanned = scan.run(conn, source, policy, heartbeat)
        _store_plan(conn, policy, holder, claimed, (generation, fence), scanned)
    with transaction(conn):
        if replays.get_row(conn, interval_id, generation)["state"] == IntervalState.COMPLETED.value:
            return _planned(conn, interval_id, generation)
        replays.renew(conn, interval_id, generation, fence=fence, lease=lease)
        dealt = deal.run(
            conn, policy, holder, interval_id=interval_id, generation=generation, max_batches=max_batches
        )
        return replace(_planned(conn, interval_id, generation), batches=dealt)


def look(conn: Connection, source: PlanSource, policy: RetentionPolicy, interval_key: str) -> PlanResult:
    """Decide everything as a replay of the interval would at this moment, and store nothing.

    Raises what ``run`` raises, but for what another replay has.
    """
    claimed = _find(conn, interval_key)
    _refuse(policy, claimed)
    scan.refuse_future_end(conn, claimed.interval)
    scanned = scan.run(conn, source, policy, lambda: None)
    interval, generation = claimed.interval, replays.next_generation(conn, claimed.interval_id)
    bounds = Bounds(interval.starts_at, interval.ends_at, interval.starts_at, claimed.interval_id, generation)
    with transaction(conn):
        result = decide.run(conn, policy, scanned, bounds)
    _refuse_over_limit(policy, interval, result)
    return result


def _find(conn: Connection, interval_key: str) -> ClaimedInterval:
    found = intervals.find_by_key(conn, interval_key.strip())
    if found is None:
        raise ReplayRefusedError(
            f"there is no interval {interval_key[:200]!r}; write its key as s3_retention.intervals shows it"
        )
    return found


def _refuse(policy: RetentionPolicy, claimed: ClaimedInterval) -> None:
    if policy.mode is Mode.SIMULATE:
        raise ReplayRefusedError(f"policy {policy.name} is in mode simulate, which deletes nothing")
    if claimed.state is not IntervalState.COMPLETED:
        raise ReplayRefusedError(
            f"interval {claimed.interval.key} is not completed: trigger the cleanup DAG, which resumes it"
        )


def _claim(
    conn: Connection,
    policy: RetentionPolicy,
    claimed: ClaimedInterval,
    holder: Holder,
    acted_by: str | None,
) -> tuple[int, int, IntervalState]:
    """Claim the replay of this run: its generation, fence and state."""
    interval_id, lease = claimed.interval_id, policy.window.lease
    # Before the replay, as every claim does; two replays of one policy decide one after the other.
    watermarks.hold(conn, policy=policy.name)
    mine = replays.find_of_run(conn, holder=holder)
    if mine is not None and mine.state is IntervalState.COMPLETED:
        return mine.generation, 0, mine.state
    use_policy_version(conn, policy)
    ledger_entries.ensure_partition(conn, interval_id=interval_id)
    unfinished = replays.find_unfinished(conn, claimed)
    action = decide_claim(
        mine=None,
        unfinished=unfinished[1] if unfinished else None,
        holder=holder.run,
        now=watermarks.read_clock(conn),
    )
    if unfinished is None:
        generation, fence = replays.insert(
            conn, interval_id, policy_version=policy.version, lease=lease, holder=holder, acted_by=acted_by
        )
        return generation, fence, IntervalState.CLAIMED
    generation, held = unfinished
    if action is ClaimAction.OBSERVE:
        raise ReplayRefusedError(f"interval {claimed.interval.key} is being replayed by {held.claimed_by}")
    fence = replays.claim(
        conn, interval_id, generation, policy_version=policy.version, lease=lease, holder=holder
    )
    return generation, fence, held.state


def _store_plan(
    conn: Connection,
    policy: RetentionPolicy,
    holder: Holder,
    claimed: ClaimedInterval,
    at: tuple[int, int],
    scanned: Scan,
) -> None:
    generation, fence = at
    interval_id, interval, lease = claimed.interval_id, claimed.interval, policy.window.lease
    bounds = Bounds(interval.starts_at, interval.ends_at, interval.starts_at, interval_id, generation)
    with transaction(conn):
        watermarks.hold(conn, policy=policy.name)
        replays.renew(conn, interval_id, generation, fence=fence, lease=lease)
        result = decide.run(conn, policy, scanned, bounds)
        _refuse_over_limit(policy, interval, result)
        decide.store_commands(conn, policy, holder, interval_id=interval_id, generation=generation)
        replays.mark_planned(
            conn,
            interval_id,
            generation,
            fence=fence,
            lease=lease,
            num_scanned=result.num_scanned,
            num_discovered=result.num_discovered,
            num_bytes=result.num_bytes,
            num_kept_by_reason=result.num_kept_by_reason,
        )
        decide.store_waits(conn, result, interval_id=interval_id, generation=generation)


def _refuse_over_limit(policy: RetentionPolicy, interval: Interval, result: PlanResult) -> None:
    """Refuse a replay that a cleanup would have to ask about: in its form nobody waits for an answer."""
    over = result.over(policy.limits)
    if over:
        raise ReplayRefusedError(
            f"the replay of {interval.key} would delete {'; '.join(map(str, over))}: nothing was planned. Let the "
            f"cleanup DAG of policy {policy.name} take these objects, which asks for approval, or raise the limit in "
            "the policy file for as long as the replay takes"
        )


def _planned(conn: Connection, interval_id: int, generation: int) -> PlanResult:
    row = replays.get_row(conn, interval_id, generation)
    return PlanResult(
        num_scanned=row["num_scanned"],
        num_discovered=row["num_discovered"],
        num_bytes=int(row["num_bytes"]),
        num_stragglers=0,
        num_kept_by_reason=row["num_kept_by_reason"],
    )
