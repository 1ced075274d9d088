"""A run is counted by the entries of its whole batches and by a look at every other command: both ways agree."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from s3_retention.errors import BatchStoppedError
from s3_retention.steps import delete
from s3_retention.store import run_reports
from tests.factories import holder

if TYPE_CHECKING:
    from tests.factories import World

RIPE = """
UPDATE s3_retention.quarantine
SET failure_class = 'locked', not_before = s3_retention.clock() - interval '1 day'
WHERE key = %s
"""


def key(number: int) -> str:
    return f"exports/2020-01/{number}.json"


def counted(world: World, run: str = "run-1") -> dict[str, tuple[int, int, int]]:
    """Objects, bytes and what was drained of each outcome and detail."""
    rows = run_reports.count_commands(world.conn, holder=holder("report", run))
    found = {
        ":".join(filter(None, (row["outcome"], row["detail"]))): (
            int(row["num_objects"]),
            int(row["num_bytes"]),
            int(row["num_drained"]),
        )
        for row in rows
    }
    assert len(found) == len(rows), "an outcome is counted in two rows"
    return found


def agrees(world: World, run: str = "run-1") -> dict[str, tuple[int, int, int]]:
    """Hold the counts of the only run of an interval against the view; give them."""
    found = counted(world, run)
    outcomes = ("deleted", "already_absent", "changed", "kept", "quarantined")
    sums = [
        sum(one[0] for name, one in found.items() if name.split(":")[0] == outcome) for outcome in outcomes
    ]
    pending = sum(one[0] for name, one in found.items() if name.split(":")[0] in {"pending", "stopped"})
    assert (sum(one[0] for one in found.values()), *sums, pending) == world.balance(1)
    return found


def test_a_mix_of_whole_quarantined_stopped_and_redriven_batches_is_counted_as_the_view_balances(
    world: World,
) -> None:
    world.put(*(key(number) for number in range(8)), body=b"12")
    world.s3.deny(world.bucket, [key(2), key(6)])
    mixed = world.under(batch={"size": 2})
    whole, parked, stopped, redriven = mixed.planned().batches
    world.admin.delete_object(Bucket=world.bucket, Key=key(0))
    agrees(world)
    for batch in (whole, parked, redriven):
        mixed.delete(batch)
        agrees(world)
    delete.stop(
        world.conn,
        stopped.batch_id,
        holder(map_index=stopped.map_index),
        lease=timedelta(minutes=1),
        stopped_class="config",
        stopped_message="no such bucket",
    )
    assert agrees(world) == {
        "already_absent": (1, 2, 1),
        "deleted": (3, 6, 3),
        "pending": (2, 4, 0),
        "stopped:config": (2, 4, 0),
    }
    mixed.sweep()
    with pytest.raises(BatchStoppedError):
        mixed.report()
    before = {
        "already_absent": (1, 2, 1),
        "deleted": (3, 6, 3),
        "quarantined:permission": (2, 4, 2),
        "stopped:config": (2, 4, 0),
    }
    assert agrees(world) == before
    # A redrive settles one: its entry names the redrive's batch, and so the cleanup's is counted command by command.
    world.s3.allow(world.bucket, [key(6)])
    operation_id = world.value(
        "SELECT encode(operation_id, 'hex') FROM s3_retention.quarantine WHERE key = %(key)s", key=key(6)
    )
    mixed.redrive(operation_ids=(operation_id,))
    assert agrees(world) == before | {"deleted": (4, 8, 4), "quarantined:permission": (1, 2, 1)}
    # And the next run takes what was stopped: of the first one, it is no part any more.
    mixed.clean("run-2")
    assert counted(world, "run-2") == {"deleted": (2, 4, 2)}
    assert counted(world) == {
        "already_absent": (1, 2, 1),
        "deleted": (4, 8, 4),
        "quarantined:permission": (1, 2, 1),
    }
    assert world.balance(1) == (8, 6, 1, 0, 0, 1, 0)


def test_what_was_settled_before_the_batch_was_dealt_to_the_run_is_counted_and_not_drained_by_it(
    world: World,
) -> None:
    world.put(key(0), key(1))
    world.s3.deny(world.bucket, [key(1)])
    (batch,) = world.planned().batches
    world.delete(batch)
    stop = {"stopped_class": "config", "stopped_message": "no"}
    delete.stop(
        world.conn, batch.batch_id, holder(try_number=2, map_index=0), lease=timedelta(minutes=1), **stop
    )
    assert agrees(world) == {"deleted": (1, 1, 1), "stopped:config": (1, 1, 0)}
    with pytest.raises(BatchStoppedError):
        world.report()
    world.s3.allow(world.bucket, [key(1)])
    world.clean("run-2")
    assert agrees(world, "run-2") == {"deleted": (2, 2, 1)}


def test_a_command_that_was_planned_anew_is_counted_once_with_its_first_batch(world: World) -> None:
    world.put(key(0), key(1))
    world.s3.deny(world.bucket, [key(0)])
    world.clean()
    world.root.execute(RIPE, [key(0)])
    assert agrees(world) == {"deleted": (1, 1, 1), "quarantined:locked": (1, 1, 1)}
    world.clean("run-2")
    assert agrees(world) == {"deleted": (1, 1, 1), "kept:planned_anew": (1, 1, 1)}
    assert counted(world, "run-2") == {"quarantined:permission": (1, 1, 1)}


def test_a_command_that_went_through_a_redrive_and_was_planned_anew_is_counted_once(world: World) -> None:
    world.put(key(0), key(1))
    world.s3.deny(world.bucket, [key(0)])
    world.clean()
    world.redrive()
    world.root.execute(RIPE, [key(0)])
    world.clean("run-2")
    assert agrees(world) == {"deleted": (1, 1, 1), "kept:planned_anew": (1, 1, 1)}
