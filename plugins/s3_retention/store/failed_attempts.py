"""The table ``failed_attempts``: how often single objects failed under a claim, by class."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.core.holder import Holder
    from s3_retention.store.batches import ClaimedBatch
    from s3_retention.store.connection import Connection


def add(conn: Connection, batch: ClaimedBatch, num_by_class: Mapping[str, int]) -> None:
    """Add failed attempts by class; the caller holds the fence."""
    run(
        conn,
        "failed_attempts",
        "add_attempts",
        batch_id=batch.batch_id,
        fence=batch.fence,
        failure_classes=list(num_by_class),
        attempts=list(num_by_class.values()),
    )


def count(conn: Connection, *, holder: Holder) -> Counter[str]:
    """Count the failed attempts of a run by class, those that a later attempt made good included."""
    rows = fetch_all(conn, "failed_attempts", "count_attempts", dag_id=holder.dag_id, run_id=holder.run_id)
    return Counter({row["failure_class"]: row["num_attempts"] for row in rows})
