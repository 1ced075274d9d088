"""A real process, killed with SIGKILL or stopped with SIGSTOP at every place where something is half done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.faults.seam_list import NO_SEAM, SEAMS, STALLS
from tests.faults.seams import writing_queries
from tests.faults.story import FaultStory, Zygote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sandbox.ledger import Ledger
    from tests.factories import World

ALL = [(pipeline, seam) for pipeline, seams in SEAMS.items() for seam in seams]
ALL_STALLS = [(pipeline, seam) for pipeline, seams in STALLS.items() for seam in seams]
WHOLE = ("cleanup", "redrive", "replay", "watch")
"""Pipelines of which every seam is listed; of the others, those that no other has."""


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


@pytest.mark.parametrize("pipeline", SEAMS)
def test_the_list_of_seams_is_what_a_run_passes(
    world: World, ledger: Ledger, zygote: Zygote, tmp_path: Path, pipeline: str
) -> None:
    story = FaultStory(world, ledger, zygote, pipeline)
    story.strike("", act="record", into=str(tmp_path / "passed.json"))
    passed = list(dict.fromkeys(json.loads((tmp_path / "passed.json").read_text())))
    if pipeline in WHOLE:
        assert list(SEAMS[pipeline]) == passed
    assert set(SEAMS[pipeline]) <= set(passed)


def test_every_statement_that_writes_is_a_seam_or_has_a_reason_not_to_be() -> None:
    listed = {seam.split(": ")[-1].removeprefix("commit of ") for _, seam in ALL}
    assert writing_queries() - listed == set(NO_SEAM)


@pytest.mark.parametrize(("number", "pipeline", "seam"), [(n, *one) for n, one in enumerate(ALL)])
def test_a_process_killed_at_a_seam_loses_nothing_and_doubles_nothing(
    world: World, ledger: Ledger, zygote: Zygote, number: int, pipeline: str, seam: str
) -> None:
    story = FaultStory(world, ledger, zygote, pipeline)
    story.strike(seam)
    # By turns: Airflow tries again, or the run is lost for good.
    story.recover(is_retried=number % 2 == 0)
    assert not (verdict := story.judge()), verdict


@pytest.mark.parametrize(("pipeline", "seam"), ALL_STALLS)
def test_a_process_that_stood_still_past_its_lease_writes_nothing_when_it_wakes(
    world: World, ledger: Ledger, zygote: Zygote, pipeline: str, seam: str
) -> None:
    story = FaultStory(world, ledger, zygote, pipeline)
    assert story.stall(seam) == ()
    assert not (verdict := story.judge()), verdict
