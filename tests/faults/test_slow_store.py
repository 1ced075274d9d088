"""While a store takes its time, the ledger is left in peace: no transaction is open, and few connections are."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from s3_retention.sources.s3_listing import S3Listing
from s3_retention.store.connection import connect
from tests.factories import BY_KEY_DATE, KEEP_LATEST, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.faults import Request
    from sandbox.ledger import Ledger
    from tests.faults.conftest import Faulty

PATIENCE_SECONDS = 60
NUM_WORKERS = 32
KEYS = [f"exports/2020-01/{number:02d}.json" for number in range(NUM_WORKERS)]


@dataclass
class Onlooker:
    """Looks at the ledger's connections from the store, while it holds an answer; one look for each request.

    It holds ``num_together`` requests until so many wait, and looks then: whoever sent them waits for the store. Of
    several at once it holds deletes alone.
    """

    ledger: Ledger
    num_together: int = 1
    looks: list[list[dict[str, Any]]] = field(default_factory=list)
    operations: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._barrier = threading.Barrier(self.num_together, action=self._look)

    def __call__(self, request: Request) -> None:
        if self.num_together > 1 and request.operation != "DeleteObjects":
            return
        self.operations.add(request.operation)
        self._barrier.wait(PATIENCE_SECONDS)

    def _look(self) -> None:
        # A connection of its own: the request is held in a thread of the server.
        with closing(psycopg.connect(self.ledger.superuser_conninfo, row_factory=dict_row)) as conn:
            self.looks.append(
                conn.execute(
                    "SELECT state, xact_start FROM pg_stat_activity "
                    "WHERE datname = current_database() AND application_name = 's3_retention'"
                ).fetchall()
            )


def clean(world: World) -> None:
    world.claim()
    for batch in world.plan(source=S3Listing(world.gateway, world.bucket, "exports/")).batches:
        world.delete(batch)
    world.sweep()
    assert world.report().is_balanced


def redrive(world: World) -> None:
    world.s3.deny(world.bucket, KEYS[:2])
    (batch,) = world.planned().batches
    world.delete(batch)
    world.sweep()
    world.s3.allow(world.bucket, KEYS[:2])
    assert world.redrive().num_by_outcome == {"deleted": 2}


def replay(world: World) -> None:
    clean(world)
    world.put("exports/2020-01/new.json", "exports/2020-02/new.json")
    assert world.replay().num_by_outcome == {"deleted": 1}


@pytest.mark.parametrize(
    ("work", "operations"),
    [
        (clean, {"GetBucketVersioning", "HeadBucket", "ListObjectsV2", "HeadObject", "DeleteObjects"}),
        (redrive, {"GetBucketVersioning", "ListObjectsV2", "HeadObject", "DeleteObjects"}),
        (replay, {"GetBucketVersioning", "HeadBucket", "ListObjectsV2", "HeadObject", "DeleteObjects"}),
    ],
)
def test_no_transaction_is_open_while_the_store_has_a_request(
    world: World, faulty: Faulty, ledger: Ledger, work: Callable[[World], None], operations: set[str]
) -> None:
    onlooker = Onlooker(ledger)
    faulty.server.script(hold=onlooker)
    world = replace(world, gateway=faulty.gateway(2 * PATIENCE_SECONDS)).under(
        keep=KEEP_LATEST, age=BY_KEY_DATE
    )
    world.put(*KEYS[:4], *(key.replace("2020-01", "2020-02") for key in KEYS[:4]))
    work(world)
    assert onlooker.operations == operations
    assert len(onlooker.looks) >= len(operations)
    states = [(one["state"], one["xact_start"]) for look in onlooker.looks for one in look]
    assert set(states) == {("idle", None)}


def test_no_transaction_is_open_while_all_threads_of_a_task_wait_for_the_store(
    world: World, faulty: Faulty, ledger: Ledger
) -> None:
    world = replace(world, gateway=faulty.gateway(2 * PATIENCE_SECONDS)).under(
        batch={"size": 32, "parallel": 8}
    )
    world.put(*KEYS)
    (batch,) = world.planned().batches
    world.cut_chunks(4)
    onlooker = Onlooker(ledger, num_together=8)
    faulty.server.script(hold=onlooker)
    assert world.delete(batch).num_by_outcome == {"deleted": 32}
    # One connection for all eight threads, and it rests.
    assert onlooker.looks == [[{"state": "idle", "xact_start": None}]]


def test_32_mapped_workers_need_one_connection_each_and_no_more(
    world: World, faulty: Faulty, ledger: Ledger
) -> None:
    world = replace(world, gateway=faulty.gateway(2 * PATIENCE_SECONDS)).under(
        batch={"size": 1, "parallel": 8}
    )
    world.put(*KEYS)
    dealt = world.planned().batches
    assert len(dealt) == NUM_WORKERS
    world.root.execute("SELECT pg_terminate_backend(%s, 10_000)", [world.conn.info.backend_pid])
    # As many connections as there are workers, besides the test's own, and not one more.
    limit = sql.SQL("ALTER DATABASE {} CONNECTION LIMIT {}")
    world.root.execute(limit.format(sql.Identifier(ledger.database), sql.Literal(NUM_WORKERS + 1)))
    onlooker = Onlooker(ledger, num_together=NUM_WORKERS)
    faulty.server.script(hold=onlooker)
    with ExitStack() as opened, ThreadPoolExecutor(NUM_WORKERS) as pool:
        workers = [
            replace(world, conn=opened.enter_context(closing(connect(ledger.writer_conninfo)))) for _ in dealt
        ]
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            psycopg.connect(ledger.writer_conninfo)
        results = list(pool.map(lambda one: one[0].delete(one[1]), zip(workers, dealt, strict=True)))
    assert [result.num_by_outcome for result in results] == [{"deleted": 1}] * NUM_WORKERS
    (look,) = onlooker.looks
    assert [one["state"] for one in look] == ["idle"] * NUM_WORKERS
    assert world.keys() == set()
    assert world.balance() == (32, 32, 0, 0, 0, 0, 0)
