"""The figures that the project is held to: each a ratio of medians, or of pairs of one round."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.contest import OURS, OURS_CONDITIONAL, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.growth import Size
    from benchmarks.ledger import Point

Figures = dict[str, float]
SMALL, LARGE = 100_000, 10_000_000


@dataclass(frozen=True)
class Target:
    """What a figure must be: at least or at most ``bound``."""

    what: str
    bound: float
    is_least: bool = True

    def is_met(self, value: float) -> bool:
        """Say whether a value is as it must be."""
        return value >= self.bound if self.is_least else value <= self.bound

    def __str__(self) -> str:
        """Print the bound."""
        return f"{'>=' if self.is_least else '<='} {self.bound:g}"


TARGETS = {
    "wall_vs_s5cmd": Target("wall time, s5cmd / ours", 1.05),
    "wall_vs_s5cmd_conditional": Target("wall time, s5cmd / ours by ETag", 0.9),
    "wall_vs_awscli": Target("wall time, aws s3 rm / ours", 8),
    "wall_vs_rclone": Target("wall time, rclone delete / ours", 4),
    "wall_vs_operator": Target("wall time, S3DeleteObjectsOperator / ours", 1.5),
    "cpu_vs_s5cmd": Target("CPU of client and Postgres, ours / s5cmd", 0.7, is_least=False),
    "memory_growth": Target("peak memory, 1M objects / 10k", 1.2, is_least=False),
    "memory_mb": Target("peak memory at 1M objects, MB", 250, is_least=False),
    "ledger_10m_vs_100k": Target("settle rate, 10M rows / 100k", 0.8),
    "plan_vs_listing": Target("plan of 1M objects / bare listing", 1.3, is_least=False),
    "airflow_overhead": Target("whole cleanup, through Airflow / outside", 1.4, is_least=False),
}


def of_contest(rows: Sequence[Row]) -> Figures:
    """Compare wall times, and CPU with s5cmd: the median over the rounds of the ratio within each."""
    found = {
        f"wall_vs_{peer}": _ratio(rows, peer, OURS) for peer in ("s5cmd", "awscli", "rclone", "operator")
    }
    found["wall_vs_s5cmd_conditional"] = _ratio(rows, "s5cmd", OURS_CONDITIONAL)
    ours, theirs = (_by_round(rows, name) for name in (OURS, "s5cmd"))
    found["cpu_vs_s5cmd"] = median(
        (ours[number].cpu + ours[number].postgres) / theirs[number].cpu
        for number in ours.keys() & theirs.keys()
    )
    return found


def of_sizes(sizes: Sequence[Size]) -> Figures:
    """Compare the memory of the smallest and the largest cleanup."""
    smallest, largest = (pick(sizes, key=lambda size: size.num_objects) for pick in (min, max))
    return {"memory_growth": largest.peak / smallest.peak, "memory_mb": largest.peak}


def of_ledger(points: Sequence[Point]) -> Figures:
    """Compare the rate of the last hundred thousand rows before 10 million with that of the first."""
    rates = {point.num_rows: point.rate for point in points}
    return {"ledger_10m_vs_100k": rates[LARGE] / rates[SMALL]}


def of_listings(pairs: Sequence[tuple[float, float]]) -> Figures:
    """Compare a plan with a bare listing."""
    return {"plan_vs_listing": median(planned / listed for listed, planned in pairs)}


def of_airflow(pairs: Sequence[tuple[float, float]]) -> Figures:
    """Compare a run through Airflow with the same steps outside it; ``pairs`` are seconds outside and through."""
    return {"airflow_overhead": median(through / outside for outside, through in pairs)}


def _ratio(rows: Sequence[Row], peer: str, ours: str) -> float:
    theirs, own = _by_round(rows, peer), _by_round(rows, ours)
    return median(theirs[number].wall / own[number].wall for number in theirs.keys() & own.keys())


def _by_round(rows: Sequence[Row], name: str) -> dict[int, Row]:
    return {row.round_number: row for row in rows if row.name == name}
