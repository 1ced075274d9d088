"""What size does: the same cleanup over ever more objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bed import Steps, run_ours

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.seeds import Seed


@dataclass(frozen=True)
class Size:
    """One cleanup of ``num_objects``."""

    num_objects: int
    steps: Steps

    @property
    def peak(self) -> float:
        """The most memory that planning or deleting took, in MB."""
        return max(step["peak"] for step in self.steps.values())

    @property
    def microseconds(self) -> float:
        """CPU of client and Postgres for one object."""
        total = sum(step["cpu"] + step["postgres"] for step in self.steps.values())
        return total / self.num_objects * 1e6


def measure_size(seed: Seed, folder: Path) -> Size:
    """Clean a whole bucket, by ETag, as the package does it."""
    steps, _ = run_ours(seed, folder)
    return Size(seed.num_objects, steps)


def plan_against_listing(seed: Seed, folder: Path) -> tuple[float, float]:
    """List everything and do nothing with it, then plan it: seconds of both, on one server."""
    steps, _ = run_ours(seed, folder, ("listing", "plan"))
    return steps["listing"]["wall"], steps["plan"]["wall"]
