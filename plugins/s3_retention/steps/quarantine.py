"""The one place where quarantine is written: sweeps what the workers of a run left unfinished."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.store import batches, quarantine
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Collection

    from s3_retention.core.holder import Holder
    from s3_retention.store.batches import BatchState
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
            move = quarantine.return_redriven if batch.kind == "redrive" else quarantine.park_unfinished
            num_by_class.update(move(conn, batch_id=batch.batch_id, holder=holder))
            batches.close(conn, batch.batch_id, fence=fence)
        num_batches += 1
    return QuarantineResult(num_batches, dict(num_by_class))


def _is_abandoned(batch: BatchState, failed_map_indexes: Collection[int]) -> bool:
    if batch.closed_at is not None:
        return False
    if batch.kind == "redrive":
        return True
    if batch.stopped_class is not None:
        return False
    return batch.was_claimed or batch.map_index in failed_map_indexes
