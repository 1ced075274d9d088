"""Attempts in the task: what may pass by itself is tried again, with full jitter, up to a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.outcome import distinct
from s3_retention.s3.deletes import NOT_SENT

if TYPE_CHECKING:
    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.condition import Guard
    from s3_retention.core.objects import ObjectFacts, ObjectRef
    from s3_retention.core.outcome import Outcome
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.s3.limits import RetryLimits
    from s3_retention.sources.row_source import Looker

Attempted = tuple["DeleteCommand", "Outcome", int]
"""A command, what became of it, and its number of attempts so far."""


Decide = Callable[[Sequence["DeleteCommand"]], dict[bytes, "Outcome"]]
"""Gives the outcome of each of some commands that must not be deleted now, by command id."""


@dataclass(slots=True)
class Attempts:
    """What became of some commands, in their order, and how often an attempt at one of them failed, by class."""

    attempted: list[Attempted] = field(default_factory=list)
    num_failed_by_class: Counter[str] = field(default_factory=Counter)


def look_with_retries(gateway: Looker, ref: ObjectRef, limits: RetryLimits) -> ObjectFacts | Outcome:
    """Look at one object; where the store does not say for now, it is asked again."""
    found: ObjectFacts | Outcome = limits.retrying(lambda found: getattr(found, "is_retried", False))(
        gateway.look, ref
    )
    return found


@dataclass(frozen=True, slots=True)
class _Round:
    """What one request left to be tried again, and for how many seconds the store asks to be left alone."""

    num_pending: int
    retry_after: float = 0.0


def delete_with_retries(
    gateway: S3Gateway,
    commands: Sequence[DeleteCommand],
    guard: Guard,
    limits: RetryLimits,
    *,
    decide: Decide | None = None,
    is_decided: bool = True,
) -> Attempts:
    """Delete commands of one bucket; what is throttled, transient, in conflict or unknown is tried again.

    ``decide`` is asked before each attempt, and before the first one unless that ``is_decided``: while the store is
    waited for, the objects go on living. Gives each command with its last outcome and its attempts over all tries, and
    those that were not tried, since the delivery is to end, not at all. A fault of the store or the identity ends the
    attempts at once.
    """
    outcomes: list[Outcome | None] = [None] * len(commands)
    num_attempts = [command.num_attempts for command in commands]
    num_failed_by_class: Counter[str] = Counter()
    pending = list(range(len(commands)))

    def attempt() -> _Round:
        if limits.ending.is_set():  # meanwhile: the claim may be another worker's by now
            return _Round(0)
        if decide is not None and (any(outcomes) or not is_decided):
            decided = decide([commands[place] for place in pending])
            for place in pending:
                outcome = decided.get(commands[place].command_id)
                if outcome is not None:
                    outcomes[place] = outcome
                    num_attempts[place] += not outcome.is_final  # a look that failed was an attempt
            num_failed_by_class.update(one.kind.value for one in decided.values() if not one.is_final)
            pending[:] = [place for place in pending if commands[place].command_id not in decided]
        if not pending or limits.ending.is_set():
            return _Round(0)
        answers = _send(gateway, commands, pending, guard, limits)
        for place, outcome in answers.items():
            outcomes[place] = outcome
            num_attempts[place] += 1
        came = distinct(answers.values())
        if all(outcome.is_final for outcome in came):
            return _Round(0)
        num_failed_by_class.update(outcome.kind.value for outcome in answers.values() if not outcome.is_final)
        pending[:] = _retried(answers)
        return _Round(len(pending), max(outcome.retry_after for outcome in came))

    if commands:
        limits.retrying(lambda done: bool(done.num_pending))(attempt)
    return Attempts(
        [
            (command, outcome, num)
            for command, outcome, num in zip(commands, outcomes, num_attempts, strict=True)
            if outcome is not None
        ],
        num_failed_by_class,
    )


def _retried(answers: dict[int, Outcome]) -> list[int]:
    """Give the places that are worth another request: none where the store or the identity is at fault."""
    if any(outcome.stops_batch for outcome in answers.values()):
        return []
    return [place for place, outcome in answers.items() if outcome.is_retried]


def _send(
    gateway: S3Gateway,
    commands: Sequence[DeleteCommand],
    pending: Sequence[int],
    guard: Guard,
    limits: RetryLimits,
) -> dict[int, Outcome]:
    """Give the answers by place, of those whose request left before the delivery was to end."""
    facts = [commands[place].facts for place in pending]
    answers = gateway.delete_chunk(facts, guard=guard, ending=limits.ending)
    return {
        place: outcome for place, outcome in zip(pending, answers, strict=True) if outcome is not NOT_SENT
    }
