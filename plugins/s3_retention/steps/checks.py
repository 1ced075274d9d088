"""What is asked besides before each attempt of a delivery: the pointers of its policy, and the tags of its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.decider import Decider
from s3_retention.steps import pointers, tags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.outcome import Outcome
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.s3.limits import RetryLimits
    from s3_retention.steps.decide_again import Delivery
    from s3_retention.steps.retry import Decide

MAX_CHECKED = 100
"""Objects that are checked at once, where each is asked for something by itself: the answers are to be young."""


def of_store(
    gateway: S3Gateway, policy: RetentionPolicy, delivery: Delivery, limits: RetryLimits
) -> Decide | None:
    """Give what the store is to be asked before each attempt; None where a policy asks nothing."""
    if not policy.pointers and not policy.asks_tags:
        return None
    decider = Decider(policy)

    def check(commands: Sequence[DeleteCommand]) -> dict[bytes, Outcome]:
        # What a person or another version spares need not be asked about.
        asked = [command for command in commands if delivery.spared(command, policy) is None]
        # Tags first, which take a request each: what the pointers say is to be young when the delete leaves.
        decided = tags.check(gateway, decider, asked, delivery.now, limits) if policy.asks_tags else {}
        rest = [command for command in asked if command.command_id not in decided]
        return decided | (pointers.check(gateway, policy, limits, rest) if policy.pointers and rest else {})

    return check
