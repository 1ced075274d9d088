"""Holds a plan against the limits of its policy: deals it, lets it wait for a person, or closes it undeleted.

The ledger decides, at each deal: while a question is open nothing of the plan is dealt, whatever Airflow shows. An
interval that waits holds no lease, so that a later run takes it over and asks about the same plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.approval import MAX_KEYS, DealAction, PlanSummary, decide_deal, over_limits
from s3_retention.core.interval import ClaimAction, IntervalState, decide_claim
from s3_retention.errors import ClaimLostError, NotApprovedError, NotPlannedError
from s3_retention.steps import deal
from s3_retention.store import approvals, batches, intervals, ledger_entries, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from s3_retention.core.approval import Approval, Decision
    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.store.batches import DealtBatch
    from s3_retention.store.connection import Connection

GENERATION = 0
"""Only the first plan of an interval is asked about: a replay over a limit is refused."""
EVERYTHING = 2**31 - 1


def go_on(
    conn: Connection, policy: RetentionPolicy, holder: Holder, at: tuple[int, int], *, max_batches: int
) -> tuple[DealAction, tuple[DealtBatch, ...]]:
    """Do with a planned interval, of which this run has the id and fence, what limits and answers say.

    Gives what was done, and the batches that were dealt to this run: none unless the action is ``DEAL``.
    """
    interval_id, fence = at
    with transaction(conn):
        if intervals.get(conn, interval_id).state is IntervalState.COMPLETED:
            return DealAction.CLOSE, ()
        intervals.renew(conn, interval_id, fence=fence, lease=policy.window.lease)
        action = _hold_against_limits(conn, policy, holder, interval_id)
        if action is DealAction.WAIT:
            intervals.release(conn, interval_id, holder=holder)
            return action, ()
        if action is DealAction.DEAL:
            dealt = deal.run(
                conn, policy, holder, interval_id=interval_id, generation=GENERATION, max_batches=max_batches
            )
            return action, dealt
    _close_rejected(conn, policy, holder, at)
    return action, ()


def resume(
    conn: Connection, policy: RetentionPolicy, interval_id: int, holder: Holder, *, max_batches: int
) -> tuple[DealtBatch, ...]:
    """Deal a planned interval to this run: what it was dealt before, or what waited for an answer.

    Nothing where the interval is completed, or the answer was no: then its commands end as kept. Raises
    ``NotApprovedError`` while there is no answer, ``ClaimLostError`` when another live run has taken the interval over,
    and ``NotPlannedError``.
    """
    with transaction(conn):
        watermarks.hold(conn, policy=policy.name)
        claimed = intervals.find_of_run(conn, policy=policy.name, holder=holder)
        claimed = claimed or intervals.get(conn, interval_id)
        if claimed.state is IntervalState.CLAIMED:
            raise NotPlannedError
        if claimed.state is IntervalState.COMPLETED:
            return ()
        now = watermarks.read_clock(conn)
        action = decide_claim(mine=None, unfinished=claimed, holder=holder.run, now=now)
        if action is ClaimAction.OBSERVE:
            raise ClaimLostError
        interval_id = claimed.interval_id
        fence = intervals.claim(
            conn, interval_id, policy_version=policy.version, lease=policy.window.lease, holder=holder
        )
        ledger_entries.ensure_partition(conn, interval_id=interval_id)
    done, dealt = go_on(conn, policy, holder, (interval_id, fence), max_batches=max_batches)
    if done is DealAction.WAIT:
        raise NotApprovedError(
            f"the plan of {claimed.interval.key} waits for an answer, and nothing of it was dealt: clear approve_plan "
            "of this run and answer it, or trigger the DAG, which asks again"
        )
    return dealt


def find_question(
    conn: Connection, policy: RetentionPolicy, holder: Holder
) -> tuple[PlanSummary, Approval] | None:
    """Find the open question about the interval of this run; None where nothing is to be asked."""
    found = intervals.find_of_run(conn, policy=policy.name, holder=holder)
    approval = approvals.get(conn, found.interval_id, GENERATION) if found else None
    if found is None or approval is None or approval.decision is not None:
        return None
    row = intervals.get_row(conn, found.interval_id)
    summary = PlanSummary(
        policy=policy.name,
        interval_key=found.interval.key,
        num_scanned=row["num_scanned"],
        num_discovered=row["num_discovered"],
        num_bytes=int(row["num_bytes"]),
        num_stragglers=row["num_stragglers"],
        num_kept_by_reason=row["num_kept_by_reason"],
        sample=approvals.sample_plan(conn, found.interval_id, GENERATION, max_rows=MAX_KEYS),
    )
    return summary, approval


def decide(
    conn: Connection, policy_name: str, holder: Holder, *, decision: Decision, decided_by: str | None
) -> Approval:
    """Write the answer about the interval of this run; where there is one already, that one stands and is given.

    Raises ``NotPlannedError`` when nothing was asked.
    """
    with transaction(conn):
        found = intervals.find_of_run(conn, policy=policy_name, holder=holder)
        if found is None:
            raise NotPlannedError
        approvals.decide(
            conn, found.interval_id, GENERATION, decision=decision, decided_by=decided_by, holder=holder
        )
        decided = approvals.get(conn, found.interval_id, GENERATION)
    if decided is None:
        raise NotPlannedError
    return decided


def _hold_against_limits(
    conn: Connection, policy: RetentionPolicy, holder: Holder, interval_id: int
) -> DealAction:
    """Decide what becomes of the plan, and ask where it is over a limit. The caller holds the interval's lock."""
    row = intervals.get_row(conn, interval_id)
    over = over_limits(
        policy.limits,
        num_scanned=row["num_scanned"],
        num_discovered=row["num_discovered"],
        num_bytes=int(row["num_bytes"]),
        largest_tenant_share=row["largest_tenant_share"],
    )
    action = decide_deal(
        approvals.get(conn, interval_id, GENERATION),
        over,
        was_dealt=approvals.was_dealt(conn, interval_id, GENERATION),
    )
    if action is DealAction.ASK:
        approvals.ask(conn, interval_id, over=over, holder=holder)
        return DealAction.WAIT
    return action


def _close_rejected(conn: Connection, policy: RetentionPolicy, holder: Holder, at: tuple[int, int]) -> None:
    """End every command of a rejected plan as kept, a transaction for each batch; a later try goes on from there.

    The batches are dealt to this run first, so that its report counts them.
    """
    interval_id, fence = at
    lease = policy.window.lease
    while True:
        with transaction(conn):
            intervals.renew(conn, interval_id, fence=fence, lease=lease)
            dealt = batches.deal(
                conn,
                interval_id=interval_id,
                generation=GENERATION,
                holder=holder,
                max_batches=EVERYTHING,
                max_commands=EVERYTHING,
            )
        if not dealt:
            return
        for one in dealt:
            with transaction(conn):
                # The fence of the interval too: another run that took it over closes the rest itself.
                intervals.renew(conn, interval_id, fence=fence, lease=lease)
                batch = batches.claim(conn, one.batch_id, holder=holder, lease=lease)
                if batch is None:
                    continue
                ledger_entries.settle_rejected(conn, batch, lease=lease)
                if not batches.close(conn, batch.batch_id, fence=batch.fence):
                    raise ClaimLostError
