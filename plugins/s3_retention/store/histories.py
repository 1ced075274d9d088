"""What the ledger knows of one key, one run, or each policy: read only, for a person at a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_all

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


def list_history(conn: Connection, *, bucket: str, key: str) -> list[Row]:
    """List all that happened to a key, in order of time.

    Each row has ``happened_at``, ``event``, ``detail``, ``policy``, ``interval_key``, ``run``, ``acted_by`` and
    ``operation_id``; what does not apply is None.
    """
    return fetch_all(conn, "histories", "list_history", bucket=bucket, key=key)


def list_status(conn: Connection) -> list[Row]:
    """List how each policy stands that was ever enforced."""
    return fetch_all(conn, "histories", "list_status")


def list_reports(conn: Connection, name: str) -> list[Row]:
    """List the reports on an interval, by its key, or of a run, by its id."""
    return fetch_all(conn, "histories", "list_reports", name=name)
