"""Whether a policy keeps up: what falls due against what is drained, over its last runs.

The rule is that of the third seed: a schedule that claims less time than goes by, or drains less than it claims, falls
behind for ever, and no shorter period can make up for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from s3_retention.core.durations import round_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_RUNS = 3
"""Fewer say nothing about a trend: the age of the oldest unclaimed object wavers with the length of the runs."""
MAX_RUNS = 6
"""Older runs than these tell of another time."""
_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What one cleanup run said at its end.

    ``unclaimed_since`` is the due time from which on nothing was claimed then. ``num_drained`` are the commands of
    the run that ended, ``num_remaining`` those of its interval that it left to the next run.
    """

    reported_at: datetime
    unclaimed_since: datetime
    num_drained: int
    num_remaining: int

    @property
    def age(self) -> timedelta:
        """How long the oldest unclaimed object had been due; nothing when it was not due yet."""
        return max(_ZERO, self.reported_at - self.unclaimed_since)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How many commands the last slices brought, and how much due time these slices cover."""

    num_commands: int
    due_time: timedelta


@dataclass(frozen=True, slots=True)
class Capacity:
    """How a policy keeps up. ``growth`` of the age, and the counts, are those of one run.

    ``num_arriving`` is None before a second slice: the first one reaches back to the beginning of time.
    """

    age: timedelta
    growth: timedelta
    num_arriving: float | None
    num_drained: float
    is_falling_behind: bool

    def __str__(self) -> str:
        """Say it in one sentence."""
        if not self.is_falling_behind:
            return f"oldest unclaimed object is {round_duration(self.age)} old"
        text = (
            f"falling behind: oldest unclaimed object is {round_duration(self.age)} old and grows by "
            f"{round_duration(self.growth)} per run"
        )
        if self.num_arriving is None or self.num_arriving <= self.num_drained:
            return text
        return f"{text}; {self.num_arriving:,.0f} commands fall due per run and {self.num_drained:,.0f} are drained"


def judge_capacity(
    runs: Sequence[RunFigures],
    arrivals: Arrivals | None,
    *,
    width: timedelta | None,
    safety_delay: timedelta,
) -> Capacity | None:
    """Judge the last runs of a policy, the oldest first; None while there are too few.

    It falls behind when the oldest unclaimed object grows older from run to run, and the next run cannot take all
    that is due: because ``width`` cuts its slice short, or because more falls due in a period than a run drains.
    A backlog that is drained in pieces, faster than new commands fall due, is none.
    """
    if len(runs) < MIN_RUNS or runs[-1].reported_at <= runs[0].reported_at:
        return None
    first, last = runs[0], runs[-1]
    num_periods = len(runs) - 1
    period = (last.reported_at - first.reported_at) / num_periods
    growth = (last.age - first.age) / num_periods
    num_drained = sum(run.num_drained for run in runs) / len(runs)
    num_arriving = arrivals.num_commands * (period / arrivals.due_time) if arrivals else None
    if last.num_remaining:
        is_short = num_arriving is not None and num_arriving > num_drained
    else:
        is_short = width is not None and last.age > width + safety_delay
    return Capacity(last.age, growth, num_arriving, num_drained, growth > _ZERO and is_short)
