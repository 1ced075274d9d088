"""The table ``batches``: the work of one mapped task, with its claim and fence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.errors import ClaimLostError
from s3_retention.store import claims
from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection


@dataclass(frozen=True, slots=True)
class DealtBatch:
    """A batch as its run sees it: ``map_index`` is its place in the mapped task."""

    batch_id: int
    batch_number: int
    num_commands: int
    map_index: int


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """A batch in the hands of one worker."""

    batch_id: int
    kind: str
    policy: str
    interval_id: int | None
    generation: int | None
    num_commands: int
    fence: int


@dataclass(frozen=True, slots=True)
class BatchState:
    """A batch as the sweep and the report see it."""

    batch_id: int
    batch_number: int
    kind: str
    policy: str
    interval_id: int | None
    generation: int | None
    map_index: int
    num_commands: int
    stopped_class: str | None
    stopped_message: str | None
    closed_at: datetime | None
    was_claimed: bool


@dataclass(frozen=True, slots=True)
class AbandonedBatch:
    """An open batch whose run is over: by its fence it is told whether that still holds."""

    batch_id: int
    kind: str
    dag_id: str
    run_id: str
    map_index: int
    fence: int


def deal(
    conn: Connection,
    *,
    interval_id: int,
    generation: int,
    holder: Holder,
    max_batches: int,
    max_commands: int,
) -> list[DealtBatch]:
    """Deal open batches of one plan to a run, in order and up to its limits; at least one where any is open."""
    rows = fetch_all(
        conn,
        "batches",
        "deal_batches",
        interval_id=interval_id,
        generation=generation,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        max_batches=max_batches,
        max_commands=max_commands,
    )
    return sorted((DealtBatch(**row) for row in rows), key=lambda batch: batch.map_index)


def insert_redrive(
    conn: Connection,
    *,
    policy: str,
    batch_number: int,
    num_commands: int,
    num_bytes: int,
    holder: Holder,
) -> DealtBatch:
    """Make one batch of a redrive, dealt to its run."""
    row = fetch_one(
        conn,
        "batches",
        "insert_redrive_batch",
        policy=policy,
        batch_number=batch_number,
        num_commands=num_commands,
        num_bytes=num_bytes,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        map_index=batch_number - 1,
    )
    if row is None:
        raise LookupError(batch_number)
    return DealtBatch(row["batch_id"], batch_number, num_commands, batch_number - 1)


def list_of_run(conn: Connection, *, holder: Holder) -> list[BatchState]:
    """List what was dealt to a run, in the order of its mapped task."""
    rows = fetch_all(conn, "batches", "list_batches_of_run", dag_id=holder.dag_id, run_id=holder.run_id)
    return [BatchState(**row) for row in rows]


def count_remaining(conn: Connection, *, interval_id: int, generation: int) -> int:
    """Count the commands in batches of one plan that are still open."""
    row = fetch_one(conn, "batches", "count_remaining", interval_id=interval_id, generation=generation)
    return int(row["num_commands"]) if row else 0


def get_policy(conn: Connection, batch_id: int) -> str:
    """Read the name of the policy of a batch. Raises ``LookupError`` when there is no such batch."""
    row = fetch_one(conn, "batches", "get_batch", batch_id=batch_id)
    if row is None:
        raise LookupError(f"batch {batch_id} is not in the ledger")
    return str(row["policy"])


def claim(conn: Connection, batch_id: int, *, holder: Holder, lease: timedelta) -> ClaimedBatch | None:
    """Take a batch under a new fence; None when it is closed, so that nothing is left to do.

    Raises ``ClaimLostError`` when the batch is dealt to another run, or a newer try of this run has had it.
    """
    row = fetch_one(
        conn,
        "batches",
        "claim_batch",
        batch_id=batch_id,
        claimed_by=str(holder),
        lease=lease,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        task_id=holder.task_id,
        map_index=holder.map_index,
        try_number=holder.try_number,
    )
    if row is None:
        found = fetch_one(conn, "batches", "get_batch", batch_id=batch_id)
        if found is not None and found["closed_at"] is None:
            raise ClaimLostError
        return None
    claims.record(conn, holder, fence=row["fence"], batch_id=batch_id)
    return ClaimedBatch(**row)


def stop(conn: Connection, batch: ClaimedBatch, *, stopped_class: str, stopped_message: str) -> None:
    """Mark the batch as stopped; what is left of it stays pending. Raises ``ClaimLostError``."""
    if not run(
        conn,
        "batches",
        "stop_batch",
        batch_id=batch.batch_id,
        fence=batch.fence,
        stopped_class=stopped_class,
        stopped_message=stopped_message,
    ):
        raise ClaimLostError


def renew(conn: Connection, batch: ClaimedBatch, *, lease: timedelta) -> None:
    """Renew the lease of a worker that waits. Raises ``ClaimLostError`` when the fence has moved on."""
    if not run(conn, "batches", "renew_batch", batch_id=batch.batch_id, fence=batch.fence, lease=lease):
        raise ClaimLostError


def release(conn: Connection, batch: ClaimedBatch) -> None:
    """Give the lease back."""
    run(conn, "batches", "release_batch", batch_id=batch.batch_id, fence=batch.fence)


def take_from_worker(conn: Connection, batch_id: int, *, holder: Holder) -> int | None:
    """Raise the fence over whoever works on an open batch of this run: the new fence.

    None when the batch is closed, is a cleanup's and stopped, or has been dealt to another run.
    """
    row = fetch_one(
        conn,
        "batches",
        "take_from_worker",
        batch_id=batch_id,
        claimed_by=str(holder),
        dag_id=holder.dag_id,
        run_id=holder.run_id,
    )
    if row is None:
        return None
    claims.record(conn, holder, fence=row["fence"], batch_id=batch_id)
    return int(row["fence"])


def list_abandoned(conn: Connection, *, policy: str, rescue_after: timedelta) -> list[AbandonedBatch]:
    """List open batches of runs of which nothing was heard for ``rescue_after`` beyond their leases."""
    rows = fetch_all(conn, "batches", "list_abandoned_batches", policy=policy, rescue_after=rescue_after)
    return [AbandonedBatch(**row) for row in rows]


def take_abandoned(conn: Connection, batch: AbandonedBatch, *, holder: Holder) -> int | None:
    """Raise the fence over a batch that was listed as abandoned: the new fence; None when it is no longer so."""
    row = fetch_one(
        conn,
        "batches",
        "take_abandoned_batch",
        batch_id=batch.batch_id,
        fence=batch.fence,
        dag_id=batch.dag_id,
        run_id=batch.run_id,
        claimed_by=str(holder),
    )
    if row is None:
        return None
    claims.record(conn, holder, fence=row["fence"], batch_id=batch.batch_id)
    return int(row["fence"])


def release_expired(conn: Connection) -> list[int]:
    """Give back leases that have run out; the ids of their batches."""
    return [row["batch_id"] for row in fetch_all(conn, "batches", "release_expired_batches")]


def close(conn: Connection, batch_id: int, *, fence: int) -> bool:
    """Close a batch with nothing left in it; False when something is left or the fence has moved on."""
    run(conn, "chunks", "close_settled_chunks", batch_id=batch_id)
    closed = fetch_one(conn, "batches", "close_batch", batch_id=batch_id, fence=fence) is not None
    if closed:
        run(conn, "failures", "delete_failures", batch_id=batch_id)
    return closed
