"""Everything that can happen to a policy in time, in any order: bounded here, longer by `make test-long`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.machine import RetentionMachine

if TYPE_CHECKING:
    from sandbox.ledger import Ledger
    from tests.factories import World

PROPERTIES_PER_MACHINE = 5
"""One example of the machine costs as much as this many of a simple property, and more."""


@pytest.mark.hypothesis
@pytest.mark.timeout(3600)
def test_intervals_tile_claims_exclude_and_every_command_ends_once_whatever_happens(
    world: World, migrated: Ledger
) -> None:
    ledgers: list[Ledger] = []

    def machine() -> RetentionMachine:
        while ledgers:
            ledgers.pop().drop()
        ledgers.append(migrated.fresh_ledger())
        return RetentionMachine(world, ledgers[-1])

    chosen = settings(max_examples=settings().max_examples // PROPERTIES_PER_MACHINE)
    try:
        run_state_machine_as_test(machine, settings=chosen)  # type: ignore[arg-type]  # any factory will do
    finally:
        while ledgers:
            ledgers.pop().drop()
