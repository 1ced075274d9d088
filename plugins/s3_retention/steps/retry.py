"""Attempts in the task: what may pass by itself is tried again, with full jitter, up to a limit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_result, stop_after_attempt, wait_random_exponential

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.outcome import Outcome
    from s3_retention.s3.gateway import S3Gateway


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """How often and how long a task tries again by itself.

    Full jitter: the wait before attempt n is random between 0 and ``min(longest, first * 2**n)`` seconds
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    """

    max_attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 20.0
    sleep: Callable[[float], None] = time.sleep


def delete_with_retries(
    gateway: S3Gateway, commands: Sequence[DeleteCommand], limits: RetryLimits
) -> list[tuple[DeleteCommand, Outcome, int]]:
    """Delete commands of one bucket; what is throttled, transient, in conflict or unknown is tried again.

    Gives each command with its last outcome and its attempts over all tries, in input order. A fault of the
    store or the identity ends the attempts at once.
    """
    outcomes: dict[bytes, Outcome] = {}
    num_attempts = {command.command_id: command.num_attempts for command in commands}
    pending = list(commands)

    def attempt() -> bool:
        answers = gateway.delete_chunk([command.facts for command in pending])
        for command, outcome in zip(pending, answers, strict=True):
            outcomes[command.command_id] = outcome
            num_attempts[command.command_id] += 1
        if any(outcome.stops_batch for outcome in answers):
            return False
        pending[:] = [command for command in pending if outcomes[command.command_id].is_retried]
        return bool(pending)

    if commands:
        Retrying(
            retry=retry_if_result(bool),
            stop=stop_after_attempt(limits.max_attempts),
            wait=wait_random_exponential(multiplier=limits.first_wait, max=limits.longest_wait),
            sleep=limits.sleep,
            retry_error_callback=lambda _: None,
        )(attempt)
    return [(command, outcomes[command.command_id], num_attempts[command.command_id]) for command in commands]
