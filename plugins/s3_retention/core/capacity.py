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
MAX_SLICES = 30
"""Slices over which it is counted what falls due: one that brought much at once must not stand for all."""
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
        text = f"falling behind: oldest unclaimed object is {round_duration(self.age)} old"
        if self.growth > _ZERO:
            text += f" and grows by {round_duration(self.growth)} per run"
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

    Where runs left planned commands to the next one, it falls behind when more falls due in a period than such a run
    drains: a backlog that is drained in pieces, faster than new commands fall due, is none. Else it falls behind when
    the oldest unclaimed object grows older from run to run, and ``width`` keeps the next run from taking all.
    """
    if len(runs) < MIN_RUNS or runs[-1].reported_at <= runs[0].reported_at:
        return None
    first, last = runs[0], runs[-1]
    num_periods = len(runs) - 1
    period = (last.reported_at - first.reported_at) / num_periods
    growth = (last.age - first.age) / num_periods
    num_arriving = arrivals.num_commands * (period / arrivals.due_time) if arrivals else None
    # A run that had not enough to do says nothing about what it could have drained.
    busy = [run for run in runs if run.num_remaining] or list(runs)
    num_drained = sum(run.num_drained for run in busy) / len(busy)
    if any(run.num_remaining for run in runs):
        is_behind = num_arriving is not None and num_arriving > num_drained
    else:
        is_behind = growth > _ZERO and width is not None and last.age > width + safety_delay
    return Capacity(last.age, growth, num_arriving, num_drained, is_behind)
