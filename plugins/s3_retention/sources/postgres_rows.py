"""Rows of a Postgres table whose objects are orphaned: read for a plan, checked before a delete, deleted after it.

No transaction here spans a call to the store: one reads a page, one checks and marks before the delete, one deletes the
rows after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psycopg import sql

from s3_retention.core.orphans import FoundRow, OrphanRow
from s3_retention.core.policy_rows import ReferenceTo
from s3_retention.errors import RowsError
from s3_retention.sources.row_columns import quoted, read_types, refuse_undeclared
from s3_retention.sources.rows_sql import RowStatements

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import Any

    import psycopg

    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.policy_rows import Rows
    from s3_retention.sources.rows_database import RowsDatabase

PAGE_SIZE = 1000
_MAY_DELETE = (
    "SELECT has_table_privilege(to_regclass(%(table)s), 'DELETE'),"
    " has_any_column_privilege(to_regclass(%(table)s), 'UPDATE'),"
    " current_setting('transaction_read_only') = 'off'"
)

Checked = tuple["list[FoundRow]", "set[str]"]
"""The rows that name an object, and which of their ids and keys another table names."""


@dataclass(slots=True)
class PostgresRows:
    """The rows of one policy. Threads may share it: each transaction has a connection of its own."""

    database: RowsDatabase
    rows: Rows
    tenant_column: str | None = None
    _statements: RowStatements | None = field(default=None, init=False)

    @classmethod
    def of(cls, database: RowsDatabase, policy: RetentionPolicy) -> PostgresRows:
        """Give the rows of a policy of this source."""
        rows = policy.source.rows
        if rows is None:
            raise RowsError(f"policy {policy.name}: source.type is not postgres_rows")
        return cls(database, rows, policy.tenant.column if policy.tenant is not None else None)

    def refuse_unfit(self, *, is_deleting: bool) -> None:
        """Make sure that the table is as the policy says; ``is_deleting``: and that rows can be deleted from it.

        Raises ``RowsError`` with what is wrong.
        """
        statements = self._known()
        with self.database.transaction() as conn:
            # Planned, not run: a condition that is no SQL, or of other types, is told before anything is decided.
            for statement in (statements.condition(), statements.page(is_first=True), statements.find()):
                parameters: dict[str, object] = {"size": 0, "ids": [], "names": []} | statements.parameters()
                conn.execute(sql.SQL("EXPLAIN {}").format(statement), parameters)
            if is_deleting:
                self._refuse_undeletable(conn)
                refuse_undeclared(conn, self.rows)

    def _refuse_undeletable(self, conn: psycopg.Connection[Any]) -> None:
        table = self.rows.table
        row = conn.execute(_MAY_DELETE, {"table": quoted(table)}).fetchone()
        may_delete, may_lock, is_writable = row or (False, False, False)
        if not is_writable:
            raise RowsError(
                f"the database of the rows ({self.database.name}) is read-only, such as a replica"
            )
        if not (may_delete and may_lock):
            raise RowsError(
                f"the role of {self.database.name} may not delete the rows of {table}: GRANT DELETE on it, and UPDATE "
                "on a column, by which rows are locked (docs/orphans.md)"
            )

    def read_clock(self) -> datetime:
        """Read the clock of the database."""
        with self.database.transaction(is_read_only=True) as conn:
            now: datetime = next(conn.execute("SELECT clock_timestamp()"))[0]
        return now

    def pages(self, *, are_all: bool = False, size: int = PAGE_SIZE) -> Iterator[list[OrphanRow]]:
        """Read the orphaned rows, or all, in the order of their ids: a page in a transaction of its own."""
        statements, after = self._known(), None
        while True:
            statement = statements.page(is_first=after is None, are_all=are_all)
            with self.database.transaction(is_read_only=True) as conn:
                parameters = {"size": size, "after": after} | statements.parameters()
                page = [OrphanRow(*row) for row in conn.execute(statement, parameters)]
            if page:
                yield page
            if len(page) < size:
                return
            after = page[-1].row_id

    def count_attached(self) -> int:
        """Count the rows that are no orphans."""
        statements = self._known()
        with self.database.transaction(is_read_only=True) as conn:
            row = conn.execute(statements.count_attached(), statements.parameters()).fetchone()
        return int(row[0]) if row else 0

    def look(self, *, row_ids: Sequence[str], names: Sequence[str]) -> Checked:
        """Find these rows, whatever else names these objects, and what another table names; nothing is locked."""
        with self.database.transaction(is_read_only=True) as conn:
            return self._look(conn, row_ids, names)

    def check(
        self,
        *,
        row_ids: Sequence[str],
        names: Sequence[str],
        decide: Callable[[list[FoundRow], set[str]], Collection[str]],
        takes_over: bool = False,
    ) -> set[datetime]:
        """Look at rows of this moment before their objects are deleted, in the first of two transactions.

        Whoever is changing one of them is waited for. ``decide`` gives the ids of those whose delete goes on: they are
        marked, where the policy has a column for that; ``takes_over``: those that another one has marked, too. Gives
        the time of these marks by the clock of the database, by which they are known; empty where none was set.
        """
        statements = self._known()
        with self.database.transaction() as conn:
            conn.execute(statements.lock(), {"ids": list(row_ids)})
            # A statement of its own: it sees what those who were waited for have done.
            going = decide(*self._look(conn, row_ids, names))
            if not going or self.rows.soft_delete is None:
                return set()
            parameters = {"ids": list(going), "takes_over": takes_over} | statements.parameters()
            return {row[0] for row in conn.execute(statements.mark(), parameters)}

    def delete(
        self, *, row_ids: Sequence[str], names: Sequence[str], detached_ats: Sequence[datetime]
    ) -> tuple[set[str], set[str]]:
        """Delete rows whose objects are gone, in the second transaction: the ids of those deleted, and of those left.

        What is no orphan any more, another one than was planned, or names another object now, is left.
        """
        statements = self._known()
        ids = list(row_ids)
        with self.database.transaction() as conn:
            conn.execute(statements.lock(), {"ids": ids})
            parameters = {
                "ids": ids,
                "names": list(names),
                "detached_ats": list(detached_ats),
            } | statements.parameters()
            deleted = {row[0] for row in conn.execute(statements.delete(), parameters)}
            left = {row[0] for row in conn.execute(statements.find_left(), {"ids": ids})}
        return deleted, left

    def unmark(
        self, marked: Iterable[tuple[str, str | None]], *, set_at: Collection[datetime] | None = None
    ) -> None:
        """Take the marks of rows back whose objects stay.

        Each is an id, and what the row must name still where another version of the policy has planned it, whose table
        may have been another one; None otherwise. ``set_at``: only marks of these times, which ``check`` gave.
        """
        if self.rows.soft_delete is None:
            return
        statements = self._known()
        known = [(row_id, named) for row_id, named in marked if statements.reads_id(row_id)]
        if known:
            ids = [row_id for row_id, _ in known]
            times = None if set_at is None else list(set_at)
            names = [named for _, named in known]
            parameters = {"ids": ids, "names": names, "set_at": times} | statements.parameters()
            with self.database.transaction() as conn:
                conn.execute(statements.lock(), {"ids": ids})
                conn.execute(statements.unmark(), parameters)

    def _look(self, conn: psycopg.Connection[Any], row_ids: Sequence[str], names: Sequence[str]) -> Checked:
        statements = self._known()
        parameters = {"ids": list(row_ids), "names": list(names)} | statements.parameters()
        found = [FoundRow(*row) for row in conn.execute(statements.find(), parameters)]
        referenced: set[str] = set()
        for reference in self.rows.references:
            by_key = reference.to is ReferenceTo.KEY
            values = list(names) if by_key else sorted({*row_ids, *(row.row_id for row in found)})
            rows = conn.execute(statements.find_references(reference), {"values": values})
            referenced |= {row[0] for row in rows}
        return found, referenced

    def _known(self) -> RowStatements:
        """Read the types of the columns once. Raises ``RowsError`` for what is not there, or does not fit."""
        if self._statements is None:
            with self.database.transaction(is_read_only=True) as conn:
                self._statements = RowStatements(
                    self.rows, read_types(conn, self.rows, self.tenant_column), self.tenant_column
                )
        return self._statements
