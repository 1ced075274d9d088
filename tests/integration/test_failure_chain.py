"""The failure chain of the third seed, word for word: a tick whose answer is lost, its retry, and a lease that expires.

> At 12:05, the tick claims 12:00-12:01 and hands it to the pool. At 12:05.2, the handler commits but the connection
> drops before the response. The scheduler retries at 12:06. The second request must find the existing key, report
> that the window is already accepted, and avoid creating a second lease. If the first lease expires while a worker is
> still running, the lease policy must prevent two workers from deleting the same record, usually by making the delete
> itself conditional on the claim token.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.errors import ClaimLostError, LedgerUnavailableError
from s3_retention.steps import claim
from s3_retention.store import connection
from s3_retention.store.connection import connect
from tests.factories import BY_LAST_MODIFIED, Pages, facts
from tests.fakes import AroundGateway

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.outcome import Outcome
    from s3_retention.steps.claim import ClaimResult
    from s3_retention.store.connection import Connection
    from sandbox.ledger import Ledger
    from tests.factories import World

NOON = datetime(2026, 10, 25, 12, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)
KEY = "cleanup:weekly_digests:2026-10-25T12:00:00+00:00:2026-10-25T12:01:00+00:00"
RECORD = "exports/2020-01/record.json"


@pytest.fixture
def noon(world: World) -> World:
    """The seed's schedule: a window of one minute, a safety delay of two, from noon on."""
    world = world.under(
        start_at=NOON.isoformat(),
        window={"width": "1m", "safety_delay": "2m", "lease": "1m"},
    )
    at(world, "12:05:00")
    return world


def at(world: World, time: str) -> None:
    world.set_clock(f"'2026-10-25T{time}Z'::timestamptz")


def leases(world: World) -> list[tuple[Any, ...]]:
    """Every claim on an interval: its key, the fence and the run."""
    rows = world.rows(
        "SELECT interval_key, claims.fence, run_id FROM s3_retention.claims "
        "INNER JOIN s3_retention.intervals USING (interval_id) WHERE claims.interval_id IS NOT NULL "
        "ORDER BY claim_id"
    )
    return [tuple(row.values()) for row in rows]


@contextmanager
def connection_that_drops_after_the_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = connection.transaction

    @contextmanager
    def dropping(conn: Connection) -> Iterator[Connection]:
        with real(conn):
            yield conn
        # It is committed; now the answer is lost on its way.
        at(world, "12:05:00.2")
        world.root.execute("SELECT pg_terminate_backend(%s)", [conn.info.backend_pid])
        with real(conn):
            pass

    with monkeypatch.context() as patched:
        patched.setattr(claim, "transaction", dropping)
        yield


def test_the_tick_of_12_05_claims_one_bounded_window(noon: World) -> None:
    got = noon.claim("tick-12:05")
    assert (got.status.value, got.interval_key) == ("claimed", KEY)


def test_the_handler_twice_with_the_same_idempotency_key_is_one_claim(noon: World) -> None:
    first = noon.claim("tick-12:05")
    assert noon.claim("tick-12:05") == first
    assert [key for key, _, _ in leases(noon)] == [KEY, KEY]
    assert noon.value("SELECT count(*) FROM s3_retention.intervals") == 1


def test_a_connection_that_drops_after_the_commit_is_retried_into_an_observation(
    noon: World, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connection_that_drops_after_the_commit(noon, monkeypatch), pytest.raises(LedgerUnavailableError):
        noon.claim("tick-12:05")
    assert leases(noon) == [(KEY, 1, "tick-12:05")]

    at(noon, "12:06:00")
    with closing(connect(ledger.writer_conninfo)) as again:
        retried = replace(noon, conn=again).claim("tick-12:05")
        assert (retried.status.value, retried.interval_key) == ("claimed", KEY)
        # The same run has it, under a new fence: no second window, and none is skipped.
        assert leases(noon) == [(KEY, 1, "tick-12:05"), (KEY, 2, "tick-12:05")]
        # Another tick finds the window accepted, and makes no lease of its own.
        at(noon, "12:06:30")
        other = replace(noon, conn=again).claim("tick-12:06")
        assert (other.status.value, other.interval_key) == ("observed", KEY)
        assert len(leases(noon)) == 2


def test_two_ticks_at_once_are_one_logical_claim(noon: World, ledger: Ledger) -> None:
    together = threading.Barrier(2)

    def tick(name: str) -> ClaimResult:
        with closing(connect(ledger.writer_conninfo)) as own:
            together.wait(10)
            return replace(noon, conn=own).claim(name)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(tick, ("tick-a", "tick-b")))
    assert sorted(result.status.value for result in results) == ["claimed", "observed"]
    assert {result.interval_key for result in results} == {KEY}
    assert len(leases(noon)) == 1


def test_records_around_the_cutoff_belong_to_exactly_one_window(noon: World) -> None:
    by_age = noon.under(age=BY_LAST_MODIFIED)
    cutoff = NOON + MINUTE - timedelta(days=30)
    around = [
        facts(f"exports/2020-01/{name}.json", bucket=noon.bucket, at=cutoff + timedelta(microseconds=micros))
        for name, micros in (("before", -1), ("at", 0), ("after", 1))
    ]
    by_age.claim("tick-12:05")
    by_age.plan("tick-12:05", source=Pages([around]))
    first = by_age.rows("SELECT key FROM s3_retention.commands")
    assert [row["key"] for row in first] == ["exports/2020-01/before.json"]
    end_all(by_age)
    by_age.report("tick-12:05")

    at(noon, "12:10:00")
    by_age.claim("tick-12:10")
    planned = by_age.plan("tick-12:10", source=Pages([around[1:]]))
    assert (planned.num_discovered, planned.num_stragglers) == (2, 0)


def end_all(world: World) -> None:
    """End every open command without a store."""
    world.root.execute(
        """
        INSERT INTO s3_retention.ledger_entries (
            interval_id, generation, command_id, operation_id, batch_id, fence, bucket, key, etag, size,
            last_modified_at, due_at, outcome, num_attempts
        )
        SELECT interval_id, generation, command_id, operation_id, batch_id, 1, bucket, key, etag, size,
            last_modified_at, due_at, 'deleted', 1
        FROM s3_retention.unfinished_commands
        """
    )
    world.root.execute(
        "UPDATE s3_retention.batches SET closed_at = s3_retention.clock() WHERE closed_at IS NULL"
    )


@dataclass(frozen=True)
class Overtaken(AroundGateway):
    """A worker whose lease runs out between the store's answer and its settle."""

    meanwhile: Any

    def delete_chunk(self, targets: Sequence[ObjectFacts], **how: Any) -> list[Outcome]:
        outcomes = self.real.delete_chunk(targets, **how)
        self.meanwhile()
        return outcomes


def test_a_lease_that_expires_under_a_running_worker_lets_no_two_workers_end_the_same_record(
    noon: World, ledger: Ledger
) -> None:
    """In the seed's words: the claim token is the fence, and the settle is conditional on it."""
    noon = noon.under(start_at="1970-01-01T00:00:00Z", window={"safety_delay": "2m", "lease": "1m"})
    # The store's objects are of today, so the ledger has to be, too.
    noon.set_clock("clock_timestamp() + interval '1 hour'")
    noon.put(RECORD)
    (batch,) = noon.planned("tick-12:05").batches
    reports = []

    def another_tick_rescues_it() -> None:
        noon.set_clock("clock_timestamp() + interval '1 hour 2 minutes'")
        with closing(connect(ledger.writer_conninfo)) as own:
            reports.append(replace(noon, conn=own).clean("tick-12:07"))

    overtaken: Any = Overtaken(noon.gateway, another_tick_rescues_it)
    with pytest.raises(ClaimLostError):
        noon.through(overtaken).delete(batch, "tick-12:05")
    # The record went once; that it was gone is what the rescuer found, and the only thing that is on record.
    assert reports[0].num_by_outcome == {"already_absent": 1}
    assert noon.outcomes() == {RECORD: "already_absent"}
    assert noon.balance() == (1, 0, 1, 0, 0, 0, 0)
    assert noon.keys() == set()


def test_a_later_retry_advances_the_watermark_and_no_window_is_skipped(noon: World) -> None:
    windows = []
    for minute in range(5, 9):
        at(noon, f"12:{minute:02}:00")
        tick = f"tick-12:{minute:02}"
        got = noon.claim(tick)
        noon.plan(tick, source=Pages([[facts("exports/2020-01/x.json", bucket=noon.bucket)]]))
        end_all(noon)
        noon.report(tick)
        windows.append(got.interval_key)
    starts = noon.rows(
        "SELECT to_char(starts_at, 'HH24:MI') AS s, to_char(ends_at, 'HH24:MI') AS e "
        "FROM s3_retention.intervals ORDER BY starts_at"
    )
    assert [(row["s"], row["e"]) for row in starts] == [
        ("12:00", "12:01"),
        ("12:01", "12:02"),
        ("12:02", "12:03"),
        ("12:03", "12:04"),
    ]
    assert len(set(windows)) == 4
    through = noon.value("SELECT to_char(completed_through, 'HH24:MI') FROM s3_retention.watermarks")
    assert through == "12:04"
