"""The places at which a process can die with something half done, and the hooks that make it die or stand still there.

A seam lies right after each statement that writes (its transaction is open), right after each commit, and right after
each answer of the store.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg

from s3_retention.store import plan_candidates, queries, statements
from tests.fakes import AroundGateway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.outcome import Outcome

_WRITES = re.compile(r"\b(INSERT INTO|UPDATE s3_retention|DELETE FROM|COPY)\b|\bensure_ledger_partition\(")


def writing_queries() -> set[str]:
    """Name every query of the package that writes, as ``table.query``."""
    return {
        f"{file.stem}.{name}"
        for file in (queries.sql_dir() / "queries").glob("*.sql")
        for name in queries.names(file.stem)
        if _WRITES.search(queries.query(file.stem, name))
    }


class _Named(str):
    """The text of a query that knows its name."""

    __slots__ = ("name",)
    name: str


@dataclass
class Seams:
    """Calls ``at`` with the name of each seam that is passed, and with how often it was by then."""

    at: Callable[[str, int], None]
    visits: Counter[str] = field(default_factory=Counter)
    last_write: str = ""
    task: str = ""

    def pass_by(self, name: str) -> None:
        """Pass a seam of the task under way."""
        full = f"{self.task}: {name}"
        self.visits[full] += 1
        self.at(full, self.visits[full])

    def install(self) -> None:
        """Watch every statement and every commit of this process."""
        seams, writing = self, writing_queries()
        real_execute, real_transaction = psycopg.Connection.execute, psycopg.Connection.transaction
        real_copy = plan_candidates.copy

        def named(table: str, name: str) -> Any:
            text = _Named(queries.query(table, name))
            text.name = f"{table}.{name}"
            return text

        def execute(conn: Any, query: Any, *arguments: Any, **more: Any) -> Any:
            cursor = real_execute(conn, query, *arguments, **more)
            if isinstance(query, _Named) and query.name in writing:
                seams.wrote(query.name)
            return cursor

        def copy(*arguments: Any, **more: Any) -> None:
            real_copy(*arguments, **more)
            seams.wrote("plan_candidates.copy_plan_candidates")

        @contextmanager
        def transaction(conn: Any, *arguments: Any, **more: Any) -> Iterator[Any]:
            seams.last_write = ""
            with real_transaction(conn, *arguments, **more) as opened:
                yield opened
            if seams.last_write:
                seams.pass_by(f"commit of {seams.last_write}")

        statements.query = named  # type: ignore[attr-defined]
        plan_candidates.copy = copy
        psycopg.Connection.execute = execute  # type: ignore[method-assign,assignment]
        psycopg.Connection.transaction = transaction  # type: ignore[method-assign,assignment]

    def wrote(self, name: str) -> None:
        """Pass the seam after a statement that writes."""
        self.last_write = name
        self.pass_by(name)


@dataclass(frozen=True)
class SeamedStore(AroundGateway):
    """A gateway with a seam after each answer of the store."""

    seams: Seams

    def list_pages(self, bucket: str, prefix: str) -> Iterator[list[ObjectFacts]]:
        for page in self.real.list_pages(bucket, prefix):
            self.seams.pass_by("store: a page of the listing")
            yield page

    def read_clock(self, bucket: str) -> None:
        """Tell no time: the clock of the ledger is the test's own."""
        del bucket

    def look(self, ref: Any) -> Any:
        found = self.real.look(ref)
        self.seams.pass_by("store: a look")
        return found

    def delete_chunk(self, targets: Sequence[ObjectFacts], **how: Any) -> list[Outcome]:
        outcomes = self.real.delete_chunk(targets, **how)
        self.seams.pass_by("store: a delete")
        return outcomes
