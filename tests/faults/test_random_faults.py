"""One request in ten fails, in a way drawn by chance, from the first listing to the last delete."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from s3_retention.core.holder import Holder
from s3_retention.errors import BatchStoppedError, ListingError
from s3_retention.sources.s3_listing import S3Listing
from s3_retention.steps import delete
from sandbox.faults import Fault, Rule, Way, refusing
from tests.factories import CLEANUP, World

if TYPE_CHECKING:
    from s3_retention.steps.decide import PlanResult
    from tests.faults.conftest import Faulty

IS_LONG = bool(os.environ.get("S3_RETENTION_TEST_LONG"))
NUM_OBJECTS = 50_000 if IS_LONG else 5_000
PER_BATCH, PER_REQUEST = 1_000, 20
"""Few objects to a request, so that there are many requests for faults to hit; 50 to a batch, 8 of them at once."""
MAX_RUNS = 50
KEYS = [f"exports/2020-01/{number:05d}.json" for number in range(NUM_OBJECTS)]
BYSTANDERS = {"exports/2020-01/notes.txt", "exports-archive/2020-01/0.json", "exports/2999-01/0.json"}
UNLUCKY = frozenset(KEYS[::7])
DENIED = KEYS[417::1_000]
"""By the store itself, until the runs are over: these must wait in quarantine."""

WHOLE_REQUEST = (
    refusing(503, "SlowDown"),
    refusing(503, "SlowDown", Retry_After="3"),
    refusing(429, "TooManyRequests"),
    refusing(500, "InternalError"),
    refusing(500, "InternalError", is_acted_on=True),
    refusing(200, "InternalError", is_acted_on=True),
    Fault(Way.ANSWER),
    Fault(Way.ANSWER, is_acted_on=True),
    Fault(Way.RESET),
    Fault(Way.RESET, is_acted_on=True),
    Fault(Way.CUT, is_acted_on=True),
    refusing(400, "ExpiredToken"),
)
SINGLE_KEYS = tuple(
    Fault(way, is_acted_on, code=code, keys=UNLUCKY)
    for way, code in ((Way.KEYS, "InternalError"), (Way.KEYS, "SlowDown"), (Way.UNNAMED, ""))
    for is_acted_on in (False, True)
)
SHARE = 0.1


def rules() -> tuple[Rule, ...]:
    """Of ten requests one fails: mostly as a whole, else for the unlucky keys in it."""
    each = SHARE / (len(WHOLE_REQUEST) + len(SINGLE_KEYS))
    return (
        *(Rule(fault, operation="DeleteObjects", probability=each) for fault in SINGLE_KEYS),
        *(Rule(fault, probability=each) for fault in WHOLE_REQUEST),
        *(Rule(fault, operation="ListObjectsV2", probability=each) for fault in WHOLE_REQUEST[:6]),
    )


def plan(world: World, run: str) -> PlanResult:
    """Claim and plan, as often as Airflow would try the task again."""
    claim = world.claim(run)
    for _ in range(MAX_RUNS):
        with suppress(ListingError):
            source = S3Listing(world.gateway, world.bucket, "exports/")
            return world.plan(run, interval_id=claim.interval_id, source=source)
    raise AssertionError("no listing came through")


def clean(world: World, faulty: Faulty, run: str) -> bool:
    """A cleanup run; False where something of it was stopped, and is left to the next."""
    for batch in plan(world, run).batches:
        who = Holder(CLEANUP, run, "delete", batch.map_index, 1)
        delete.run(world.conn, world.gateway, world.policy, batch.batch_id, who, limits=faulty.limits)
    world.sweep(run)
    try:
        assert world.report(run).is_balanced
    except BatchStoppedError:
        return False
    return True


@pytest.mark.timeout(3600 if IS_LONG else 300)
def test_with_one_request_in_ten_failing_all_is_balanced_none_is_lost_and_none_is_doubled(
    world: World, faulty: Faulty
) -> None:
    world = world.under(batch={"size": PER_BATCH, "parallel": 8})
    world.put(*KEYS, *BYSTANDERS)
    world.s3.deny(world.bucket, DENIED)
    log = faulty.server.script(*rules(), seed=4)
    world = replace(world, gateway=faulty.gateway())
    plan(world, "run-1")
    world.cut_chunks(PER_REQUEST)
    num_runs = 1
    while not clean(world, faulty, f"run-{num_runs}"):
        assert world.balance()[0] == NUM_OBJECTS
        num_runs += 1
        assert num_runs < MAX_RUNS
    waiting = world.waiting()
    assert {waiting[key] for key in DENIED} == {"permission"}
    assert world.keys() == BYSTANDERS | set(waiting)
    world.s3.allow(world.bucket, DENIED)
    num_redrives = 0
    while world.waiting():
        num_redrives += 1
        assert num_redrives < MAX_RUNS
        with suppress(BatchStoppedError):
            world.redrive(f"redrive-{num_redrives}")
    # Chance did what it was asked for.
    met = Counter(one.fault for one in log if one.fault is not None)
    assert len(met) > len(WHOLE_REQUEST + SINGLE_KEYS) / 2
    assert SHARE / 2 < sum(met.values()) / len(log) < SHARE * 2
    # None lost, none doubled: one entry for each object, and the bucket agrees.
    outcomes = world.outcomes()
    assert set(outcomes) == set(KEYS)
    assert set(outcomes.values()) == {"deleted", "already_absent"}
    assert world.value("SELECT count(*) FROM s3_retention.ledger_entries") == NUM_OBJECTS
    assert world.keys() == BYSTANDERS
    assert world.balance()[0] == NUM_OBJECTS
    assert world.balance()[-2:] == (0, 0)
    assert world.value("SELECT count(*) FROM s3_retention.intervals") == 1
