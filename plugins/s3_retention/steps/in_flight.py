"""The deliveries of one batch that are at the store: as many as the policy allows, each in a thread of its own."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.policy_parts import Versions
from s3_retention.steps import attempt

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from s3_retention.core.condition import EtagCondition
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.s3.limits import RetryLimits
    from s3_retention.sources.postgres_rows import PostgresRows
    from s3_retention.steps.attempt import Attempt
    from s3_retention.steps.breaker import Delivered
    from s3_retention.steps.decide_again import Delivery
    from s3_retention.steps.feed import Feed
    from s3_retention.steps.target_store import TargetStore


@dataclass(slots=True)
class InFlight:
    """What was sent and has not come back; ``limits.ending`` is set when nothing more is to be sent."""

    gateway: S3Gateway
    policy: RetentionPolicy
    limits: RetryLimits
    store: TargetStore
    feed: Feed
    delivered: Delivered
    pool: ThreadPoolExecutor
    rows: PostgresRows | None = None
    sent: dict[Future[Attempt], Delivery] = field(default_factory=dict)
    _found_out: Future[EtagCondition] = field(default_factory=Future)

    def send(self) -> None:
        """Send what has its turn, up to the room that there is; and have the next delivery at hand."""
        while not self.delivered.is_ending and self.feed.load(self.sent.values()) and self.send_next():
            pass

    def send_next(self) -> bool:
        """Send the delivery that is at hand, where it has its turn and there is room; the ledger is not asked."""
        if self.delivered.is_ending or not self._has_room or (delivery := self.feed.take()) is None:
            return False
        sent = self.pool.submit(
            attempt.run,
            self.gateway,
            self.policy,
            delivery,
            self.limits,
            self.condition,
            self._find_out,
            self.rows,
        )
        self.sent[sent] = delivery
        return True

    @property
    def condition(self) -> EtagCondition | None:
        """What is known of the store by now, from the ledger or from a probe whose delivery is not back yet."""
        return self.store.condition or (self._found_out.result() if self._found_out.done() else None)

    @property
    def is_waiting(self) -> bool:
        """Something could be sent, and its turn has not come.

        Not by the seconds that are left: the turn may come between two looks at the clock.
        """
        return self.feed.has_upcoming and not self.delivered.is_ending and self._has_room

    def wait(self, heartbeat: float) -> dict[Future[Attempt], Delivery] | None:
        """Wait until something comes back, or can be sent; None where neither has for ``heartbeat`` seconds.

        What came back is counted at once, and not in flight any more.
        """
        patience = min(heartbeat, self.feed.seconds_to_turn) if self.is_waiting else heartbeat
        if not self.sent:
            self.limits.pause(patience)
            return None
        also = () if self._found_out.done() else (self._found_out,)
        done, _ = wait([*self.sent, *also], timeout=patience, return_when=FIRST_COMPLETED)
        if not done:
            return None
        came_back = {future: self.sent.pop(future) for future in list(self.sent) if future in done}
        for future in came_back:
            if (error := future.exception()) is not None:
                self.delivered.broken = self.delivered.broken or error
            else:
                self.delivered.count(outcome for _, outcome, _ in future.result().attempted)
        if self.delivered.is_ending:
            self.limits.ending.set()
        return came_back

    @property
    def _has_room(self) -> bool:
        """While it is not known what the store does with an ETag, one delivery at a time finds it out."""
        # A delete that names a version is held to it by its id: nothing is to be found out.
        is_known = self.condition is not None or self.policy.versions is not Versions.CURRENT
        return len(self.sent) < (self.policy.batch.parallel if is_known else 1)

    def _find_out(self, condition: EtagCondition) -> None:
        with suppress(InvalidStateError):  # another delivery has
            self._found_out.set_result(condition)
