"""When a run began, and what took how long in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Aware times of one run by the ledger's clock, but for ``triggered_at``: the tick, or when somebody triggered it.

    None is what did not happen, or not in this run: a plan that an earlier run has stored is none of its own.
    """

    triggered_at: datetime | None
    claimed_at: datetime | None
    planned_at: datetime | None
    dealt_at: datetime | None
    drained_at: datetime | None
    reported_at: datetime

    def seconds(self) -> dict[str, float]:
        """Give the durations that can be told, in seconds; one that the clocks make negative is 0."""
        spans = {
            "trigger_to_claim": (self.triggered_at, self.claimed_at),
            "claim_to_plan": (self.claimed_at, self.planned_at),
            "deal_to_drain": (self.dealt_at, self.drained_at),
            "claim_to_report": (self.claimed_at, self.reported_at),
        }
        return {
            name: round(max(0.0, (ended_at - began_at).total_seconds()), 3)
            for name, (began_at, ended_at) in spans.items()
            if began_at is not None and ended_at is not None
        }

    def __str__(self) -> str:
        """Print them on one line."""
        return ", ".join(
            f"{name.replace('_', ' ')} {seconds:,.1f} s" for name, seconds in self.seconds().items()
        )
