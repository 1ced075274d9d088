"""The two sides of an audit, in temporary tables of this session, and their differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.audit import Difference, Kind
from s3_retention.store.queries import query
from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from s3_retention.store.connection import Connection

_TABLE = "audit_sides"
_TYPES = {
    "copy_audit_rows": ("text", "text", "text", "text"),
    "copy_audit_orphans": ("text", "timestamptz", "text"),
    "copy_audit_objects": ("text", "bool", "timestamptz"),
}


def begin(conn: Connection) -> None:
    """Start an audit from nothing."""
    for name in (
        "create_audit_rows",
        "create_audit_orphans",
        "create_audit_objects",
        "create_audit_differences",
        "clear_audit_sides",
    ):
        run(conn, _TABLE, name)


def copy_rows(conn: Connection, rows: Iterable[tuple[str, str | None, str | None, str | None]]) -> None:
    """Take in one page of rows: id, key, and for one that cannot be compared its kind and why."""
    _copy(conn, "copy_audit_rows", rows)


def copy_orphans(conn: Connection, rows: Iterable[tuple[str, datetime | None, str | None]]) -> None:
    """Take in one page of orphaned rows: key, detach time, and by what the object is kept."""
    _copy(conn, "copy_audit_orphans", rows)


def copy_objects(conn: Connection, objects: Iterable[tuple[str, bool, datetime]]) -> None:
    """Take in one page of a listing: key, whether the policy selects it, and when it was last modified."""
    _copy(conn, "copy_audit_objects", objects)


def _copy(conn: Connection, name: str, rows: Iterable[tuple[object, ...]]) -> None:
    with conn.cursor().copy(query(_TABLE, name)) as target:
        target.set_types(_TYPES[name])
        for row in rows:
            target.write_row(row)


def compare(
    conn: Connection,
    *,
    policy: str,
    bucket: str,
    uploaded_before: datetime,
    due_before: datetime | None,
    retain: timedelta,
) -> None:
    """Find what the two sides do not agree on; without ``due_before``, nothing is overdue."""
    run(conn, "plan_candidates", "widen_work_mem")
    run(
        conn,
        _TABLE,
        "compare_audit_sides",
        policy=policy,
        bucket=bucket,
        uploaded_before=uploaded_before,
        due_before=due_before,
        retain=retain,
    )


def take_due(conn: Connection) -> None:
    """Take what this session has just decided to be due for overdue."""
    run(conn, _TABLE, "take_due_objects")


def count(conn: Connection) -> dict[Kind, int]:
    """Count the differences by kind."""
    rows = fetch_all(conn, _TABLE, "count_audit_differences")
    return {Kind(row["kind"]): row["num_found"] for row in rows}


def list_first(conn: Connection, kind: Kind, *, max_rows: int) -> list[Difference]:
    """List the first differences of one kind, in the order of the keys' bytes."""
    rows = fetch_all(conn, _TABLE, "list_audit_differences", kind=kind.value, max_rows=max_rows)
    return [Difference(kind, **row) for row in rows]
