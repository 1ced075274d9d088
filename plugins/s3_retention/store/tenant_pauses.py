"""The table ``tenant_pauses``: while a tenant is paused, nothing of it is deleted, and all others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Collection

    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

_TABLE = "tenant_pauses"


def insert(
    conn: Connection, *, policy: str | None, tenant: str, reason: str, holder: Holder, acted_by: str
) -> int | None:
    """Pause a tenant in one policy, or in all where it is None: the id; None when it is paused so already."""
    row = fetch_one(
        conn,
        _TABLE,
        "insert_pause",
        policy=policy,
        tenant=tenant,
        reason=reason,
        acted_by=acted_by,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
    )
    return row["pause_id"] if row else None


def find_of_run(conn: Connection, *, holder: Holder) -> int | None:
    """Find the pause that a run has placed."""
    row = fetch_one(conn, _TABLE, "find_pause_of_run", dag_id=holder.dag_id, run_id=holder.run_id)
    return row["pause_id"] if row else None


def find_open(conn: Connection, *, policy: str | None, tenant: str) -> Row | None:
    """Find the pause in exactly this policy, or in all: ``pause_id``, ``paused_by``."""
    return fetch_one(conn, _TABLE, "find_open_pause", policy=policy, tenant=tenant)


def lift(conn: Connection, *, policy: str | None, tenant: str, reason: str, acted_by: str) -> bool:
    """Lift the pause in exactly this policy, or in all; False when there is none."""
    return run(conn, _TABLE, "lift_pause", policy=policy, tenant=tenant, reason=reason, acted_by=acted_by) > 0


def find_paused(conn: Connection, *, policy: str, tenants: Collection[str]) -> frozenset[str]:
    """Find those of these tenants that are paused in a policy."""
    rows = fetch_all(conn, _TABLE, "list_paused", policy=policy, tenants=list(tenants))
    return frozenset(row["tenant"] for row in rows)


def sum_open(conn: Connection, *, max_rows: int) -> list[Row]:
    """Sum who is paused, by policy: ``policy``, ``num_tenants``, ``oldest_at``, and ``oldest``, at most so many.

    Each of these has ``tenant``, ``paused_at``, ``paused_by`` and ``reason``, as plain JSON values.
    """
    return fetch_all(conn, _TABLE, "sum_open_pauses", max_rows=max_rows)
