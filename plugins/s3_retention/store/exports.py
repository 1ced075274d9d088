"""Reads one interval for an auditor: of one moment, and a page at a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from psycopg import IsolationLevel

from s3_retention.store.connection import driver_errors, transaction
from s3_retention.store.queries import query
from s3_retention.store.statements import fetch_all, fetch_one

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

PAGE_SIZE = 10_000


@contextmanager
def one_moment(conn: Connection) -> Iterator[None]:
    """Let every query of the block see the ledger as it is at the first."""
    conn.isolation_level = IsolationLevel.REPEATABLE_READ
    with transaction(conn):
        yield


def find_interval(conn: Connection, interval_key: str) -> Row | None:
    """Find an interval by its key, as a manifest describes it: with ``num_planned``, replays included."""
    return fetch_one(conn, "exports", "find_exported_interval", interval_key=interval_key)


def list_plans(conn: Connection, interval_id: int) -> list[Row]:
    """List its plans: ``generation`` and ``plan_hash`` in hex."""
    return fetch_all(conn, "exports", "list_exported_plans", interval_id=interval_id)


def stream_outcomes(conn: Connection, interval_id: int) -> Iterator[list[Row]]:
    """Give every command of an interval and where it stands, in pages; inside of ``one_moment``."""
    with driver_errors(), conn.cursor(name="export") as cursor:
        cursor.execute(query("exports", "stream_command_outcomes"), {"interval_id": interval_id})
        while page := cursor.fetchmany(PAGE_SIZE):
            yield page
