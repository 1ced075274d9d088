"""The table ``quarantine``: parked failures, and their return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.chunks import to_command
from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.holder import Holder
    from s3_retention.core.outcome import Outcome
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


def park_unfinished(conn: Connection, *, batch_id: int, holder: Holder) -> dict[str, int]:
    """Move every unfinished command of a cleanup batch here; counts by failure class."""
    return _counts(conn, "quarantine_unfinished", batch_id, holder)


def return_redriven(conn: Connection, *, batch_id: int, holder: Holder) -> dict[str, int]:
    """Let what a redrive batch could not end wait again; counts by failure class."""
    return _counts(conn, "return_redriven", batch_id, holder)


def _counts(conn: Connection, name: str, batch_id: int, holder: Holder) -> dict[str, int]:
    rows = fetch_all(conn, "quarantine", name, batch_id=batch_id, dag_id=holder.dag_id, run_id=holder.run_id)
    return {row["failure_class"]: row["num_objects"] for row in rows}


def select_for_redrive(
    conn: Connection,
    *,
    policy: str | None,
    failure_classes: Sequence[str] | None,
    operation_ids: Sequence[bytes] | None,
    max_commands: int,
) -> list[Row]:
    """Lock waiting rows that match all that is given: ``quarantine_id``, ``policy``, ``size`` of each."""
    return fetch_all(
        conn,
        "quarantine",
        "select_for_redrive",
        policy=policy,
        failure_classes=None if failure_classes is None else list(failure_classes),
        operation_ids=None if operation_ids is None else list(operation_ids),
        max_commands=max_commands,
    )


def assign(
    conn: Connection,
    *,
    batch_id: int,
    quarantine_ids: Sequence[int],
    holder: Holder,
    acted_by: str | None,
) -> int:
    """Give rows to a redrive batch; the number that it got."""
    return run(
        conn,
        "quarantine",
        "assign_to_redrive",
        batch_id=batch_id,
        quarantine_ids=list(quarantine_ids),
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        acted_by=acted_by,
    )


def list_redriven(conn: Connection, *, batch_id: int, after_id: int) -> list[DeleteCommand]:
    """List the open rows of a redrive batch behind ``after_id``: at most 1,000, by id."""
    rows = fetch_all(conn, "quarantine", "list_redriven_commands", batch_id=batch_id, after_id=after_id)
    return [to_command(row) for row in rows]


def resolve(
    conn: Connection,
    *,
    batch_id: int,
    settled: Sequence[tuple[DeleteCommand, Outcome, int]],
    holder: Holder,
) -> None:
    """Close the rows whose final entries were appended in this transaction."""
    run(
        conn,
        "quarantine",
        "resolve_redriven",
        batch_id=batch_id,
        quarantine_ids=[command.quarantine_id for command, _, _ in settled],
        outcomes=[outcome.kind.value for _, outcome, _ in settled],
        dag_id=holder.dag_id,
        run_id=holder.run_id,
    )
