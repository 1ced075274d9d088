"""The orphaned rows of one scan and the objects that they name, in temporary tables of this session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.queries import query
from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.orphans import OrphanRow
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

_TABLE = "plan_rows"


def begin(conn: Connection) -> None:
    """Start a scan from nothing."""
    for name in (
        "create_plan_rows",
        "clear_plan_rows",
        "create_plan_orphans",
        "create_plan_orphans_key",
        "clear_plan_orphans",
        "create_plan_orphan_commands",
        "clear_plan_orphan_commands",
    ):
        run(conn, _TABLE, name)


def copy(conn: Connection, rows: Iterable[OrphanRow]) -> None:
    """Take in one page of rows."""
    with conn.cursor().copy(query(_TABLE, "copy_plan_rows")) as target:
        target.set_types(("text", "text", "timestamptz", "text", "text"))
        for row in rows:
            target.write_row((row.row_id, row.named, row.detached_at, row.tenant, row.kept_by))


def date_by_sightings(conn: Connection, *, policy: str, now: datetime) -> None:
    """Date rows whose table tells no time: by when a scan of this policy first saw them, ``now`` at the latest."""
    run(conn, "orphan_sightings", "forget_sightings", policy=policy)
    run(conn, "orphan_sightings", "insert_sightings", policy=policy, now=now)
    run(conn, "orphan_sightings", "date_plan_rows", policy=policy)


def group(conn: Connection) -> None:
    """Make one object of all rows that name it."""
    run(conn, _TABLE, "group_plan_rows")


def list_orphans(conn: Connection, *, after: int) -> list[Row]:
    """List up to 1,000 objects behind a place: ``place``, ``named``, ``detached_at``, ``tenant``, ``kept_by``."""
    return fetch_all(conn, _TABLE, "list_plan_orphans", after_id=after)


def copy_commands(conn: Connection, found: Iterable[tuple[int, ObjectFacts]]) -> None:
    """Take in one page of objects that may be due, by their places."""
    with conn.cursor().copy(query(_TABLE, "copy_plan_orphan_commands")) as target:
        target.set_types(("int8", "text", "text", "text", "int8", "timestamptz"))
        for place, facts in found:
            ref = facts.ref
            target.write_row((place, ref.bucket, ref.key, facts.etag, facts.size, facts.last_modified_at))


def store(conn: Connection, *, policy_version: str, interval_id: int, generation: int) -> None:
    """Store the rows of every command of the plan that this session has decided."""
    run(
        conn,
        _TABLE,
        "insert_command_rows",
        policy_version=policy_version,
        interval_id=interval_id,
        generation=generation,
    )
