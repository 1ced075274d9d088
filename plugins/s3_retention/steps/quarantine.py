"""The one place where quarantine is written: sweeps what the workers of a run left unfinished.

``run`` is the run's own sweep. ``run_lost`` is the watch's, for runs that are over without having swept: killed,
deleted, timed out, or lost with their scheduler.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.holder import Holder
from s3_retention.store import batches, quarantine
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import timedelta

    from s3_retention.store.batches import AbandonedBatch, BatchState
    from s3_retention.store.connection import Connection


@dataclass(frozen=True, slots=True)
class QuarantineResult:
    """What the sweep moved: batches, and commands by failure class."""

    num_batches: int
    num_by_class: dict[str, int] = field(default_factory=dict)


def run(
    conn: Connection, holder: Holder, *, failed_map_indexes: Collection[int] = frozenset()
) -> QuarantineResult:
    """Move every unfinished command of this run's failed batches to quarantine, batch by batch.

    The ledger decides: a batch that a worker of this run claimed and did not close has failed, whatever
    Airflow shows. A batch that none claimed stays pending for the next run, unless Airflow says that its task
    failed (``failed_map_indexes``: a worker killed before its first statement). Stopped batches are left to
    the next run. Of a redrive, whose batches no other run resumes, everything that is left waits again.
    """
    num_batches = 0
    num_by_class: Counter[str] = Counter()
    for batch in batches.list_of_run(conn, holder=holder):
        if not _is_abandoned(batch, failed_map_indexes):
            continue
        with transaction(conn):
            # The fence first: from here on the worker, should it still live, can settle nothing.
            fence = batches.take_from_worker(conn, batch.batch_id, holder=holder)
            if fence is None:
                continue
            num_by_class.update(_move(conn, batch, holder, fence))
        num_batches += 1
    return QuarantineResult(num_batches, dict(num_by_class))


def run_lost(conn: Connection, *, policy: str, rescue_after: timedelta, rescuer: str) -> QuarantineResult:
    """Move what runs that are over left unfinished: a cleanup's to quarantine, a redrive's back to waiting.

    Airflow is not asked whether a run is over: it may have lost it. A run is over when for ``rescue_after`` beyond
    its leases no batch of it was claimed, settled, dealt or closed, and nobody holds its interval. Everything else
    is as in ``run``: stopped batches of a cleanup, and those that nobody claimed, are left to the next run. The
    rows carry the lost run, whose failure it was; the claim names the ``rescuer``.
    """
    num_batches = 0
    num_by_class: Counter[str] = Counter()
    for batch in batches.list_abandoned(conn, policy=policy, rescue_after=rescue_after):
        lost = Holder(batch.dag_id, batch.run_id, rescuer, batch.map_index)
        with transaction(conn):
            fence = batches.take_abandoned(conn, batch, holder=lost)
            if fence is None:
                continue
            num_by_class.update(_move(conn, batch, lost, fence))
        num_batches += 1
    return QuarantineResult(num_batches, dict(num_by_class))


def _move(conn: Connection, batch: BatchState | AbandonedBatch, holder: Holder, fence: int) -> dict[str, int]:
    """Move what is left of a batch and close it, under the fence that was just raised over it."""
    move = quarantine.return_redriven if batch.kind == "redrive" else quarantine.park_unfinished
    moved = move(conn, batch_id=batch.batch_id, holder=holder)
    batches.close(conn, batch.batch_id, fence=fence)
    return moved


def _is_abandoned(batch: BatchState, failed_map_indexes: Collection[int]) -> bool:
    if batch.closed_at is not None:
        return False
    if batch.kind == "redrive":
        return True
    if batch.stopped_class is not None:
        return False
    return batch.was_claimed or batch.map_index in failed_map_indexes
