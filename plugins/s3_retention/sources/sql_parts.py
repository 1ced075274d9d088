"""The parts of statements on a table that only a policy knows: names as identifiers, casts, conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

if TYPE_CHECKING:
    from s3_retention.core.policy_rows import RowCondition

CASTS = {
    "text": sql.SQL("text"),
    "uuid": sql.SQL("uuid"),
    "bigint": sql.SQL("bigint"),
    "integer": sql.SQL("integer"),
    "smallint": sql.SQL("smallint"),
}
TYPES = {"character varying": "text"} | {name: name for name in CASTS}
"""The types of columns that are read as ids, keys and references: what Postgres calls them, and we."""


def sql_array(of: str) -> sql.Composed:
    """Give the cast by which a list of texts is one of this type."""
    return sql.SQL("::text[]::{}[]").format(CASTS[of])


def sql_name(column: str) -> sql.Identifier:
    """Name a column."""
    return sql.Identifier(column)


def sql_of(alias: sql.Composable | None, column: str) -> sql.Composable:
    """Name a column of a table or an alias; without one, the column alone."""
    return sql_name(column) if alias is None else sql.SQL("{}.{}").format(alias, sql_name(column))


def sql_table(table: str) -> sql.Identifier:
    """Name a table."""
    return sql.Identifier(*table.split("."))


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
