"""Quarantined commands that no plan holds: of rows that were corrected since, and of objects that no row names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.command import ID_SIZE, DeleteCommand
from s3_retention.store import command_rows, ledger_entries
from s3_retention.store.chunks import to_command
from s3_retention.store.statements import fetch_all, fetch_one

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.orphans import PlannedRows
    from s3_retention.store.connection import Connection


def list_rereadable(conn: Connection, *, policy: str, quarantine_ids: Sequence[int]) -> list[DeleteCommand]:
    """List those of these waiting commands that are of this policy and have rows on record."""
    rows = fetch_all(
        conn, "corrections", "list_rereadable", policy=policy, quarantine_ids=list(quarantine_ids)
    )
    return [to_command(row) for row in rows]


def supersede(
    conn: Connection,
    waiting: DeleteCommand,
    corrected: DeleteCommand,
    planned: PlannedRows,
    *,
    holder: Holder,
    acted_by: str | None,
    note: str | None,
) -> bool:
    """Put a corrected command in the place of one that waits; False where that is not waiting any more."""
    facts = corrected.facts
    row = fetch_one(
        conn,
        "corrections",
        "supersede_row",
        quarantine_id=waiting.quarantine_id,
        command_id=corrected.command_id,
        operation_id=corrected.operation_id,
        tenant=corrected.tenant,
        bucket=facts.ref.bucket,
        key=facts.ref.key,
        etag=facts.etag,
        size=facts.size,
        last_modified_at=facts.last_modified_at,
        due_at=corrected.due_at,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        acted_by=acted_by,
        note=note,
    )
    if row is None:
        return False
    ledger_entries.ensure_partition(conn, interval_id=waiting.interval_id)
    ledger_entries.append_kept(conn, [row["quarantine_id"]], reason="superseded")
    command_rows.insert(
        conn,
        interval_id=waiting.interval_id,
        generation=waiting.generation,
        command_id=corrected.command_id,
        planned=planned,
    )
    return True


def list_successors(conn: Connection, operation_ids: Sequence[bytes]) -> list[bytes]:
    """List the operations that have taken the place of these, and wait."""
    rows = fetch_all(conn, "corrections", "list_successors", operation_ids=list(operation_ids))
    return [row["operation_id"] for row in rows]


def find_interval(conn: Connection, *, policy: str) -> int | None:
    """Find the newest completed interval of a policy: its id."""
    row = fetch_one(conn, "corrections", "find_completed_interval", policy=policy)
    return None if row is None else row["interval_id"]


def park(
    conn: Connection,
    facts: ObjectFacts,
    *,
    policy: str,
    policy_version: str,
    interval_id: int,
    ids: bytes,
    tenant: str | None,
    due_at: datetime,
    code: str,
    holder: Holder,
    acted_by: str | None,
    note: str | None,
) -> bool:
    """Park an object as a command; False where it waits already. ``ids`` are those of ``DeleteCommand``."""
    row = fetch_one(
        conn,
        "corrections",
        "park_unnamed",
        policy=policy,
        policy_version=policy_version,
        interval_id=interval_id,
        command_id=ids[:ID_SIZE],
        operation_id=ids[ID_SIZE:],
        tenant=tenant,
        bucket=facts.ref.bucket,
        key=facts.ref.key,
        etag=facts.etag,
        size=facts.size,
        last_modified_at=facts.last_modified_at,
        due_at=due_at,
        code=code,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        acted_by=acted_by,
        note=note,
    )
    return row is not None
