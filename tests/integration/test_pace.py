"""All workers of a store and prefix share one pace, which the store's answers make slower and time makes quicker."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.s3.limits import RetryLimits
from s3_retention.steps import delete
from s3_retention.steps.levers import LOOK_SECONDS
from s3_retention.store import request_rates
from s3_retention.store.connection import connect
from s3_retention.store.request_rates import FIRST_RATE, FREE_RATE, MIN_RATE, STEP, PacedStore
from tests.factories import CLEANUP
from tests.fakes import asked, deleted, faulty_gateway

if TYPE_CHECKING:
    from sandbox.ledger import Ledger
    from tests.factories import World

STORE = PacedStore("http://store", "bucket", "exports/")
KEYS = [f"exports/2020-01/{number:02d}.json" for number in range(6)]


@pytest.fixture
def still(world: World) -> World:
    """A world whose ledger clock stands still."""
    at(world, 0)
    return world


def at(world: World, seconds: float) -> None:
    world.set_clock(f"timestamptz '2036-06-01 00:00:00+00' + interval '{seconds} seconds'")


def reserve(world: World, num_keys: int, max_rate: float | None = None) -> float:
    return request_rates.reserve(world.conn, STORE, num_keys=num_keys, max_rate=max_rate)


def rate(world: World) -> float | None:
    (row,) = world.rows("SELECT keys_per_second FROM s3_retention.request_rates")
    found: float | None = row["keys_per_second"]
    return found


def test_without_a_rate_nobody_waits_and_nothing_is_written(still: World) -> None:
    assert [reserve(still, 1000) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert still.rows("SELECT * FROM s3_retention.request_rates") == []


def test_a_rate_gives_each_request_its_turn(still: World) -> None:
    request_rates.start(still.conn, STORE, max_rate=100)
    assert [reserve(still, 50, 100) for _ in range(4)] == [0.0, 0.5, 1.0, 1.5]
    at(still, 10)
    assert reserve(still, 50, 100) == 0.0


def test_two_policies_of_one_prefix_share_the_lower_rate_and_another_prefix_has_its_own(still: World) -> None:
    request_rates.start(still.conn, STORE, max_rate=100)
    request_rates.start(still.conn, STORE, max_rate=50)
    request_rates.start(still.conn, STORE, max_rate=200)
    assert rate(still) == 50
    other = PacedStore("http://store", "bucket", "images/")
    assert request_rates.reserve(still.conn, other, num_keys=1000, max_rate=None) == 0.0


def test_a_store_that_asks_for_less_gets_half_once_a_second(still: World) -> None:
    for _ in range(5):
        request_rates.slow_down(still.conn, STORE, max_rate=None)
    assert rate(still) == FIRST_RATE / 2
    at(still, 1.5)
    request_rates.slow_down(still.conn, STORE, max_rate=None)
    assert rate(still) == FIRST_RATE / 4


def test_a_policy_with_a_rate_starts_under_it_when_the_store_asks_for_less(still: World) -> None:
    request_rates.slow_down(still.conn, STORE, max_rate=100)
    assert rate(still) == 50


def test_the_rate_never_falls_to_nothing(still: World) -> None:
    for second in range(30):
        at(still, 2 * second)
        request_rates.slow_down(still.conn, STORE, max_rate=None)
    assert rate(still) == MIN_RATE


def test_the_rate_rises_by_a_step_a_second_up_to_the_policy_and_no_further(still: World) -> None:
    request_rates.start(still.conn, STORE, max_rate=200)
    request_rates.slow_down(still.conn, STORE, max_rate=200)
    assert rate(still) == 100
    at(still, 2)
    reserve(still, 1, 200)
    assert rate(still) == 100 + 2 * STEP
    at(still, 60)
    reserve(still, 1, 200)
    assert rate(still) == 200


def test_without_a_rate_of_the_policy_the_limit_is_lifted_at_last(still: World) -> None:
    request_rates.slow_down(still.conn, STORE, max_rate=None)
    at(still, (FREE_RATE - FIRST_RATE / 2) / STEP - 1)
    reserve(still, 1)
    assert rate(still) is not None
    at(still, (FREE_RATE - FIRST_RATE / 2) / STEP + 1)
    reserve(still, 1)
    assert rate(still) is None
    assert reserve(still, 1000) == 0.0


def test_a_clock_that_jumps_back_costs_nothing_and_lowers_no_rate(still: World) -> None:
    at(still, 1_000_000)
    request_rates.start(still.conn, STORE, max_rate=100)
    reserve(still, 100, 100)
    at(still, 0)
    assert [reserve(still, 100, 100) for _ in range(2)] == [1.0, 2.0]
    assert rate(still) == 100


def test_a_store_that_asks_for_less_after_the_clock_jumped_back_gets_less(still: World) -> None:
    at(still, 1_000_000)
    request_rates.slow_down(still.conn, STORE, max_rate=None)
    reserve(still, 1000)
    at(still, 0)
    request_rates.slow_down(still.conn, STORE, max_rate=None)
    assert rate(still) == FIRST_RATE / 4
    assert reserve(still, 1000) == pytest.approx(2000 / FIRST_RATE)


def test_a_rate_that_the_policy_sets_holds_however_many_wait(still: World) -> None:
    request_rates.start(still.conn, STORE, max_rate=1)
    assert [reserve(still, 1000, 1) for _ in range(8)] == [1000.0 * place for place in range(8)]


def test_where_only_the_store_asked_for_less_nobody_waits_longer_than_an_hour(still: World) -> None:
    for second in range(30):
        at(still, 2 * second)
        request_rates.slow_down(still.conn, STORE, max_rate=None)
    assert max(reserve(still, 1000) for _ in range(50)) == 3600.0


def test_a_policy_without_a_rate_does_not_lift_that_of_another_one(still: World) -> None:
    request_rates.start(still.conn, STORE, max_rate=100)
    at(still, FREE_RATE / STEP)
    assert (reserve(still, 100), rate(still)) == (0.0, None)
    assert [reserve(still, 100, 100) for _ in range(3)] == pytest.approx([0.0, 1.0, 2.0], abs=0.01)


def test_the_turn_after_a_request_of_a_policy_with_a_rate_comes_at_that_rate(still: World) -> None:
    request_rates.start(still.conn, STORE, max_rate=100)
    at(still, 20)
    reserve(still, 1)
    assert rate(still) == 100 + 20 * STEP
    at(still, 60)
    assert [reserve(still, 100, 100) for _ in range(2)] == [0.0, 1.0]


def test_a_store_that_asks_for_less_never_raises_the_rate(still: World) -> None:
    request_rates.start(still.conn, STORE, max_rate=2)
    request_rates.slow_down(still.conn, STORE, max_rate=2)
    assert rate(still) == 2
    assert [reserve(still, 2, 2) for _ in range(3)] == [0.0, 1.0, 2.0]


def test_a_store_that_asks_for_less_halves_the_rate_of_the_policy_that_was_told(still: World) -> None:
    request_rates.start(still.conn, STORE, max_rate=100)
    at(still, FREE_RATE / STEP)
    reserve(still, 1)
    request_rates.slow_down(still.conn, STORE, max_rate=100)
    assert rate(still) == 50


def test_workers_that_reserve_at_once_never_get_the_same_turn(still: World, ledger: Ledger) -> None:
    request_rates.start(still.conn, STORE, max_rate=10)

    def work(_: int) -> list[float]:
        with closing(connect(ledger.writer_conninfo)) as own:
            return [request_rates.reserve(own, STORE, num_keys=1, max_rate=10) for _ in range(25)]

    with ThreadPoolExecutor(4) as pool:
        turns = sorted(turn for got in pool.map(work, range(4)) for turn in got)
    assert turns == pytest.approx([number / 10 for number in range(100)])


@dataclass
class Watch:
    """A clock that only sleeping moves."""

    now: float = 0.0
    sleeps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds

    def limits(self) -> RetryLimits:
        return RetryLimits(sleep=self.sleep, clock=lambda: self.now)


def deliver(world: World, batch: Any, watch: Watch) -> delete.DeleteResult:
    who = Holder(CLEANUP, "run-1", "delete", batch.map_index, 1)
    return delete.run(world.conn, world.gateway, world.policy, batch.batch_id, who, limits=watch.limits())


def test_a_batch_waits_for_its_turns_and_keeps_its_lease_meanwhile(still: World) -> None:
    still.put(*KEYS)
    paced = still.under(batch={"rate": 1, "parallel": 4}, window={"lease": "30s"})
    (batch,) = paced.planned().batches
    still.cut_chunks(2)
    watch = Watch()
    assert deliver(paced, batch, watch).num_by_outcome == {"deleted": 6}
    # The turns are at 0, 2 and 4 seconds; the ledger's clock stands still, and that of the worker goes on.
    assert watch.now == 2 + 4
    assert max(watch.sleeps) <= 10
    assert still.keys() == set()


def test_a_batch_that_waits_longer_than_a_heartbeat_renews_its_lease(still: World) -> None:
    still.put(*KEYS[:2])
    paced = still.under(batch={"rate": 1}, window={"lease": "30s"})
    (batch,) = paced.planned().batches
    store = PacedStore(still.gateway.endpoint, still.bucket, "exports/")
    request_rates.start(still.conn, store, max_rate=1)
    request_rates.reserve(still.conn, store, num_keys=25, max_rate=1)
    watch = Watch()
    lease_of = "SELECT claimed_until FROM s3_retention.batches"
    seen: list[Any] = []

    def sleep(seconds: float) -> None:
        seen.append(still.value(lease_of))
        at(still, watch.now + seconds)
        Watch.sleep(watch, seconds)

    watch.sleep = sleep  # type: ignore[method-assign]
    assert deliver(paced, batch, watch).num_by_outcome == {"deleted": 2}
    assert watch.sleeps == [LOOK_SECONDS] * 25
    # At its start, and after each third of the lease.
    assert seen == sorted(seen)
    assert len(set(seen)) == 3


def test_a_turn_that_comes_between_two_looks_at_the_clock_is_not_missed(still: World) -> None:
    still.put(*KEYS)
    paced = still.under(batch={"rate": 1, "parallel": 4})
    (batch,) = paced.planned().batches
    still.cut_chunks(2)
    watch = Watch()

    def clock() -> float:
        watch.now += 1.0  # each look takes its time
        return watch.now

    who = Holder(CLEANUP, "run-1", "delete", batch.map_index, 1)
    limits = RetryLimits(sleep=watch.sleep, clock=clock)
    result = delete.run(still.conn, still.gateway, paced.policy, batch.batch_id, who, limits=limits)
    assert result.num_by_outcome == {"deleted": 6}
    assert still.value("SELECT closed_at IS NOT NULL FROM s3_retention.batches")


def test_throttled_answers_slow_every_worker_down_and_are_counted_by_class(world: World) -> None:
    world.put(*KEYS)
    real = world.gateway.client.delete_objects
    answers = iter([deleted(errors=[(key, "SlowDown") for key in KEYS])])

    def first_slow(**arguments: Any) -> Any:
        return next(answers, None) or real(**arguments)

    report = world.through(faulty_gateway(world.gateway, delete_objects=first_slow)).clean()
    assert report.num_by_outcome == {"deleted": 6}
    assert report.num_failed_attempts_by_class == {"throttled": 6}
    assert rate(world) == FIRST_RATE / 2


def test_failed_attempts_are_counted_over_all_tries_of_a_run_and_for_each_run_alone(world: World) -> None:
    world.put(*KEYS)
    world.s3.deny(world.bucket, KEYS[:2])
    real = world.gateway.client.delete_objects
    answers = iter([deleted(errors=[(key, "InternalError") for key in KEYS])])

    def first_broken(**arguments: Any) -> Any:
        assert asked(arguments)
        return next(answers, None) or real(**arguments)

    there = world.through(faulty_gateway(world.gateway, delete_objects=first_broken))
    (batch,) = there.planned().batches
    there.delete(batch)
    there.delete(batch, try_number=2)
    there.sweep()
    assert there.report().num_failed_attempts_by_class == {"transient": 6, "permission": 4}
    assert there.redrive().num_failed_attempts_by_class == {"permission": 2}
