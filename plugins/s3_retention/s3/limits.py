"""How often and how long a task asks a store again by itself."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenacity import Retrying, stop_after_attempt, wait_random_exponential

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenacity.retry import RetryBaseT


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Attempts within one task, the first included, and the waits between them in seconds.

    Full jitter: the wait after attempt n is random between 0 and ``min(longest, first * 2**(n - 1))``
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    """

    max_attempts: int = 5
    first_wait: float = 1.5
    longest_wait: float = 10.0
    sleep: Callable[[float], None] = time.sleep

    def retrying(self, retry: RetryBaseT) -> Retrying:
        """Make the loop: ``retry`` says which results are worth another attempt; the last result is given."""
        return Retrying(
            retry=retry,
            stop=stop_after_attempt(self.max_attempts),
            wait=wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait),
            sleep=self.sleep,
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )
