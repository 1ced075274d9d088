"""How the tenants of a plan share its batches, in temporary tables of this session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_one, run

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection

_TABLE = "plan_tenants"


def begin(conn: Connection) -> None:
    """Start a plan from nothing: unless something is laid, its chunks go to the batches in turn."""
    for name in ("create_plan_layout", "clear_plan_layout"):
        run(conn, _TABLE, name)


def lay(conn: Connection, *, batch_size: int, chunks_per_batch: int) -> None:
    """Lay the chunks that were cut into batches, fairly, where several tenants share the plan.

    No chunk may hold more than ``batch_size`` commands.
    """
    row = fetch_one(conn, _TABLE, "are_several_tenants")
    if row is not None and row["are_several"]:
        run(conn, _TABLE, "lay_chunks", batch_size=batch_size, chunks_per_batch=chunks_per_batch)
