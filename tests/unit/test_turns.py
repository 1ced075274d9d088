"""Threads of a step change places often, and as before once it has ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from s3_retention.steps.turns import TURN, takes_short_turns

if TYPE_CHECKING:
    from collections.abc import Iterator

USUAL = 0.005


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL)
    yield
    sys.setswitchinterval(before)


def test_turns_are_short_within_and_as_before_after_it() -> None:
    with takes_short_turns():
        assert sys.getswitchinterval() == pytest.approx(TURN, abs=2e-6)
    assert sys.getswitchinterval() == pytest.approx(USUAL, abs=2e-6)


def test_an_error_leaves_the_turns_as_they_were() -> None:
    with pytest.raises(ZeroDivisionError), takes_short_turns():
        raise ZeroDivisionError
    assert sys.getswitchinterval() == pytest.approx(USUAL, abs=2e-6)


def test_turns_that_are_shorter_already_are_left_alone() -> None:
    sys.setswitchinterval(0.0001)
    with takes_short_turns():
        assert sys.getswitchinterval() == pytest.approx(0.0001, abs=2e-6)
