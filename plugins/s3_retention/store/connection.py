"""Opens the ledger, and turns the driver's errors into ours in one place."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from s3_retention.errors import (
    LedgerConflictError,
    LedgerDuplicateError,
    LedgerError,
    LedgerUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Connection = psycopg.Connection[dict[str, Any]]

_AWAY = ("08", "57P", "25P03")
"""Connection exceptions, a server that shuts down or starts, and one that ended a session which stood still."""
IDLE_IN_TRANSACTION = "30s"
"""A worker that is suspended in a transaction holds locks, and every other run of its policy would wait for it. Ours
are idle for milliseconds only, since none spans a call to the store."""
_DUPLICATE = "23505"
_CONFLICT = ("40", "55P03")
"""Deadlocks, serialization failures, and a lock that was not to be had."""


def connect(conninfo: str, *, is_read_only: bool = False) -> Connection:
    """Open a connection whose rows are dicts and whose times are UTC; the caller closes it.

    With ``is_read_only`` the ledger refuses whatever would change it.

    Raises ``LedgerUnavailableError``. The message carries no credential.
    """
    try:
        # Autocommit: a transaction is open only inside `transaction`, so none spans a call to the store.
        conn = psycopg.connect(
            conninfo, row_factory=dict_row, autocommit=True, application_name="s3_retention"
        )
        conn.execute("SET TIME ZONE 'UTC'")
        conn.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, false)", [IDLE_IN_TRANSACTION]
        )
        if is_read_only:
            conn.execute("SET default_transaction_read_only TO on")
    except psycopg.Error:
        # Its words may hold a part of the password.
        raise LedgerUnavailableError(
            "the ledger database cannot be reached: check the Airflow connection that "
            "[s3_retention] ledger_conn_id names, and that the server accepts its role"
        ) from None
    return conn


@contextmanager
def driver_errors() -> Iterator[None]:
    """Turn what psycopg raises into ours: no SQL text and no credential is in the message.

    A broken connection raises ``LedgerUnavailableError``, a deadlock or the like ``LedgerConflictError``, a row
    that is there already ``LedgerDuplicateError``, any other refusal ``LedgerError``, each with its SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html).
    """
    try:
        yield
    except psycopg.Error as error:
        state = error.sqlstate or ""
        if state.startswith(_AWAY) or (isinstance(error, psycopg.OperationalError) and not state):
            raise LedgerUnavailableError(
                f"the ledger database went away (SQLSTATE {error.sqlstate}); what was under way was rolled back, "
                "and the next try resumes"
            ) from error
        raised = LedgerConflictError if state.startswith(_CONFLICT) else LedgerError
        if state == _DUPLICATE:
            raised = LedgerDuplicateError
        constraint = error.diag.constraint_name
        # A fault of the driver has no words of the server; its own may show a value.
        words = error.diag.message_primary or type(error).__name__
        raise raised(
            f"the ledger refused a statement: {words} (SQLSTATE {error.sqlstate}"
            + (f", constraint {constraint})" if constraint else ")")
        ) from error


@contextmanager
def transaction(conn: Connection) -> Iterator[Connection]:
    """Run one transaction: committed at the end, rolled back when anything is raised.

    Raises what ``driver_errors`` does, for the beginning and the commit too.
    """
    with driver_errors(), conn.transaction():
        yield conn
