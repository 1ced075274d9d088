"""What several files of integration tests begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.versioned import versioned_world

if TYPE_CHECKING:
    from sandbox.moto import MotoServer
    from tests.factories import World


@pytest.fixture(params=["weed", "moto"])
def versioned(request: pytest.FixtureRequest, world: World, moto: MotoServer) -> World:
    """A bucket with versions on each of two servers, under a policy for noncurrent ones."""
    return versioned_world(world, moto if request.param == "moto" else None)
