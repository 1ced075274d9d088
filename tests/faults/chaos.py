"""`make chaos`: every kill and every stall, many times, and a table of what was lost. Exit code 1 when anything was."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))

import psycopg
from psycopg.rows import dict_row
from rich.console import Console
from rich.progress import track
from rich.table import Table

from s3_retention.s3.gateway import S3Gateway
from s3_retention.store.connection import connect
from sandbox.ledger import Ledger, create_ledger
from sandbox.postgres import postgres
from sandbox.s3 import S3Server, s3_server
from sandbox.stack import temporary_folder
from tests.factories import World
from tests.faults.seam_list import SEAMS, STALLS
from tests.faults.story import FaultStory, Zygote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mypy_boto3_s3 import S3Client

ROUNDS = 10
AT_ONCE = 2
WIDTH = 110
"""The longest seam and its counts, also where there is no terminal."""


@dataclass(frozen=True)
class Strike:
    """One kill or stall."""

    act: str
    pipeline: str
    seam: str
    round_number: int

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.seam} (stopped)" if self.act == "stop" else self.seam


@dataclass
class Arena:
    """One Postgres and one store, in which each strike gets a ledger and a bucket of its own."""

    ledger: Ledger
    s3: S3Server
    admin: S3Client
    gateway: S3Gateway
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def strike(self, one: Strike, zygote: Zygote) -> tuple[Strike, Counter[str], list[str]]:
        """Do it: what is wrong afterwards, counted and in words."""
        bucket = f"t-{next(self.numbers):05d}"
        admin = self.admin
        admin.create_bucket(Bucket=bucket)
        ledger = self.ledger.fresh_ledger()
        root: psycopg.Connection[dict[str, Any]] = psycopg.connect(
            ledger.superuser_conninfo, row_factory=dict_row, autocommit=True
        )
        try:
            with closing(root), closing(connect(ledger.writer_conninfo)) as conn:
                world = World(conn, root, self.s3, admin, self.gateway, bucket)
                story = FaultStory(world, ledger, zygote, one.pipeline)
                if one.act == "stop":
                    late = story.stall(one.seam)
                else:
                    late = ()
                    story.strike(one.seam)
                    story.recover(is_retried=one.round_number % 2 == 0)
                verdict = story.judge()
        finally:
            ledger.drop()
            for page in admin.get_paginator("list_objects_v2").paginate(Bucket=bucket):
                for entry in page.get("Contents", []):
                    admin.delete_object(Bucket=bucket, Key=entry["Key"])
            admin.delete_bucket(Bucket=bucket)
        wrong = Counter(
            lost=len(verdict.lost),
            doubled=len(verdict.doubled) + len(late),
            unbalanced=len(verdict.unbalanced),
        )
        return one, wrong, [*verdict.lost, *verdict.doubled, *verdict.unbalanced, *late]


def strikes(rounds: int) -> Iterable[Strike]:
    """Give every strike of so many rounds; the recovery alternates from round to round."""
    for number in range(rounds):
        for act, listed in (("kill", SEAMS), ("stop", STALLS)):
            for pipeline, seams in listed.items():
                for seam in seams:
                    yield Strike(act, pipeline, seam, number)


def main(arguments: list[str] | None = None) -> int:
    """Strike, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.chaos", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="how often at each seam (default: %(default)s)"
    )
    rounds = parser.parse_args(arguments).rounds
    console = Console(width=WIDTH)
    started = time.monotonic()
    totals: dict[str, Counter[str]] = {}
    words: list[str] = []
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        database = stack.enter_context(postgres(folder / "postgres"))
        s3 = stack.enter_context(s3_server(folder / "s3", worker_buckets=["t-*"]))
        arena = Arena(create_ledger(database), s3, s3.admin_client(), S3Gateway(s3.worker_client()))
        zygotes: SimpleQueue[Zygote] = SimpleQueue()
        for _ in range(AT_ONCE):
            zygote = Zygote()
            stack.callback(zygote.close)
            zygotes.put(zygote)

        def strike(one: Strike) -> tuple[Strike, Counter[str], list[str]]:
            zygote = zygotes.get()
            try:
                return arena.strike(one, zygote)
            finally:
                zygotes.put(zygote)

        todo = list(strikes(rounds))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for one, wrong, said in track(
                pool.map(strike, todo), "Striking", total=len(todo), console=console
            ):
                totals.setdefault(one.name, Counter()).update(wrong, strikes=1)
                words += [f"{one.name}, round {one.round_number}: {word}" for word in said]
    console.print(table_of(totals))
    for word in words:
        console.print(word)
    console.print(f"{len(todo):,} strikes in {time.monotonic() - started:,.0f} s")
    return 1 if words else 0


def table_of(totals: dict[str, Counter[str]]) -> Table:
    """Make the table: a row for each seam, and one for all."""
    table = Table(title="Killed, or stopped past the lease, and recovered")
    table.add_column("seam", no_wrap=True)
    for name in ("kills", "lost", "doubled", "unbalanced"):
        table.add_column(name, justify="right")
    columns = ("strikes", "lost", "doubled", "unbalanced")
    for name, counts in totals.items():
        table.add_row(name, *(str(counts[column]) for column in columns))
    table.add_section()
    everything: Counter[str] = Counter()
    for counts in totals.values():
        everything.update(counts)
    table.add_row("all", *(f"{everything[column]:,}" for column in columns))
    return table


if __name__ == "__main__":
    sys.exit(main())
