"""The table ``command_rows``: the rows for which a command was planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.orphans import PlannedRows
from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.store.connection import Connection


def list_of(conn: Connection, commands: Sequence[DeleteCommand]) -> dict[bytes, PlannedRows]:
    """List the rows of commands, by command id."""
    rows = fetch_all(
        conn,
        "command_rows",
        "list_command_rows",
        interval_ids=[command.interval_id for command in commands],
        generations=[command.generation for command in commands],
        command_ids=[command.command_id for command in commands],
    )
    return {
        row["command_id"]: PlannedRows(row["named"], tuple(row["row_ids"]), tuple(row["detached_ats"]))
        for row in rows
    }


def insert(
    conn: Connection, *, interval_id: int, generation: int, command_id: bytes, planned: PlannedRows
) -> None:
    """Write down the rows of a command that no plan holds."""
    run(
        conn,
        "command_rows",
        "insert_for_redrive",
        interval_id=interval_id,
        generation=generation,
        command_id=command_id,
        named=planned.named,
        row_ids=list(planned.row_ids),
        detached_ats=list(planned.detached_ats),
    )
