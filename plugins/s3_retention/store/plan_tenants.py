"""How much of each tenant a plan takes, and how tenants share its batches, in temporary tables of this session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

_TABLE = "plan_tenants"


def cap(conn: Connection, *, max_commands: int, interval_id: int | None) -> None:
    """Keep what is decided to be due beyond so many commands of each tenant, the longest due first.

    Of a replay, ``interval_id`` is its interval, whose earlier plans count, too; any other plan is a first one.
    """
    run(conn, _TABLE, "cap_tenants", max_commands=max_commands, interval_id=interval_id)


def find_largest_share(conn: Connection) -> float | None:
    """Find of which tenant the largest part is due, and give that part: 0 to 1; None without tenants."""
    row = fetch_one(conn, _TABLE, "find_largest_share")
    return float(row["share"]) if row else None


def sum_by_tenant(conn: Connection, *, max_rows: int) -> list[Row]:
    """Sum what is due by tenant, the largest first: ``tenant``, ``num_objects``, ``num_bytes``, and what waits.

    That is ``num_over_cap`` and ``num_paused``.
    """
    return fetch_all(conn, _TABLE, "sum_by_tenant", max_rows=max_rows)


def begin(conn: Connection) -> None:
    """Start a plan from nothing: unless something is laid, its chunks go to the batches in turn."""
    for name in ("create_plan_layout", "clear_plan_layout"):
        run(conn, _TABLE, name)


def lay(conn: Connection, *, batch_size: int, chunks_per_batch: int, weights: Mapping[str, int]) -> None:
    """Lay the chunks that were cut into batches, fairly, where several tenants share the plan.

    No chunk may hold more than ``batch_size`` commands. ``weights`` is how many chunks a tenant lays in a turn, 1
    where it is not named.
    """
    row = fetch_one(conn, _TABLE, "are_several_tenants")
    if row is not None and row["are_several"]:
        run(
            conn,
            _TABLE,
            "lay_chunks",
            batch_size=batch_size,
            chunks_per_batch=chunks_per_batch,
            tenants=list(weights),
            weights=list(weights.values()),
        )
