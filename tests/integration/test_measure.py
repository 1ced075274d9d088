"""Where each policy stands, as the watch measures it; and a run that is told of before it is red."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from s3_retention.core.metrics import Standing
from s3_retention.errors import BatchStoppedError
from s3_retention.steps import measure, report
from tests.factories import holder
from tests.fakes import faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from s3_retention.core.report import RunReport
    from tests.factories import World

A, B = (f"exports/2020-01/{name}.json" for name in "ab")


def standing(world: World) -> Standing:
    (one,) = measure.run(world.conn, [world.policy.name])
    return one


def test_a_policy_that_never_ran_stands_at_nothing(world: World) -> None:
    assert standing(world) == Standing(world.policy.name)


def test_planned_commands_are_open_until_their_batch_closes(world: World) -> None:
    world.put(A, B)
    (batch,) = world.planned().batches
    before = standing(world)
    assert before.num_open == 2
    assert before.watermark_age is not None
    assert before.watermark_age < timedelta(days=1), "not since 1970"
    world.delete(batch)
    world.report()
    done = standing(world)
    assert done.num_open == 0
    assert done.watermark_age is not None
    assert timedelta(0) <= done.watermark_age < timedelta(days=1)


def test_what_waits_in_quarantine_is_counted_and_has_an_age(world: World) -> None:
    world.s3.deny(world.bucket, [A])
    world.put(A, B)
    world.clean()
    world.set_clock("clock_timestamp() + interval '3 hours'")
    found = standing(world)
    assert found.num_quarantined == 1
    assert found.quarantine_age is not None
    assert timedelta(hours=3) <= found.quarantine_age < timedelta(hours=4)


def test_a_policy_that_is_gone_and_left_something_in_quarantine_is_measured_too(world: World) -> None:
    world.s3.deny(world.bucket, [A])
    world.put(A)
    world.clean()
    assert [(one.policy, one.num_quarantined) for one in measure.run(world.conn, [])] == [
        (world.policy.name, 1)
    ]


def test_missed_intervals_are_counted_until_a_later_run_covers_them(world: World) -> None:
    world = world.under(schedule="0 * * * *")
    for hour in (3, 6):
        world.set_clock(f"'2026-06-10T{hour:02}:00Z'::timestamptz")
        world.flag(datetime(2026, 6, 10, hour, tzinfo=timezone.utc))
    assert standing(world).num_missed == 2


def test_a_run_that_ends_red_is_told_before_it_raises(world: World) -> None:
    world.put(A)
    (batch,) = world.planned().batches
    gateway = faulty_gateway(world.gateway, delete_objects=one_after_another(refusal("ExpiredToken", 400)))
    world.through(gateway).delete(batch)
    told: list[RunReport] = []
    with pytest.raises(BatchStoppedError):
        report.run(
            world.conn,
            holder("report"),
            policy=world.policy.name,
            interval_id=world.interval_id(),
            tell=told.append,
        )
    assert [one.num_by_outcome["stopped"] for one in told] == [1]
