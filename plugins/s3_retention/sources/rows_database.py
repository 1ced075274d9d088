"""The database of a policy's rows: opened for one transaction at a time, and its errors turned into ours."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from psycopg.rows import tuple_row

from s3_retention.errors import RowsError, RowsUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from typing import Any

LOCK_TIMEOUT_MS = 10_000
"""How long a delete waits for whoever is changing a row."""
IDLE_IN_TRANSACTION_MS = 30_000
_FIXES = {
    "42P01": "the table is not there, or its role may not see it",
    "3F000": "the schema is not there",
    "42703": "a column is not there: was it renamed?",
    "42501": "its role lacks a right (docs/orphans.md)",
    "25006": "it is read-only, such as a replica",
    "42883": "a value of source.rows.orphaned is of another type than its column",
    "42601": "the condition of source.rows.orphaned_sql is no SQL",
}
# Of other errors, the words of the server may show a value of a row; so may those of a trigger of the application.
_WITH_WORDS = ("0A", "25", "3D", "3F", "42", "54")
_RAISED = "exec_stmt_raise"
_AWAY = ("08", "57P", "53", "25P03", "57014", "55P03", "40")
"""Away or shutting down, out of means, too slow, a lock that was not to be had, or broken off for another one."""


@dataclass(frozen=True, slots=True)
class RowsDatabase:
    """A Postgres by its conninfo; ``name`` is that of the Airflow connection, for messages."""

    conninfo: str
    name: str
    statement_timeout: timedelta

    @contextmanager
    def transaction(self, *, is_read_only: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Open a connection for one transaction: committed at the end, rolled back when anything is raised.

        Raises ``RowsUnavailableError`` where the database is away or too slow, ``RowsError`` for what it refuses.
        """
        with self._errors(), closing(self._connect()) as conn:
            # Whatever the default of the role: a statement must see what those it has waited for have done.
            conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            if is_read_only:
                conn.read_only = True
            with conn.transaction():
                yield conn

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            conn: psycopg.Connection[Any] = psycopg.connect(
                self.conninfo, row_factory=tuple_row, autocommit=True, application_name="s3_retention"
            )
            timeouts = {
                "statement_timeout": int(self.statement_timeout.total_seconds() * 1000),
                "lock_timeout": LOCK_TIMEOUT_MS,
                "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_MS,
            }
            conn.execute("SET TIME ZONE 'UTC'")
            # A row that is hidden from the role may be the one that needs the object: an error, and no shorter list.
            conn.execute("SET row_security TO off")
            for setting, milliseconds in timeouts.items():
                conn.execute("SELECT set_config(%s, %s, false)", [setting, str(milliseconds)])
        except psycopg.Error:
            # Its words may hold a part of the password.
            raise RowsUnavailableError(
                f"the database of the rows cannot be reached: check the Airflow connection {self.name!r}, and that "
                "the server accepts its role"
            ) from None
        return conn

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            state = error.sqlstate or ""
            if state.startswith(_AWAY) or (isinstance(error, psycopg.OperationalError) and not state):
                raise RowsUnavailableError(
                    f"the database of the rows ({self.name}) went away or took too long (SQLSTATE {error.sqlstate}); "
                    "what was under way was rolled back"
                ) from error
            may_be_told = state.startswith(_WITH_WORDS) and error.diag.source_function != _RAISED
            words = f": {error.diag.message_primary}" if may_be_told else ""
            fix = _FIXES.get(state, "see docs/runbook.md")
            raise RowsError(
                f"the database of the rows ({self.name}) refused a statement{words} (SQLSTATE {error.sqlstate}): {fix}"
            ) from (error if may_be_told else None)
