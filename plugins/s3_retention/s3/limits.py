"""How often and how long a task asks a store again by itself."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from tenacity import Retrying, retry_if_result, stop_after_attempt, stop_before_delay, wait_random_exponential

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenacity import RetryCallState


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Attempts within one task, the first included, and the waits between them in seconds.

    Full jitter: the wait after attempt n is random between 0 and ``min(longest, first * 2**(n - 1))``
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/), and at least what the store asks for
    (``Retry-After``, RFC 9110 section 10.2.3). Where that would end after ``deadline``, there is no other attempt.
    Once ``ending`` is set, nothing is tried again and nobody waits. ``sleep`` and ``clock`` are for tests.
    """

    max_attempts: int = 5
    first_wait: float = 1.5
    longest_wait: float = 10.0
    deadline: float = 300.0
    sleep: Callable[[float], None] | None = None
    clock: Callable[[], float] = time.monotonic
    ending: Event = field(default_factory=Event, compare=False)

    def pause(self, seconds: float) -> None:
        """Wait, until ``ending`` at the longest."""
        if self.sleep is not None:
            self.sleep(seconds)
        else:
            self.ending.wait(seconds)

    def retrying(self, is_worth_it: Callable[[Any], bool]) -> Retrying:
        """Make the loop: ``is_worth_it`` says which results are worth another attempt; the last result is given.

        A result can have a field ``retry_after``, in seconds.
        """
        jitter = wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)

        def wait(state: RetryCallState) -> float:
            asked_for = getattr(_result_of(state), "retry_after", 0.0)
            return max(jitter(state), asked_for)

        return Retrying(
            retry=retry_if_result(lambda result: not self.ending.is_set() and is_worth_it(result)),
            stop=stop_after_attempt(self.max_attempts) | stop_before_delay(self.deadline),
            wait=wait,
            sleep=self.pause,
            retry_error_callback=_result_of,
        )


def _result_of(state: RetryCallState) -> Any:
    return state.outcome.result() if state.outcome else None
