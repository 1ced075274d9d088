"""A policy as the watch sees it: from its file, or from the ledger alone when the file is gone or broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.core.policy import DAG_PREFIX, Limits, Mode, RetentionPolicy, Window
from s3_retention.core.schedule import longest_gap
from s3_retention.core.ticks import describe_timetable, read_timetable

if TYPE_CHECKING:
    from datetime import timedelta

PERIODS = 2
"""Schedule periods that a watermark may be old where the policy names no ``window.max_age``."""


@dataclass(frozen=True, slots=True)
class WatchedPolicy:
    """What is expected of one policy.

    ``timetable`` is None where no tick is expected. ``max_age`` is None where nothing can be said about how old
    its watermark may be: a manual policy that sets none. ``max_command_age`` is None where there is no limit.
    """

    name: str
    timetable: str | None
    safety_delay: timedelta
    lease: timedelta
    max_age: timedelta | None
    has_file: bool
    width: timedelta | None = None
    max_command_age: timedelta | None = None

    @property
    def dag_id(self) -> str:
        """The id of its cleanup DAG."""
        return f"{DAG_PREFIX}{self.name}"


def watch_policy(policy: RetentionPolicy) -> WatchedPolicy:
    """Say what is expected of a policy whose file can be read. In ``simulate`` no tick is expected."""
    timetable = describe_timetable(policy.schedule, policy.timezone)
    window = policy.window
    return WatchedPolicy(
        name=policy.name,
        timetable=timetable if policy.mode is Mode.ENFORCE else None,
        safety_delay=window.safety_delay,
        lease=window.lease,
        max_age=window.max_age or _default_max_age(timetable, window.safety_delay),
        has_file=True,
        width=window.width,
        max_command_age=policy.limits.max_command_age,
    )


def watch_without_file(name: str, timetable: str | None) -> WatchedPolicy:
    """Say what is expected of a policy that only the ledger knows: what it was when the ledger last heard."""
    window = Window()
    return WatchedPolicy(
        name=name,
        timetable=timetable,
        safety_delay=window.safety_delay,
        lease=window.lease,
        max_age=_default_max_age(timetable, window.safety_delay),
        has_file=False,
        max_command_age=Limits().max_command_age,
    )


def _default_max_age(timetable: str | None, safety_delay: timedelta) -> timedelta | None:
    # An interval ends the safety delay before its run: that much of the age is meant.
    if timetable is None:
        return None
    return PERIODS * longest_gap(read_timetable(timetable)[0]) + safety_delay
