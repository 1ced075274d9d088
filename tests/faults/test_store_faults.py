"""Every fault of the table, through the real steps: what the ledger, the quarantine and the bucket show."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from s3_retention import errors
from s3_retention.core.holder import Holder
from s3_retention.sources.s3_listing import S3Listing
from s3_retention.steps import delete
from tests.factories import CLEANUP, World
from tests.faults.fault_rows import TOGETHER, FaultRow, ListingRow, Wait
from tests.faults.fault_table import DELETE_FAULTS
from tests.faults.listing_table import LISTING_FAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.faults.conftest import Faulty

DELETES = [pytest.param(row, id=f"{row.scene.operation}: {row.fault}") for row in DELETE_FAULTS]
LISTINGS = [pytest.param(row, id=row.fault) for row in LISTING_FAULTS]


def assert_waits(waits: Sequence[float], bounds: Sequence[Wait]) -> None:
    assert len(waits) == len(bounds), waits
    assert all(least <= wait <= most for wait, (least, most) in zip(waits, bounds, strict=True)), waits


@pytest.mark.parametrize("row", DELETES)
def test_a_fault_of_the_store_ends_as_the_table_says_and_is_made_good_after_it(
    world: World, faulty: Faulty, row: FaultRow
) -> None:
    scene = row.scene
    world = world.under(**scene.policy)
    world.put(*scene.keys)
    (batch,) = world.planned().batches
    gateway = faulty.gateway(row.read_timeout)
    world.through(gateway).know_store()
    log = faulty.server.script(*row.rules)
    result = delete.run(
        world.conn,
        gateway,
        world.policy,
        batch.batch_id,
        Holder(CLEANUP, "run-1", "delete", batch.map_index, 1),
        limits=faulty.limits,
    )
    world.sweep()
    # A batch begins by asking for the versioning of its bucket. Whether that arrives is no matter of the row: a
    # connection that has idled since the test before may just be closed, and no answer is one, too.
    asked = Counter(one.operation for one in log)
    del asked["GetBucketVersioning"]
    assert asked == row.requests
    assert_waits(faulty.waits, row.waits)
    assert (result.stopped_class, result.may_pass) == (row.stopped, row.may_pass)
    assert world.outcomes() == row.ledger
    assert world.waiting() == row.waiting
    assert world.keys() == set(row.left) | scene.not_due
    num_pending = len(scene.due) - len(row.ledger) - len(row.waiting)
    assert world.balance()[-2:] == (len(row.waiting), num_pending)
    assert bool(num_pending) == (row.stopped is not None)
    # The fault has passed: what was stopped is resumed by the next run, what waits is redriven, and nothing is twice.
    if row.stopped:
        with pytest.raises(errors.BatchStoppedError):
            world.report()
        assert world.clean("run-2").is_balanced
    else:
        assert world.report().is_balanced
    if row.waiting:
        world.redrive()
    assert set(world.outcomes()) == set(scene.due)
    assert world.keys() == scene.not_due
    assert world.balance()[-2:] == (0, 0)


@pytest.mark.parametrize("row", LISTINGS)
def test_a_fault_of_a_listing_plans_all_or_nothing_as_the_table_says(
    world: World, faulty: Faulty, row: ListingRow
) -> None:
    world.put(*TOGETHER.keys)
    world.claim()
    log = faulty.server.script(*row.rules)
    source = S3Listing(faulty.gateway(row.read_timeout, page_size=2), world.bucket, "exports/")
    if row.error is None:
        (batch,) = world.plan(source=source).batches
        assert batch.num_commands == len(TOGETHER.keys)
    else:
        with pytest.raises(getattr(errors, row.error)) as raised:
            world.plan(source=source)
        assert type(raised.value).__name__ == row.error
        assert world.value("SELECT count(*) FROM s3_retention.chunks") == 0
        assert world.value("SELECT state FROM s3_retention.intervals") == "claimed"
    assert sum(one.operation == "ListObjectsV2" for one in log) == row.num_requests
    assert_waits(faulty.waits, row.waits)
    assert world.keys() == set(TOGETHER.keys)
    # The next try of the task.
    (batch,) = world.plan().batches
    assert world.delete(batch).num_by_outcome == {"deleted": 3}
    assert world.balance() == (3, 3, 0, 0, 0, 0, 0)


def test_a_server_without_faults_changes_nothing_and_remembers_what_passed(
    world: World, faulty: Faulty
) -> None:
    world.put(*TOGETHER.keys)
    log = faulty.server.script()
    assert replace(world, gateway=faulty.gateway()).clean().num_by_outcome == {"deleted": 3}
    assert [(one.operation, one.keys, one.status, one.is_acted_on) for one in log] == [
        ("ListObjectsV2", (), 200, True),
        ("GetBucketVersioning", (), 200, True),
        ("DeleteObjects", TOGETHER.keys, 200, True),
    ]
