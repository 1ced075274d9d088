"""Slices of due time, and the small decision who may work on which."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum

BEGINNING = datetime(1970, 1, 1, tzinfo=timezone.utc)
"""Where the first interval starts when the policy names no ``start_at``."""


class IntervalState(str, Enum):
    """``claimed``: scan under way. ``planned``: commands are stored. ``completed``: every one is settled."""

    CLAIMED = "claimed"
    PLANNED = "planned"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class Interval:
    """A half-open slice ``[starts_at, ends_at)`` of due time in UTC."""

    policy: str
    starts_at: datetime
    ends_at: datetime

    @property
    def key(self) -> str:
        """The stable name of the slice: ``cleanup:<policy>:<start>:<end>`` with ISO 8601 UTC times."""
        start, end = (at.astimezone(timezone.utc).isoformat() for at in (self.starts_at, self.ends_at))
        return f"cleanup:{self.policy}:{start}:{end}"


@dataclass(frozen=True, slots=True)
class ClaimedInterval:
    """An interval row as the ledger holds it. ``held_until`` is the latest lease on it or on its batches."""

    interval_id: int
    interval: Interval
    policy_version: str
    state: IntervalState
    fence: int
    claimed_by: str | None
    held_until: datetime | None


def next_interval(
    policy: str, *, position: datetime, now: datetime, safety_delay: timedelta, width: timedelta | None
) -> Interval | None:
    """Cut the next slice ``[position, now - safety_delay)``, at most ``width`` long; None is "caught up".

    The safety delay absorbs late writes and clock skew.
    """
    cutoff = now - safety_delay
    ends_at = cutoff if width is None else min(position + width, cutoff)
    return Interval(policy, position, ends_at) if ends_at > position else None


class ClaimAction(str, Enum):
    """What a run does about the unfinished interval of its policy, or about its own finished one."""

    REPEAT = "repeat"
    ADOPT = "adopt"
    OBSERVE = "observe"
    CUT = "cut"


def decide_claim(
    *, mine: ClaimedInterval | None, unfinished: ClaimedInterval | None, holder: str, now: datetime
) -> ClaimAction:
    """Decide which interval a run works on.

    The interval that this run held before is repeated when it is complete (a cleared task does nothing
    twice). An unfinished one is adopted when it is this run's own or nobody's lease covers it, and observed
    while another live run holds it. Only without either is a new slice cut.
    """
    if mine is not None and mine.state is IntervalState.COMPLETED:
        return ClaimAction.REPEAT
    if unfinished is None:
        return ClaimAction.CUT
    free = unfinished.held_until is None or unfinished.held_until <= now
    return ClaimAction.ADOPT if free or unfinished.claimed_by == holder else ClaimAction.OBSERVE
