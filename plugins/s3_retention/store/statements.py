"""Runs named queries: the one place where a query meets a connection, inside a transaction or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from s3_retention.store.connection import driver_errors
from s3_retention.store.queries import query

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection

Row = dict[str, Any]


def fetch_all(conn: Connection, table: str, name: str, /, **params: Any) -> list[Row]:
    """Run a query and give all its rows."""
    with driver_errors():
        return conn.execute(query(table, name), params).fetchall()


def fetch_one(conn: Connection, table: str, name: str, /, **params: Any) -> Row | None:
    """Run a query and give its first row, or None."""
    with driver_errors():
        return conn.execute(query(table, name), params).fetchone()


def fetch_arrays(conn: Connection, table: str, name: str, /, **params: Any) -> Row | None:
    """Run a query that gives one row of long arrays, or None; they come in the binary form, the quicker one."""
    with driver_errors():
        return conn.execute(query(table, name), params, binary=True).fetchone()


def run(conn: Connection, table: str, name: str, /, **params: Any) -> int:
    """Run a statement and give the number of rows that it touched."""
    with driver_errors():
        return conn.execute(query(table, name), params).rowcount
