"""Named versions while one request in eight fails: nothing is lost, nothing comes back, and what must stay stays."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from s3_retention.core.holder import Holder
from s3_retention.errors import BatchStoppedError, ListingError
from s3_retention.steps import delete
from sandbox.faults import Fault, Rule, Way, refusing
from tests.factories import CLEANUP, REDRIVE
from tests.integration.versioned import put, there, versioned_world

if TYPE_CHECKING:
    from tests.factories import World
    from tests.faults.conftest import Faulty

NUM_KEYS, PER_REQUEST, MAX_RUNS = 120, 10, 40
KEYS = [f"exports/2020-01/{number:03d}.json" for number in range(NUM_KEYS)]
FAULTS = (
    refusing(503, "SlowDown"),
    refusing(500, "InternalError"),
    refusing(500, "InternalError", is_acted_on=True),
    Fault(Way.ANSWER),
    Fault(Way.ANSWER, is_acted_on=True),
    Fault(Way.RESET),
    Fault(Way.RESET, is_acted_on=True),
    Fault(Way.CUT, is_acted_on=True),
)
SHARE = 0.12


def planned(world: World, run: str) -> None:
    claim = world.claim(run)
    for _ in range(MAX_RUNS):
        with suppress(ListingError):
            world.plan(run, interval_id=claim.interval_id)
            return
    raise AssertionError("no listing came through")


def deliver(world: World, faulty: Faulty, run: str, dag: str = CLEANUP) -> None:
    rows = world.rows(
        "SELECT batch_id, map_index FROM s3_retention.batches WHERE run_id = %(run)s AND closed_at IS NULL",
        run=run,
    )
    for row in rows:
        who = Holder(dag, run, "delete", row["map_index"], 1)
        delete.run(world.conn, world.gateway, world.policy, row["batch_id"], who, limits=faulty.limits)
    world.sweep(run, dag=dag)


def through(world: World, faulty: Faulty) -> World:
    """Clean and redrive until nothing is left to do; the world that was used."""
    log = faulty.server.script(*(Rule(fault, probability=SHARE / len(FAULTS)) for fault in FAULTS), seed=7)
    world = replace(world, gateway=faulty.gateway()).under(batch={"size": 100, "parallel": 4})
    for number in range(MAX_RUNS):
        run = f"run-{number}"
        planned(world, run)
        if number == 0:
            world.cut_chunks(PER_REQUEST)
        deliver(world, faulty, run)
        with suppress(BatchStoppedError):
            report = world.report(run)
            assert report.is_balanced
        world.select(f"redrive-{number}")
        deliver(world, faulty, f"redrive-{number}", REDRIVE)
        with suppress(BatchStoppedError):
            world.report_redrive(f"redrive-{number}")
        is_open = world.value("SELECT count(*) FROM s3_retention.batches WHERE closed_at IS NULL")
        if not is_open and not world.waiting() and number and report.num_discovered == 0:
            break
    else:
        raise AssertionError("it never came to an end")
    assert sum(one.fault is not None for one in log) > len(log) * SHARE / 3
    for row in world.rows("SELECT interval_id FROM s3_retention.balance"):
        assert world.balance(row["interval_id"])[-2:] == (0, 0)
    return world


def doubled(world: World) -> list[dict[str, object]]:
    """Versions of which more than one entry says that they are gone."""
    return world.rows(
        "SELECT key, version_id FROM s3_retention.ledger_entries WHERE outcome IN ('deleted', 'already_absent') "
        "GROUP BY key, version_id HAVING count(*) > 1"
    )


@pytest.mark.timeout(200)
def test_noncurrent_versions_go_and_every_latest_stays_whatever_fails(world: World, faulty: Faulty) -> None:
    versioned = versioned_world(world, None).under(keep_newest_noncurrent=1)
    ids = {key: put(versioned, key, "1", "2", "3", "4") for key in KEYS}
    through(versioned, faulty)
    assert there(versioned) == {(key, one) for key in KEYS for one in ids[key][-2:]}
    assert doubled(versioned) == []
    gone = versioned.rows(
        "SELECT version_id FROM s3_retention.ledger_entries WHERE outcome IN ('deleted', 'already_absent')"
    )
    assert {row["version_id"] for row in gone} == {one for key in KEYS for one in ids[key][:2]}


@pytest.mark.timeout(200)
def test_whole_histories_go_and_no_older_version_is_ever_the_latest_whatever_fails(
    world: World, faulty: Faulty
) -> None:
    versioned = versioned_world(world, None).under(versions="all")
    ids = {key: put(versioned, key, "1", "2", "3") for key in KEYS}
    latest = {key: ids[key][-1] for key in KEYS}
    real = versioned.admin

    def look(**_: object) -> None:
        found = real.list_object_versions(Bucket=versioned.bucket)
        seen = {one["Key"]: one["VersionId"] for one in found.get("Versions", []) if one["IsLatest"]}
        assert seen.items() <= latest.items()

    faulty.gateway().client.meta.events.register("before-call.s3.DeleteObjects", look, unique_id="look")
    try:
        through(versioned, faulty)
    finally:
        faulty.gateway().client.meta.events.unregister("before-call.s3.DeleteObjects", unique_id="look")
    assert there(versioned) == set()
    assert doubled(versioned) == []
