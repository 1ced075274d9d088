"""The collector looks rarely while a step works, and as before once it has ended."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from s3_retention.steps import delete, plan, simulate
from s3_retention.steps.collecting import NUM_NEW, collects_rarely

if TYPE_CHECKING:
    from collections.abc import Iterator

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def test_the_collector_looks_rarely_within_and_as_before_after_it() -> None:
    with collects_rarely():
        assert gc.get_threshold() == (NUM_NEW, *USUAL[1:])
        assert gc.isenabled()
    assert gc.get_threshold() == USUAL


def test_an_error_leaves_the_collector_as_it_was() -> None:
    with pytest.raises(ZeroDivisionError), collects_rarely():
        raise ZeroDivisionError
    assert gc.get_threshold() == USUAL


def test_one_within_another_leaves_it_as_the_outer_one_found_it() -> None:
    with collects_rarely():
        with pytest.raises(ZeroDivisionError), collects_rarely():
            raise ZeroDivisionError
        assert gc.get_threshold()[0] == NUM_NEW
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("threshold", [(0, 10, 10), (NUM_NEW + 1, 5, 5)])
def test_a_collector_that_is_off_or_looks_more_rarely_is_left_alone(threshold: tuple[int, int, int]) -> None:
    gc.set_threshold(*threshold)
    with collects_rarely():
        assert gc.get_threshold() == threshold
    assert gc.get_threshold() == threshold


def test_a_collector_that_was_disabled_stays_so() -> None:
    gc.disable()
    try:
        with collects_rarely():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("step", [plan.run, simulate.run, delete.run])
def test_the_steps_that_work_through_pages_leave_it_as_it_was_when_they_fail(step: object) -> None:
    given = {plan.run: 5, simulate.run: 4, delete.run: 5}[step]  # type: ignore[index]
    more = {"max_batches": 1} if step is plan.run else {}
    seen: list[int] = []

    class Broken:
        """A connection, or a policy, of which nothing can be asked."""

        def __getattr__(self, name: str) -> object:
            seen.append(gc.get_threshold()[0])
            raise ZeroDivisionError

    broken = Broken()
    with pytest.raises(ZeroDivisionError):
        step(*[broken] * given, **more)  # type: ignore[operator]
    assert set(seen) == {NUM_NEW}
    assert gc.get_threshold() == USUAL


def test_a_step_may_be_called_again_and_again() -> None:
    seen = []

    @collects_rarely()
    def step() -> None:
        seen.append(gc.get_threshold()[0])

    for _ in range(3):
        step()
        assert gc.get_threshold() == USUAL
    assert seen == [NUM_NEW] * 3
