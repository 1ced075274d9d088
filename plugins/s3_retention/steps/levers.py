"""What a person sets while a batch runs, and how soon the batch heeds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.steps.breaker import stop_by_switch
from s3_retention.store import kill_switches

if TYPE_CHECKING:
    from s3_retention.s3.limits import RetryLimits
    from s3_retention.steps.breaker import Delivered
    from s3_retention.steps.feed import Feed
    from s3_retention.store.connection import Connection

LOOK_SECONDS = 1.0
"""How old a look may be when the next request leaves."""


@dataclass(slots=True)
class Levers:
    """The kill switch, the legal holds and the pauses of tenants, as they were at the last look."""

    policy: str
    feed: Feed
    delivered: Delivered
    limits: RetryLimits
    _looked_at: float | None = None

    @property
    def is_stale(self) -> bool:
        """Nothing more is sent before another look."""
        return self._looked_at is None or self.limits.clock() - self._looked_at >= LOOK_SECONDS

    def look(self, conn: Connection) -> None:
        """Look, in the caller's transaction: a switch stops the batch, a hold or a pause reaches what is loaded."""
        levers = kill_switches.look(conn, policy=self.policy)
        self._looked_at = self.limits.clock()
        if (stop := stop_by_switch(levers)) is not None:
            self.delivered.stop = self.delivered.stop or stop
            # Nothing that is at the store is tried again.
            self.limits.ending.set()
        self.feed.heed(levers)
