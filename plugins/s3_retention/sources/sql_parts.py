"""The parts of statements on a table that only a policy knows: names as identifiers, casts, conditions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from psycopg import sql

from s3_retention.core.policy_rows import template_parts

if TYPE_CHECKING:
    from s3_retention.core.policy_rows import RowCondition, RowKey

CASTS = {
    "text": sql.SQL("text"),
    "uuid": sql.SQL("uuid"),
    "bigint": sql.SQL("bigint"),
    "integer": sql.SQL("integer"),
    "smallint": sql.SQL("smallint"),
}
TYPES = {"character varying": "text"} | {name: name for name in CASTS}
"""The types of columns that are read as ids, keys and references: what Postgres calls them, and we."""
_SIZES = {"smallint": 16, "integer": 32, "bigint": 64}
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_of_type(value: str, of: str) -> bool:
    """Say whether a text is one that a column of this type gives."""
    if of in _SIZES:
        limit = 2 ** (_SIZES[of] - 1)
        return _WHOLE.fullmatch(value) is not None and -limit <= int(value) < limit
    return of != "uuid" or _UUID.fullmatch(value) is not None


def sql_array(of: str) -> sql.Composed:
    """Give the cast by which a list of texts is one of this type."""
    return sql.SQL("::text[]::{}[]").format(CASTS[of])


def sql_name(column: str) -> sql.Identifier:
    """Name a column."""
    return sql.Identifier(column)


def sql_of(alias: sql.Composable | None, column: str) -> sql.Composable:
    """Name a column of a table or an alias; without one, the column alone."""
    return sql_name(column) if alias is None else sql.SQL("{}.{}").format(alias, sql_name(column))


def sql_time(alias: sql.Composable | None, column: str | None) -> sql.Composable:
    """Read a column of times: NULL without one, and where Python's calendar does not have the time, as infinity."""
    if column is None:
        return sql.SQL("NULL::timestamptz")
    return sql.SQL(
        "CASE WHEN {0} >= TIMESTAMPTZ '0001-01-02 00:00+00' AND {0} < TIMESTAMPTZ '9999-12-31 00:00+00' THEN {0} END"
    ).format(sql_of(alias, column))


def sql_table(table: str) -> sql.Identifier:
    """Name a table."""
    return sql.Identifier(*table.split("."))


def sql_key(key: RowKey, alias: sql.Composable | None) -> sql.Composable:
    """Write what a row says of its object: of a type that an index of the column knows.

    The texts of a template are the parameters ``key_<number>``.
    """
    if key.template is None:
        return sql_of(alias, key.column or key.url or "")
    # Of an empty column, the whole is empty.
    parts = [
        sql.SQL("{}::text").format(sql_of(alias, part) if is_column else sql.Placeholder(f"key_{number}"))
        for number, (is_column, part) in enumerate(template_parts(key.template))
    ]
    return sql.SQL("({})").format(sql.SQL(" || ").join(parts))


def sql_key_values(key: RowKey) -> dict[str, str]:
    """Give the parameters of a key."""
    parts = enumerate(template_parts(key.template or ""))
    return {f"key_{number}": part for number, (is_column, part) in parts if not is_column}


def sql_values(condition: RowCondition) -> tuple[object, ...]:
    """Give the values that a condition compares with."""
    return condition.one_of or (() if condition.equals is None else (condition.equals,))


def sql_condition(table: sql.Composable, number: int, condition: RowCondition) -> sql.Composed:
    """Test a column; its values are the parameters ``orphaned_<number>_<place>``."""
    column = sql_of(table, condition.column)
    if condition.is_null is not None:
        test = sql.SQL("{} IS NULL") if condition.is_null else sql.SQL("{} IS NOT NULL")
        return test.format(column)
    places = [sql.Placeholder(f"orphaned_{number}_{place}") for place, _ in enumerate(sql_values(condition))]
    return sql.SQL("{} IN ({})").format(column, sql.SQL(", ").join(places))
