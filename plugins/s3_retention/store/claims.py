"""The table ``claims``: who held what, under which fence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import run

if TYPE_CHECKING:
    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection


def record(
    conn: Connection,
    holder: Holder,
    *,
    fence: int,
    interval_id: int | None = None,
    generation: int = 0,
    batch_id: int | None = None,
) -> None:
    """Append one claim on an interval, on its replay of this generation, or on a batch."""
    run(
        conn,
        "claims",
        "insert_claim",
        interval_id=interval_id,
        generation=generation,
        batch_id=batch_id,
        fence=fence,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        task_id=holder.task_id,
        map_index=holder.map_index,
        try_number=holder.try_number,
    )
