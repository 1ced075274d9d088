"""Deals the batches of a plan to a run: the same run always gets the same ones, each at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store import batches
from s3_retention.store.batches import DealtBatch

if TYPE_CHECKING:
    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.store.connection import Connection


def run(
    conn: Connection,
    policy: RetentionPolicy,
    holder: Holder,
    *,
    interval_id: int,
    generation: int,
    max_batches: int,
) -> tuple[DealtBatch, ...]:
    """Give what this run was dealt before, ended or not, else deal open batches up to its limits.

    What ended is given, too: Airflow binds a mapped task to its place, and a place must not come to mean another batch
    when the task before it is cleared alone. The caller holds the lock of the interval or of its replay.
    """
    return earlier(conn, holder, interval_id=interval_id, generation=generation) or tuple(
        batches.deal(
            conn,
            interval_id=interval_id,
            generation=generation,
            holder=holder,
            max_batches=max_batches,
            max_commands=policy.limits.max_commands_per_run,
        )
    )


def earlier(conn: Connection, holder: Holder, *, interval_id: int, generation: int) -> tuple[DealtBatch, ...]:
    """Give what this run was dealt of a plan before."""
    return tuple(
        DealtBatch(one.batch_id, one.batch_number, one.num_commands, one.map_index)
        for one in batches.list_of_run(conn, holder=holder)
        if (one.interval_id, one.generation) == (interval_id, generation)
    )
