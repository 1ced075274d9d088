"""What a table of rows must be like: its columns and their types, asked of the catalogue of its database."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from s3_retention.core.policy_rows import ReferenceTo
from s3_retention.errors import RowsError
from s3_retention.sources.sql_parts import TYPES

if TYPE_CHECKING:
    from typing import Any

    import psycopg

    from s3_retention.core.policy_rows import Rows

_COLUMNS = (
    "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
)
_IS_NULLABLE = (
    "SELECT EXISTS (SELECT 1 FROM pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attname = %s AND NOT attnotnull)"
)
# Those that cascade, or set something, let the row go.
_REFUSING_KEYS = (
    "SELECT nspname || '.' || relname, array_agg(attname::text ORDER BY attnum)"
    " FROM pg_constraint INNER JOIN pg_class ON conrelid = pg_class.oid"
    " INNER JOIN pg_namespace ON relnamespace = pg_namespace.oid"
    " INNER JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY(conkey)"
    " WHERE contype = 'f' AND confrelid = to_regclass(%s) AND confdeltype IN ('a', 'r') AND conparentid = 0"
    " GROUP BY pg_constraint.oid, nspname, relname ORDER BY 1, 2"
)
_IS_UNIQUE = (
    "SELECT EXISTS (SELECT 1 FROM pg_index INNER JOIN pg_attribute"
    " ON pg_index.indrelid = pg_attribute.attrelid AND pg_attribute.attnum = pg_index.indkey[0]"
    " WHERE pg_index.indrelid = to_regclass(%s) AND pg_index.indisunique AND pg_index.indisvalid"
    " AND pg_index.indnkeyatts = 1 AND pg_index.indpred IS NULL AND pg_attribute.attname = %s)"
)


def read_types(conn: psycopg.Connection[Any], rows: Rows, tenant_column: str | None) -> dict[str, str]:
    """Read the types of the columns that are ids, keys or references, by ``table.column``.

    Raises ``RowsError`` for a table or a column that is not there, one of a type that is not read, and an id that is
    not unique.
    """
    types: dict[str, str] = {}
    tables = {rows.table: _columns_of(conn, rows.table)}
    for reference in rows.references:
        tables.setdefault(reference.table, _columns_of(conn, reference.table))
    named = [rows.id, *([rows.key.column or rows.key.url or ""] if rows.key.template is None else [])]
    read = [(rows.table, name) for name in named]
    read += [(one.table, one.column) for one in rows.references]
    for table, column in read:
        found = _type_of(tables, table, column)
        if found not in TYPES:
            raise RowsError(
                f"{table}.{column} is of type {found}, which is not read here; use {', '.join(TYPES)}"
            )
        types[f"{table}.{column}"] = TYPES[found]
    for name in filter(None, (rows.detached_at, rows.soft_delete)):
        found = _type_of(tables, rows.table, name)
        if found != "timestamp with time zone":
            raise RowsError(
                f"{rows.table}.{name} is of type {found}; make it timestamptz, whose values name an instant"
            )
    for name in filter(None, (*rows.key.columns, *(one.column for one in rows.orphaned), tenant_column)):
        _type_of(tables, rows.table, name)
    _refuse_other_types(rows, types)
    if not cast("tuple[bool]", conn.execute(_IS_UNIQUE, [quoted(rows.table), rows.id]).fetchone())[0]:
        raise RowsError(
            f"{rows.table}.{rows.id} has no unique index of its own, so that it may name two rows; name another "
            "column in source.rows.id"
        )
    if cast("tuple[bool]", conn.execute(_IS_NULLABLE, [quoted(rows.table), rows.id]).fetchone())[0]:
        raise RowsError(
            f"{rows.table}.{rows.id} may be NULL, so that a row may have no name; make it NOT NULL, or name another "
            "column in source.rows.id"
        )
    return types


def refuse_undeclared(conn: psycopg.Connection[Any], rows: Rows) -> None:
    """Make sure that no foreign key keeps a row whose object goes: it would be refused when that is gone.

    Raises ``RowsError`` for one that is not declared as a reference.
    """
    declared = {(one.table, one.column) for one in rows.references}
    for table, columns in conn.execute(_REFUSING_KEYS, [quoted(rows.table)]):
        if declared.isdisjoint((table, column) for column in columns):
            raise RowsError(
                f"{table}.{columns[0]} is a foreign key to {rows.table} that lets no row go which it names; add it to "
                "source.rows.references"
            )


def _refuse_other_types(rows: Rows, types: dict[str, str]) -> None:
    key = rows.key.column or rows.key.url
    of_key = "text" if key is None else types[f"{rows.table}.{key}"]
    for one in rows.references:
        wanted = of_key if one.to is ReferenceTo.KEY else types[f"{rows.table}.{rows.id}"]
        found = types[f"{one.table}.{one.column}"]
        if found != wanted:
            raise RowsError(
                f"{one.table}.{one.column} is of type {found}, and the {one.to.value} that it names of {wanted}"
            )


def _columns_of(conn: psycopg.Connection[Any], table: str) -> dict[str, str]:
    columns = dict(conn.execute(_COLUMNS, [quoted(table)]).fetchall())
    if not columns:
        raise RowsError(f"the table {table} is not in the database of the rows, or its role may not see it")
    return columns


def _type_of(tables: dict[str, dict[str, str]], table: str, column: str) -> str:
    if column not in tables[table]:
        raise RowsError(f"{table} has no column {column}: was it renamed? Correct source.rows, or the table")
    return tables[table][column]


def quoted(table: str) -> str:
    """Write a table's name for ``to_regclass``, which reads it as SQL would."""
    return ".".join(f'"{part}"' for part in table.split("."))
