"""The statements on a table that only a policy knows.

They are composed of its names as identifiers and of parameters, by psycopg; no value and no name becomes a text of SQL.
What a file of the operator's holds is one condition in brackets: it is sent as a statement with parameters, of which
Postgres takes one alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

from s3_retention.core.policy_rows import ReferenceTo
from s3_retention.sources.sql_parts import (
    CASTS,
    is_of_type,
    sql_array,
    sql_condition,
    sql_key,
    sql_key_values,
    sql_name,
    sql_of,
    sql_table,
    sql_time,
    sql_values,
)

if TYPE_CHECKING:
    from typing_extensions import LiteralString

    from s3_retention.core.policy_rows import RowReference, Rows

_ROW = sql.Identifier("row")
_TRUE = sql.SQL("TRUE")


@dataclass(frozen=True, slots=True)
class RowStatements:
    """The statements on the table of one policy. ``types`` are those of its columns, by ``table.column``."""

    rows: Rows
    types: dict[str, str]
    tenant_column: str | None = None

    def page(self, *, is_first: bool, are_all: bool = False) -> sql.Composed:
        """Read rows behind ``after`` in the order of their ids: the orphaned ones, or all."""
        rows = self.rows
        chosen: sql.Composable = _TRUE if are_all else self._is_orphaned()
        behind: sql.Composable = (
            _TRUE if is_first else sql.SQL("{} > {}").format(sql_name(rows.id), self._after())
        )
        if are_all:
            kept: sql.Composable = sql.SQL(
                "CASE WHEN NOT {}.s3_retention_is_orphaned THEN 'attached' END"
            ).format(_ROW)
        else:
            kept = sql.SQL("CASE WHEN {} THEN 'attached' WHEN {} THEN 'referenced' END").format(
                self._has_attached_row(), self._is_referenced(_ROW)
            )
        return sql.SQL(
            "SELECT {id}::text, {key}::text, {detached_at}, {tenant}, {kept_by}"
            " FROM (SELECT *, {is_orphaned} IS TRUE AS s3_retention_is_orphaned FROM {table}"
            " WHERE {chosen} AND {behind} ORDER BY {order} LIMIT %(size)s) AS {row}"
            " ORDER BY {id}"
        ).format(
            id=sql_of(_ROW, rows.id),
            key=self._key(_ROW),
            detached_at=sql_time(_ROW, rows.detached_at),
            tenant=sql.SQL("{}::text").format(sql_of(_ROW, self.tenant_column))
            if self.tenant_column
            else sql.SQL("NULL::text"),
            kept_by=kept,
            is_orphaned=self._is_orphaned(),
            table=sql_table(rows.table),
            chosen=chosen,
            behind=behind,
            order=sql_name(rows.id),
            row=_ROW,
        )

    def count_attached(self) -> sql.Composed:
        """Count the rows that are no orphans."""
        return sql.SQL("SELECT count(*) FROM {} WHERE ({}) IS NOT TRUE").format(
            sql_table(self.rows.table), self._is_orphaned()
        )

    def lock(self) -> sql.Composed:
        """Wait for whoever is changing these rows, in the order of their ids. The next statement sees the outcome."""
        return sql.SQL("SELECT 1 FROM {} WHERE {} ORDER BY {} FOR UPDATE").format(
            sql_table(self.rows.table), self._has_id(), sql_name(self.rows.id)
        )

    def find(self) -> sql.Composed:
        """Find these rows, and every other row that names one of these objects."""
        rows = self.rows
        return sql.SQL(
            "SELECT {id}::text, {key}::text, {detached_at}, ({is_orphaned}) IS TRUE FROM {table}"
            " WHERE {has_id} OR {key} = ANY(%(names)s{as_keys})"
        ).format(
            id=sql_name(rows.id),
            key=self._key(),
            detached_at=sql_time(None, rows.detached_at),
            is_orphaned=self._is_orphaned(),
            table=sql_table(rows.table),
            has_id=self._has_id(),
            as_keys=sql_array(self._key_type),
        )

    def find_references(self, reference: RowReference) -> sql.Composed:
        """Find which of these keys or ids another table names."""
        column = sql_name(reference.column)
        return sql.SQL("SELECT DISTINCT {0}::text FROM {1} WHERE {0} = ANY(%(values)s{2})").format(
            column, sql_table(reference.table), sql_array(self._type(reference.table, reference.column))
        )

    def mark(self) -> sql.Composed:
        """Set the soft delete of these rows where they are still orphaned; ``takes_over``: also where it is set."""
        mark = sql_name(self.rows.soft_delete or "")
        return sql.SQL(
            "UPDATE {} SET {mark} = now() WHERE {} AND {} AND ({mark} IS NULL OR %(takes_over)s) RETURNING {mark}"
        ).format(sql_table(self.rows.table), self._has_id(), self._is_orphaned(), mark=mark)

    def unmark(self) -> sql.Composed:
        """Take the soft delete of these rows back; of those with a name, where they still name it.

        ``set_at``: where it was set then; NULL for whenever that was.
        """
        table = sql_table(self.rows.table)
        return sql.SQL(
            "UPDATE {table} SET {mark} = NULL FROM unnest(%(ids)s{as_ids}, %(names)s::text[])"
            " AS planned (s3_retention_id, s3_retention_named)"
            " WHERE {table}.{id} = planned.s3_retention_id AND {table}.{mark} IS NOT NULL"
            " AND (planned.s3_retention_named IS NULL OR {key}::text = planned.s3_retention_named)"
            " AND (%(set_at)s::timestamptz[] IS NULL OR {table}.{mark} = ANY(%(set_at)s::timestamptz[]))"
        ).format(
            table=table,
            mark=sql_name(self.rows.soft_delete or ""),
            as_ids=sql_array(self._id_type),
            id=sql_name(self.rows.id),
            key=self._key(table),
        )

    def delete(self) -> sql.Composed:
        """Delete these rows where they still are the orphans that were planned."""
        rows, table = self.rows, sql_table(self.rows.table)
        same: sql.Composable = _TRUE
        if rows.detached_at is not None:
            same = sql.SQL("{}.{} = planned.s3_retention_detached_at").format(
                table, sql_name(rows.detached_at)
            )
        return sql.SQL(
            "DELETE FROM {table} USING unnest(%(ids)s{as_ids}, %(names)s::text[], %(detached_ats)s::timestamptz[])"
            " AS planned (s3_retention_id, s3_retention_named, s3_retention_detached_at)"
            " WHERE {table}.{id} = planned.s3_retention_id AND {key}::text = planned.s3_retention_named"
            " AND {same} AND {is_orphaned} AND NOT {is_referenced}"
            " RETURNING {table}.{id}::text"
        ).format(
            table=table,
            as_ids=sql_array(self._id_type),
            id=sql_name(rows.id),
            key=self._key(table),
            same=same,
            is_orphaned=self._is_orphaned(),
            is_referenced=self._is_referenced(table),
        )

    def find_left(self) -> sql.Composed:
        """Find which of these rows are still there."""
        return sql.SQL("SELECT {}::text FROM {} WHERE {}").format(
            sql_name(self.rows.id), sql_table(self.rows.table), self._has_id()
        )

    def condition(self) -> sql.Composed:
        """Test the condition of an operator's file without its brackets: one that closes them itself is no SQL then."""
        return sql.SQL("SELECT 1 FROM {} WHERE\n{}\n").format(sql_table(self.rows.table), self._written())

    def reads_id(self, row_id: str) -> bool:
        """Say whether a row of this table can have this id: another version of the policy may have had another one."""
        return is_of_type(row_id, self._id_type)

    def parameters(self) -> dict[str, object]:
        """Give what the policy's own texts and values are sent as: those of the key, and of the condition."""
        values: dict[str, object] = dict(sql_key_values(self.rows.key))
        for number, one in enumerate(self.rows.orphaned):
            for place, value in enumerate(sql_values(one)):
                values[f"orphaned_{number}_{place}"] = value
        return values

    @property
    def _id_type(self) -> str:
        return self._type(self.rows.table, self.rows.id)

    @property
    def _key_type(self) -> str:
        column = self.rows.key.column or self.rows.key.url
        return "text" if column is None else self._type(self.rows.table, column)

    def _type(self, table: str, column: str) -> str:
        return self.types[f"{table}.{column}"]

    def _after(self) -> sql.Composed:
        return sql.SQL("%(after)s::text::{}").format(CASTS[self._id_type])

    def _has_id(self) -> sql.Composed:
        return sql.SQL("{}.{} = ANY(%(ids)s{})").format(
            sql_table(self.rows.table), sql_name(self.rows.id), sql_array(self._id_type)
        )

    def _key(self, alias: sql.Composable | None = None) -> sql.Composable:
        return sql_key(self.rows.key, alias)

    def _written(self) -> sql.SQL:
        # An operator's own file, as a view of theirs would be. A percent sign is no parameter of it.
        written = self.rows.orphaned_sql
        text: LiteralString = "TRUE" if written is None else written.text.replace("%", "%%")
        return sql.SQL(text)

    def _is_orphaned(self) -> sql.Composed:
        if self.rows.orphaned_sql is not None:
            return sql.SQL("(\n{}\n)").format(self._written())
        table = sql_table(self.rows.table)
        tests = [sql_condition(table, number, one) for number, one in enumerate(self.rows.orphaned)]
        return sql.SQL("({})").format(sql.SQL(" AND ").join(tests))

    def _has_attached_row(self) -> sql.Composed:
        other = sql.Identifier("other")
        return sql.SQL(
            "EXISTS (SELECT 1 FROM (SELECT * FROM {table} WHERE ({is_orphaned}) IS NOT TRUE) AS {other}"
            " WHERE {other_key} = {key})"
        ).format(
            table=sql_table(self.rows.table),
            is_orphaned=self._is_orphaned(),
            other=other,
            other_key=self._key(other),
            key=self._key(_ROW),
        )

    def _is_referenced(self, alias: sql.Composable) -> sql.Composed:
        found: list[sql.Composable] = [
            sql.SQL("EXISTS (SELECT 1 FROM {} AS reference WHERE reference.{} = {})").format(
                sql_table(one.table),
                sql_name(one.column),
                self._key(alias) if one.to is ReferenceTo.KEY else sql_of(alias, self.rows.id),
            )
            for one in self.rows.references
        ]
        return sql.SQL("({})").format(sql.SQL(" OR ").join(found or [sql.SQL("FALSE")]))
