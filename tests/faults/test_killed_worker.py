"""A real process, killed with SIGKILL at each place where a delete is half done."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from s3_retention.errors import UnbalancedError

if TYPE_CHECKING:
    from sandbox.ledger import Ledger
    from tests.factories import World

REPOSITORY = Path(__file__).parents[2]
KEYS = [f"exports/2020-01/{name}.json" for name in "abcd"]
Counts = tuple[int, ...]
"""As World.balance gives them: discovered, deleted, already absent, changed, kept, quarantined, pending."""

# For two chunks of two objects: how many objects are left and what is settled when the worker is dead; then what
# the ledger says after the sweep, after the redrive that follows it, and after a new try in their stead.
SEAMS: dict[str, tuple[int, Counts, Counts, Counts, Counts]] = {
    "after the claim": (
        4,
        (4, 0, 0, 0, 0, 0, 4),
        (4, 0, 0, 0, 0, 4, 0),
        (4, 4, 0, 0, 0, 0, 0),
        (4, 4, 0, 0, 0, 0, 0),
    ),
    "after the delete": (
        2,
        (4, 0, 0, 0, 0, 0, 4),
        (4, 0, 0, 0, 0, 4, 0),
        (4, 2, 2, 0, 0, 0, 0),
        (4, 2, 2, 0, 0, 0, 0),
    ),
    "between two settles": (
        0,
        (4, 2, 0, 0, 0, 0, 2),
        (4, 2, 0, 0, 0, 2, 0),
        (4, 2, 2, 0, 0, 0, 0),
        (4, 2, 2, 0, 0, 0, 0),
    ),
    "before the close": (
        0,
        (4, 4, 0, 0, 0, 0, 0),
        (4, 4, 0, 0, 0, 0, 0),
        (4, 4, 0, 0, 0, 0, 0),
        (4, 4, 0, 0, 0, 0, 0),
    ),
}


def killed(world: World, ledger: Ledger, *, step: str, number: int, seam: str) -> None:
    """Run a step in a process of its own, which does not survive it."""
    task = {
        "step": step,
        "id": number,
        "seam": seam,
        "run": "run-1",
        "bucket": world.bucket,
        "changes": world.changes,
        "conninfo": ledger.writer_conninfo,
        "endpoint": world.s3.endpoint,
        "access_key": world.s3.worker.access_key,
        "secret_key": world.s3.worker.secret_key,
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.worker"],
        input=json.dumps(task),
        text=True,
        capture_output=True,
        cwd=REPOSITORY,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.fixture
def planned(world: World) -> World:
    """Four objects in one batch of two chunks, one request in flight."""
    world = world.under(batch={"parallel": 1})
    world.put(*KEYS)
    world.planned()
    world.cut_chunks(2)
    return world


@pytest.mark.parametrize("seam", SEAMS)
def test_what_a_killed_worker_left_is_quarantined_as_worker_lost_and_redriven(
    planned: World, ledger: Ledger, seam: str
) -> None:
    num_left, when_dead, when_swept, when_redriven, _ = SEAMS[seam]
    killed(planned, ledger, step="delete", number=1, seam=seam)
    assert len(planned.keys()) == num_left
    assert planned.balance() == when_dead
    if when_dead[-1]:
        with pytest.raises(UnbalancedError):
            planned.report()
    num_lost = when_swept[5]
    assert planned.sweep().num_by_class == ({"worker_lost": num_lost} if num_lost else {})
    assert planned.balance() == when_swept
    assert planned.report().is_balanced
    assert set(planned.waiting().values()) <= {"worker_lost"}
    assert planned.redrive().is_balanced
    assert planned.balance() == when_redriven
    assert planned.keys() == set()
    assert set(planned.outcomes()) == set(KEYS)
    assert planned.value("SELECT state FROM s3_retention.intervals") == "completed"


@pytest.mark.parametrize("seam", SEAMS)
def test_what_a_killed_worker_left_is_resumed_by_a_new_try(planned: World, ledger: Ledger, seam: str) -> None:
    (batch,) = planned.plan().batches
    killed(planned, ledger, step="delete", number=batch.batch_id, seam=seam)
    assert not planned.delete(batch, try_number=2).was_closed
    assert planned.balance() == SEAMS[seam][-1]
    assert planned.keys() == set()
    assert set(planned.outcomes()) == set(KEYS)
    assert planned.sweep().num_batches == 0
    assert planned.report().is_balanced


@pytest.mark.parametrize("seam", SEAMS)
def test_what_a_killed_worker_left_is_resumed_by_the_next_run_when_nobody_swept(
    planned: World, ledger: Ledger, seam: str
) -> None:
    killed(planned, ledger, step="delete", number=1, seam=seam)
    assert planned.claim("run-2").status.value == "observed"
    planned.expire_leases()
    assert planned.clean("run-2").is_balanced
    assert planned.balance() == SEAMS[seam][-1]
    assert planned.keys() == set()


def test_a_plan_that_is_killed_before_its_end_leaves_nothing_and_is_made_anew(
    world: World, ledger: Ledger
) -> None:
    world.put(*KEYS)
    world.claim()
    killed(world, ledger, step="plan", number=1, seam="plan before it is marked as planned")
    for table in ("chunks", "batches", "keepers"):
        assert world.value(f"SELECT count(*) FROM s3_retention.{table}") == 0  # noqa: S608
    assert world.clean().num_by_outcome == {"deleted": 4}
    assert world.value("SELECT count(*) FROM s3_retention.intervals") == 1
