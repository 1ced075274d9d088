"""What the documents tell an operator to run is run, as written, as the role that they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg
import pytest

from s3_retention.__main__ import app
from tests.factories import KEEP_LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.ledger import Ledger
    from tests.factories import World

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Whose SQL is for an application's database: test_orphaned_rows.py runs it there.
OF_AN_APPLICATION = "orphans.md"
# Done once for a server, not for a ledger that is there: test_roles.py does what they say.
OF_A_SERVER = ("CREATE ROLE", "CREATE DATABASE", "REVOKE ALL ON DATABASE", "GRANT CONNECT")


class Block(NamedTuple):
    """One block of SQL in a document, and the place where it begins."""

    place: str
    statement: str


def blocks() -> Iterator[Block]:
    for file in DOCS:
        if file.name == OF_AN_APPLICATION:
            continue
        text = file.read_text(encoding="utf-8")
        for found in re.finditer(r"^```sql\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text[: found.start()].count("\n") + 1
            for statement in filter(str.strip, found[1].split(";\n")):
                if not statement.startswith(OF_A_SERVER):
                    yield Block(f"{file.name}:{line}", statement)


@pytest.fixture
def used(world: World) -> World:
    """A ledger with something in most of its tables."""
    world = world.under(keep=KEEP_LATEST)
    keys = [f"exports/2020-0{month}/a.json" for month in range(1, 6)]
    world.put(*keys)
    world.s3.deny(world.bucket, keys[:1])
    world.clean()
    world.select()
    return world


def test_each_statement_runs_as_the_reader_or_where_it_changes_something_as_the_writer(
    used: World, ledger: Ledger
) -> None:
    used.root.execute("DROP ROLE IF EXISTS test_docs_reader, test_docs_writer")
    for name in ("reader", "writer"):
        used.root.execute(f"CREATE ROLE test_docs_{name} LOGIN IN ROLE s3_retention_{name}".encode())
    failed, num_run = [], 0
    for block in blocks():
        changes = re.search(r"\b(INSERT INTO|UPDATE s3_retention|DELETE FROM)\b", block.statement)
        role = f"test_docs_{'writer' if changes else 'reader'}"
        num_run += 1
        with psycopg.connect(ledger.postgres.conninfo(role, ledger.database)) as conn:
            try:
                conn.execute(block.statement.encode())
            except psycopg.Error as error:
                failed.append(f"{block.place}: {error}")
            conn.rollback()
    assert failed == []
    assert num_run > 25


def test_each_command_that_a_document_names_is_one() -> None:
    known = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    named = {
        found[1]
        for file in DOCS
        for found in re.finditer(r"python -m s3_retention ([a-z-]+)", file.read_text(encoding="utf-8"))
    }
    assert named <= known
    assert {"explain", "export", "simulate", "status"} <= named
