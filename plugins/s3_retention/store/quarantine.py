"""The table ``quarantine``: parked failures, and their return."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from s3_retention.store.chunks import to_command
from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.holder import Holder
    from s3_retention.core.outcome import Outcome
    from s3_retention.core.redrive import Selection
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

T = TypeVar("T")


def park_unfinished(conn: Connection, *, batch_id: int, holder: Holder) -> dict[str, int]:
    """Move every unfinished command of a cleanup batch here; counts by failure class."""
    return _counts(conn, "quarantine_unfinished", batch_id, holder)


def return_redriven(conn: Connection, *, batch_id: int, holder: Holder) -> dict[str, int]:
    """Let what a redrive batch could not end wait again; counts by failure class."""
    return _counts(conn, "return_redriven", batch_id, holder)


def _counts(conn: Connection, name: str, batch_id: int, holder: Holder) -> dict[str, int]:
    rows = fetch_all(conn, "quarantine", name, batch_id=batch_id, dag_id=holder.dag_id, run_id=holder.run_id)
    return {row["failure_class"]: row["num_objects"] for row in rows}


def select_for_redrive(conn: Connection, selection: Selection, max_redrives: Mapping[str, int]) -> list[Row]:
    """Lock waiting rows that match all that is given: ``quarantine_id``, ``policy``, ``size`` of each.

    ``max_redrives`` says by policy how often a row may be redriven; one that is not named has no limit.
    """
    return fetch_all(
        conn,
        "quarantine",
        "select_for_redrive",
        policies=list(max_redrives),
        max_redrives=list(max_redrives.values()),
        policy=selection.policy,
        failure_classes=_list(selection.failure_classes),
        operation_ids=_list(selection.raw_operation_ids),
        tenant=selection.tenant,
        code=selection.code,
        older_than=selection.older_than,
        interval_key=selection.interval_key,
        max_commands=selection.max_commands,
    )


def sum_by_cause(conn: Connection, quarantine_ids: Sequence[int]) -> list[Row]:
    """Sum rows: ``policy``, ``failure_class``, ``code``, ``num_commands``, ``oldest_at``."""
    return fetch_all(conn, "quarantine", "sum_by_cause", quarantine_ids=list(quarantine_ids))


def list_rows(conn: Connection, quarantine_ids: Sequence[int]) -> list[Row]:
    """List rows for a person: ``bucket``, ``key``, ``failure_class``, ``operation_id`` in hex."""
    return fetch_all(conn, "quarantine", "list_rows", quarantine_ids=list(quarantine_ids))


def count_redriven_too_often(conn: Connection, *, policy: str | None, max_redrives: Mapping[str, int]) -> int:
    """Count the waiting rows that only their operation id takes any more."""
    row = fetch_one(
        conn,
        "quarantine",
        "count_redriven_too_often",
        policies=list(max_redrives),
        max_redrives=list(max_redrives.values()),
        policy=policy,
    )
    return row["num_commands"] if row else 0


def list_intervals(conn: Connection, quarantine_ids: Sequence[int]) -> list[int]:
    """List the intervals to which rows belong: their ids."""
    rows = fetch_all(conn, "quarantine", "list_intervals_of_rows", quarantine_ids=list(quarantine_ids))
    return [row["interval_id"] for row in rows]


def waive(
    conn: Connection, quarantine_ids: Sequence[int], *, holder: Holder, acted_by: str, note: str
) -> list[int]:
    """Close rows undeleted: the ids of those that were closed, whose commands the caller ends."""
    rows = fetch_all(
        conn,
        "quarantine",
        "waive_rows",
        quarantine_ids=list(quarantine_ids),
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        acted_by=acted_by,
        note=note,
    )
    return [row["quarantine_id"] for row in rows]


def count_waived(conn: Connection, *, holder: Holder) -> int:
    """Count what a run has waived."""
    row = fetch_one(conn, "quarantine", "count_waived_of_run", dag_id=holder.dag_id, run_id=holder.run_id)
    return row["num_commands"] if row else 0


def count_redriven(conn: Connection, *, holder: Holder) -> list[Row]:
    """Count what a run took, and what of it ended: ``failure_class``, ``num_selected``, ``num_resolved``."""
    return fetch_all(
        conn, "quarantine", "count_redriven_by_class", dag_id=holder.dag_id, run_id=holder.run_id
    )


def _list(values: Sequence[T] | None) -> list[T] | None:
    return None if values is None else list(values)


def assign(
    conn: Connection,
    *,
    batch_id: int,
    quarantine_ids: Sequence[int],
    holder: Holder,
    acted_by: str | None,
    note: str | None = None,
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
        note=note,
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
