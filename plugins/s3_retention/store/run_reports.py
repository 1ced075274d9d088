"""The table ``run_reports``, and the counts behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from s3_retention.core.capacity import RunFigures
from s3_retention.core.run_times import RunTimes
from s3_retention.core.tenant_counts import TenantCounts
from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


def count_commands(conn: Connection, *, holder: Holder) -> list[Row]:
    """Count where each command dealt to a run stands: ``outcome``, ``detail``, ``num_objects``, ``num_bytes``.

    ``detail`` is the reason of what was kept, the class of what failed or stopped, else None.
    """
    run_of = {"dag_id": holder.dag_id, "run_id": holder.run_id}
    return [
        *fetch_all(conn, "run_reports", "count_cleanup_commands", **run_of),
        *fetch_all(conn, "run_reports", "count_redriven_commands", **run_of),
    ]


def count_tenants(
    conn: Connection, *, holder: Holder, interval_id: int | None, generation: int, max_rows: int
) -> list[TenantCounts]:
    """Count what a run did of each tenant, and what waits of it by the plan of this generation of its interval.

    Those that are paused come first, then the largest: at most so many, and all others as one more.
    """
    rows = fetch_all(
        conn,
        "run_reports",
        "count_tenants",
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        interval_id=interval_id,
        generation=generation,
        max_rows=max_rows,
    )
    return [TenantCounts(**row) for row in rows]


def list_pending(conn: Connection, *, holder: Holder, max_rows: int) -> list[Row]:
    """List commands dealt to a run that nothing accounts for."""
    return fetch_all(
        conn,
        "run_reports",
        "list_pending_commands",
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        max_rows=max_rows,
    )


def time_run(conn: Connection, *, holder: Holder, triggered_at: datetime | None) -> RunTimes:
    """Look up when a run did what; of its plan nothing is known here."""
    (row,) = fetch_all(conn, "run_reports", "time_run", dag_id=holder.dag_id, run_id=holder.run_id)
    return RunTimes(triggered_at=triggered_at, planned_at=None, **row)


def hash_plan(conn: Connection, *, interval_id: int, generation: int) -> Row:
    """Hash a stored plan: ``plan_hash`` (32 bytes), ``rules_hash`` (hex) of what made it, and ``planned_at``."""
    (row,) = fetch_all(
        conn, "run_reports", "hash_stored_plan", interval_id=interval_id, generation=generation
    )
    return row


def insert(
    conn: Connection,
    *,
    holder: Holder,
    policy: str | None,
    interval_id: int | None,
    counts: Mapping[str, object],
    is_balanced: bool,
    figures: RunFigures | None,
) -> None:
    """Append what a run says at its end; ``figures`` are those of a cleanup."""
    run(
        conn,
        "run_reports",
        "insert_report",
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        policy=policy,
        interval_id=interval_id,
        counts=Jsonb(dict(counts)),
        is_balanced=is_balanced,
        unclaimed_since=figures.unclaimed_since if figures else None,
        num_drained=figures.num_drained if figures else None,
        num_remaining=figures.num_remaining if figures else None,
    )


def list_last_figures(conn: Connection, *, policy: str, max_rows: int) -> list[RunFigures]:
    """List what the last cleanup runs of a policy said, the oldest of them first."""
    rows = fetch_all(conn, "run_reports", "list_last_figures", policy=policy, max_rows=max_rows)
    return [RunFigures(**row) for row in reversed(rows)]
