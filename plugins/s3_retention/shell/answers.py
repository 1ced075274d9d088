"""How the commands of the shell answer: where they read, what they print, and with which exit code they end."""

from __future__ import annotations

import json
import sys
from contextlib import closing, contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from s3_retention.errors import LedgerUnavailableError, S3RetentionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


class Exit(IntEnum):
    """Exit codes; 2 is typer's own, for a command that is written wrongly."""

    GOOD = 0
    NOT_GOOD = 1
    """Nothing was found, or what was found is not as it should be."""
    LEDGER_AWAY = 3


Conninfo = Annotated[
    str,
    typer.Option(
        envvar="S3_RETENTION_LEDGER_CONNINFO",
        help="Connection to the ledger, of a reader or a writer: a libpq string or URL.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON: a list of objects, times in UTC.")]


@contextmanager
def open_ledger(conninfo: str, *, is_read_only: bool = True) -> Iterator[Connection]:
    """Open the ledger. Ends the program with a sentence and a code where it is away or refuses."""
    from s3_retention.store.connection import connect

    try:
        with closing(connect(conninfo, is_read_only=is_read_only)) as conn:
            yield conn
    except LedgerUnavailableError:
        fail("the ledger database cannot be reached: look at S3_RETENTION_LEDGER_CONNINFO", Exit.LEDGER_AWAY)
    except S3RetentionError as error:
        fail(str(error), Exit.NOT_GOOD)


def fail(message: str, code: Exit) -> NoReturn:
    """Say why on standard error and end."""
    typer.echo(message, err=True)
    raise typer.Exit(code)


def show(rows: Sequence[Row], columns: Sequence[str], *, as_json: bool) -> None:
    """Print rows, as a table of some columns or whole as JSON. A key may hold any character: none is interpreted."""
    if as_json:
        typer.echo(json.dumps(rows, default=str, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(say(row[name])) for name in columns))
    Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False).print(table)


WIDTH = 200
"""Columns of a table that goes to a file or a pipe."""


def say(value: Any) -> str:
    """Write a value for a person: nothing for None, times without their microseconds, controls as escapes."""
    if value is None:
        return ""
    if hasattr(value, "strftime"):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in str(value))
