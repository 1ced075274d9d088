"""Clearing tasks of a run in Airflow, each at every stage: the same interval, nothing twice, nothing lost."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.errors import S3RetentionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.factories import World

KEYS = [f"exports/2020-01/{name}.json" for name in "abcde"]
DENIED = KEYS[3]
TASKS = ("claim", "plan", "delete 1", "delete 2", "delete 3", "quarantine", "report")
# What Airflow runs again: the task alone, or with all that follows it.
CLEARED = [*((task,) for task in TASKS), *(TASKS[number:] for number in range(len(TASKS) - 1))]


class Run:
    """One DagRun whose tasks may be run again and again, each with a new try number."""

    def __init__(self, world: World) -> None:
        """Take a bucket with five objects that are due, one of which is denied."""
        self.world = world.under(batch={"size": 2, "parallel": 1})
        self.world.put(*KEYS)
        self.world.s3.deny(self.world.bucket, [DENIED])
        self.tries: dict[str, int] = {}
        self.batches: tuple[Any, ...] = ()
        self.reports: list[Any] = []
        self.interval_ids: set[int | None] = set()

    def do(self, task: str) -> None:
        """Run a task once more. One that fails lets the others run, as an all-done task does."""
        self.tries[task] = self.tries.get(task, 0) + 1
        name, _, number = task.partition(" ")
        actions: dict[str, Callable[[], None]] = {
            "claim": self.claim,
            "plan": self.plan,
            "delete": lambda: self.delete(int(number), self.tries[task]),
            "quarantine": lambda: void(self.world.sweep()),
            "report": lambda: self.reports.append(self.world.report()),
        }
        with suppress(S3RetentionError):
            actions[name]()

    def claim(self) -> None:
        self.interval_ids.add(self.world.claim().interval_id)

    def plan(self) -> None:
        self.batches = self.world.plan().batches or self.batches

    def delete(self, number: int, try_number: int) -> None:
        if number <= len(self.batches):
            self.world.delete(self.batches[number - 1], try_number=try_number)

    def records(self) -> list[dict[str, Any]]:
        """Everything that has ended."""
        return self.world.rows(
            "SELECT encode(command_id, 'hex') AS id, outcome, settled_at FROM s3_retention.ledger_entries ORDER BY 1"
        )


def void(_: object) -> None:
    """Drop a result."""


@pytest.mark.parametrize("cleared", CLEARED, ids=" and ".join)
@pytest.mark.parametrize("stage", range(1, len(TASKS) + 1), ids=lambda stage: f"after {TASKS[stage - 1]}")
def test_whatever_is_cleared_at_whatever_stage_nothing_is_repeated_and_nothing_is_lost(
    world: World, stage: int, cleared: tuple[str, ...]
) -> None:
    run = Run(world)
    for task in TASKS[:stage]:
        run.do(task)
    before = run.records()
    for task in cleared:
        run.do(task)
    for task in TASKS[stage:]:
        run.do(task)
    if run.reports[-1:] == [] or not run.reports[-1].is_balanced:
        run.do("report")
    after = run.records()
    assert [one for one in after if one in before] == before
    assert run.interval_ids == {run.world.interval_id()}
    # A task that was cleared before its time can have left commands to quarantine, of which it knew no cause.
    ended, waiting = set(run.world.outcomes()), set(run.world.waiting())
    assert (ended | waiting, ended & waiting) == (set(KEYS), set())
    assert DENIED in waiting
    assert run.world.balance()[-1] == 0
    assert run.world.keys() == waiting
    run.world.s3.allow(run.world.bucket, [DENIED])
    assert run.world.redrive().is_balanced
    assert run.world.keys() == set()
    assert run.world.value("SELECT count(*) FROM s3_retention.intervals WHERE state = 'completed'") == 1


def test_a_batch_that_is_cleared_after_the_next_run_was_dealt_it_takes_nothing_from_that_run(
    world: World,
) -> None:
    run = Run(world)
    for task in ("claim", "plan", "delete 1"):
        run.do(task)
    world.expire_leases()
    with_next = run.world
    with_next.claim("run-2")
    dealt = with_next.plan("run-2").batches
    before = run.records()
    run.do("delete 2")
    assert run.records() == before
    for batch in dealt:
        with_next.delete(batch, "run-2")
    with_next.sweep("run-2")
    assert with_next.report("run-2").is_balanced
    assert set(with_next.outcomes()) == set(KEYS) - {DENIED}
