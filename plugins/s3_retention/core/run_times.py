"""When a run began, and what took how long in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


SPANS = ("trigger_to_claim", "claim_to_plan", "deal_to_drain", "claim_to_report")
"""The durations that a report tells, in the order of a run."""


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
        spans = (
            (self.triggered_at, self.claimed_at),
            (self.claimed_at, self.planned_at),
            (self.dealt_at, self.drained_at),
            (self.claimed_at, self.reported_at),
        )
        return {
            name: round(max(0.0, (ended_at - began_at).total_seconds()), 3)
            for name, (began_at, ended_at) in zip(SPANS, spans, strict=True)
            if began_at is not None and ended_at is not None
        }
