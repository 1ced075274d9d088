"""Finds out, with one object that is due, whether a store holds a delete to its ETag."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from s3_retention.core.condition import EtagCondition, Guard
from s3_retention.core.objects import ObjectFacts, is_same_incarnation
from s3_retention.core.outcome import FailureClass, Final, Outcome, classify
from s3_retention.s3.keys import is_condition, xml_can_carry
from s3_retention.steps.retry import look_with_retries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.s3.limits import RetryLimits

VALID_FOR = timedelta(days=1)
"""How long a probe is believed: a store, or the proxy before it, can be exchanged."""
MAX_PROBED = 3
"""Objects that are tried before a delivery goes on without knowing."""

_WRONG_ETAG = f'"{"0" * 32}"'
_BY_ETAG = Guard()


@dataclass(frozen=True, slots=True)
class Probe:
    """What a store does with a wrong ETag, None where it could not be found out.

    ``command`` is the one whose object a store deleted all the same, and ``outcome`` what became of it.
    """

    condition: EtagCondition | None = None
    command: DeleteCommand | None = None
    outcome: Outcome | None = None


def run(gateway: S3Gateway, commands: Sequence[DeleteCommand], limits: RetryLimits) -> Probe:
    """Delete one of these objects, all of which are to be deleted now, with a wrong ETag.

    It is looked at before, and again after: only an object that is still there as planned proves that the store
    honours the condition, and only one that is gone that it does not. Then it was due, and its delete counts.
    Touches the store alone.
    """
    num_probed = 0
    for command in commands:
        facts = command.facts
        if facts.etag == _WRONG_ETAG or not is_condition(facts.etag) or facts.ref.version_id is not None:
            continue
        if not xml_can_carry(facts.ref.key):
            continue
        if num_probed == MAX_PROBED or limits.ending.is_set():
            break
        num_probed += 1
        if not _is_there(gateway, facts, limits) or limits.ending.is_set():
            continue
        probe = _probe(gateway, command, limits)
        if probe.condition is not None:
            return probe
    return Probe()


def _is_there(gateway: S3Gateway, facts: ObjectFacts, limits: RetryLimits) -> bool:
    found = look_with_retries(gateway, facts.ref, limits)
    return isinstance(found, ObjectFacts) and is_same_incarnation(facts, found)


def _probe(gateway: S3Gateway, command: DeleteCommand, limits: RetryLimits) -> Probe:
    wrong = replace(command.facts, etag=_WRONG_ETAG)
    (outcome,) = gateway.delete_chunk([wrong], guard=_BY_ETAG)
    if outcome.kind in (FailureClass.MALFORMED, FailureClass.UNSUPPORTED):
        return Probe(EtagCondition.REFUSED if _is_there(gateway, command.facts, limits) else None)
    # By the store's own words on this key: an object that is still there after no answer at all proves nothing, and
    # a request that is refused whole may have been refused by something before the store.
    if classify(outcome.code or "") is Final.CHANGED and not outcome.whole_request:
        return Probe(EtagCondition.HONOURED if _is_there(gateway, command.facts, limits) else None)
    if outcome.kind is Final.DELETED:
        gone = look_with_retries(gateway, command.ref, limits)
        if isinstance(gone, Outcome) and gone.kind is Final.ALREADY_ABSENT:
            return Probe(EtagCondition.IGNORED, command, outcome)
    return Probe()
