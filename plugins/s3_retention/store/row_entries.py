"""The table ``row_entries``: what became of the rows of a command whose object is gone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.holder import Holder
    from s3_retention.store.batches import ClaimedBatch
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

SettledRow = tuple["DeleteCommand", str, str]
"""A command, one of its row ids, and ``deleted``, ``already_absent`` or ``left``."""


def append(conn: Connection, batch: ClaimedBatch, rows: Sequence[SettledRow]) -> None:
    """Append what became of rows; the caller holds the fence of their batch."""
    run(
        conn,
        "row_entries",
        "append_row_entries",
        batch_id=batch.batch_id,
        fence=batch.fence,
        interval_ids=[command.interval_id for command, _, _ in rows],
        generations=[command.generation for command, _, _ in rows],
        command_ids=[command.command_id for command, _, _ in rows],
        row_ids=[row_id for _, row_id, _ in rows],
        outcomes=[outcome for _, _, outcome in rows],
    )


def count_left(conn: Connection, *, since: datetime) -> list[Row]:
    """Count the rows that were left, by policy: ``num_rows``, ``newest_at``, and the newest ``row_id``."""
    return fetch_all(conn, "row_entries", "count_rows_left", starts_at=since)


def count(conn: Connection, *, holder: Holder) -> Counter[str]:
    """Count the rows of a run by what became of them."""
    rows = fetch_all(conn, "row_entries", "count_row_entries", dag_id=holder.dag_id, run_id=holder.run_id)
    return Counter({row["outcome"]: row["num_rows"] for row in rows})
