"""Delivers one batch: each command ends in a ledger entry, or waits with its cause for the sweep.

A delivery may be the second, or the hundredth: it begins with what is unfinished, and settles under its fence.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from s3_retention.errors import LedgerDuplicateError
from s3_retention.s3.limits import RetryLimits
from s3_retention.steps.breaker import Delivered, find_brake
from s3_retention.steps.collecting import collects_rarely
from s3_retention.steps.feed import Feed
from s3_retention.steps.in_flight import InFlight
from s3_retention.steps.levers import LOOK_SECONDS, Levers
from s3_retention.steps.target_store import TargetStore
from s3_retention.steps.turns import takes_short_turns
from s3_retention.store import batches, failed_attempts, failures, ledger_entries, quarantine, row_entries
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from concurrent.futures import Future
    from datetime import timedelta

    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.sources.postgres_rows import PostgresRows
    from s3_retention.steps.attempt import Attempt
    from s3_retention.steps.decide_again import Delivery
    from s3_retention.store.batches import ClaimedBatch
    from s3_retention.store.connection import Connection

HEARTBEATS_PER_LEASE = 3
"""A worker that waits for the store renews its lease so often, that one lost heartbeat costs nothing."""


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """One delivery of one batch in counts.

    ``was_closed``: everything in it had been done before. ``may_pass``: what stopped it may be gone at the next try.
    """

    batch_id: int
    was_closed: bool = False
    num_by_outcome: dict[str, int] = field(default_factory=dict)
    num_failed: int = 0
    num_retryable: int = 0
    stopped_class: str | None = None
    stopped_message: str | None = None
    may_pass: bool = False


def stop(
    conn: Connection,
    batch_id: int,
    holder: Holder,
    *,
    lease: timedelta,
    stopped_class: str,
    stopped_message: str,
) -> None:
    """Stop a batch before its first delete: its policy or its store cannot be used, and no object is to blame."""
    with transaction(conn):
        batch = batches.claim(conn, batch_id, holder=holder, lease=lease)
        if batch is not None:
            batches.stop(conn, batch, stopped_class=stopped_class, stopped_message=stopped_message)


@collects_rarely()
@takes_short_turns()
def run(
    conn: Connection,
    gateway: S3Gateway,
    policy: RetentionPolicy,
    batch_id: int,
    holder: Holder,
    *,
    limits: RetryLimits | None = None,
    rows: PostgresRows | None = None,
) -> DeleteResult:
    """Claim the batch, delete what is unfinished in it and still to be deleted, and settle every outcome.

    ``rows`` are those of a policy of rows.
    The batch is stopped before its first delete when the policy is in mode simulate, or has other rules than
    its version was first used with. Raises ``ClaimLostError`` when another worker takes the batch meanwhile;
    nothing settled is lost then.
    """
    with transaction(conn):
        batch = batches.claim(conn, batch_id, holder=holder, lease=policy.window.lease)
        brake = None if batch is None else find_brake(conn, policy)
    if batch is None:
        return DeleteResult(batch_id, was_closed=True)
    delivered = Delivered(policy.limits.max_denied_share, stop=brake)
    if brake is None:
        delivered = _deliver(conn, gateway, policy, batch, holder, limits or RetryLimits(), rows)
    stopped = delivered.stop
    with transaction(conn):
        if stopped is not None:
            batches.stop(conn, batch, stopped_class=stopped.by, stopped_message=stopped.why)
        elif not batches.close(conn, batch_id, fence=batch.fence):
            batches.release(conn, batch)
    return DeleteResult(
        batch_id,
        num_by_outcome=dict(delivered.num_by_outcome),
        num_failed=delivered.num_failed,
        num_retryable=delivered.num_retryable,
        stopped_class=stopped.by if stopped else None,
        stopped_message=stopped.why if stopped else None,
        may_pass=stopped is not None and stopped.may_pass,
    )


def _deliver(
    conn: Connection,
    gateway: S3Gateway,
    policy: RetentionPolicy,
    batch: ClaimedBatch,
    holder: Holder,
    limits: RetryLimits,
    rows: PostgresRows | None,
) -> Delivered:
    """Keep up to ``batch.parallel`` requests in flight; settle each as it comes back, from this thread alone."""
    lease = policy.window.lease
    delivered = Delivered(policy.limits.max_denied_share)
    store = TargetStore.open(conn, gateway, policy)
    pace, has_rows = policy.batch, rows is not None
    feed = Feed(
        conn, batch, store.paced, pace.rate, limits.clock, pace.parallel_per_tenant, has_rows=has_rows
    )
    limits = replace(limits, ending=Event())
    with (
        ThreadPoolExecutor(max_workers=policy.batch.parallel, thread_name_prefix="delete") as pool,
        ExitStack() as leaving,
    ):
        # Before the threads are waited for, whatever is raised: a worker whose claim is lost tries nothing again.
        leaving.callback(limits.ending.set)
        in_flight = InFlight(gateway, policy, limits, store, feed, delivered, pool, rows)
        levers = Levers(policy.name, feed, delivered, limits)
        heartbeat, beaten_at = lease.total_seconds() / HEARTBEATS_PER_LEASE, limits.clock()
        while True:
            if levers.is_stale:
                with transaction(conn):
                    levers.look(conn)
            in_flight.send()
            if not in_flight.sent and delivered.broken is not None:
                raise delivered.broken
            if not in_flight.sent and not in_flight.is_waiting:
                return delivered
            came_back = in_flight.wait(min(heartbeat, LOOK_SECONDS))
            if came_back is None:
                # The store takes its time: a live worker must not look like a dead one.
                if limits.clock() - beaten_at >= heartbeat:
                    with transaction(conn):
                        batches.renew(conn, batch, lease=lease)
                    beaten_at = limits.clock()
                continue
            # The store need not wait for the ledger, unless it is not known yet, or the last look is too old.
            if in_flight.condition is not None and not levers.is_stale:
                in_flight.send_next()
            _take_in(conn, batch, came_back, store, holder, lease, levers)
            beaten_at = limits.clock()


def _take_in(
    conn: Connection,
    batch: ClaimedBatch,
    came_back: dict[Future[Attempt], Delivery],
    store: TargetStore,
    holder: Holder,
    lease: timedelta,
    levers: Levers,
) -> None:
    # All is settled before anything that broke is raised: the store has acted on it. Each is let go with that: the next
    # ones take its place in memory, and are not held beside it.
    while came_back:
        future = next(iter(came_back))
        delivery = came_back.pop(future)
        if future.exception() is None:
            settle = partial(_settle, conn, batch, delivery, future.result(), store, holder, lease, levers)
            try:
                settle()
            except LedgerDuplicateError:
                # Nothing that is known puts an entry there. Where one is all the same, what the store has done to all
                # other objects of the delivery is not to be lost for it.
                settle(may_be_there=True)


def _settle(
    conn: Connection,
    batch: ClaimedBatch,
    delivery: Delivery,
    came: Attempt,
    store: TargetStore,
    holder: Holder,
    lease: timedelta,
    levers: Levers,
    *,
    may_be_there: bool = False,
) -> None:
    """Settle one delivery in one transaction; ``may_be_there``: some of it, in the ledger already."""
    failed = [one for one in came.attempted if not one[1].is_final]
    final = came.attempted if not failed else [one for one in came.attempted if one[1].is_final]
    # Not where none failed: what was not sent any more is neither final nor failed.
    is_whole = len(final) == len(delivery.commands)
    with transaction(conn):
        ledger_entries.settle(
            conn,
            batch,
            final,
            chunk_id=delivery.chunk_id,
            lease=lease,
            is_whole=is_whole,
            may_be_there=may_be_there,
        )
        if batch.kind == "redrive":
            quarantine.resolve(conn, batch_id=batch.batch_id, settled=final, holder=holder)
        if came.rows:
            row_entries.append(conn, batch, came.rows)
        if failed:
            failures.record(conn, batch.batch_id, failed)
        if came.num_failed_by_class:
            failed_attempts.add(conn, batch, came.num_failed_by_class)
        store.learn(conn, came)
        levers.look(conn)
