"""Decides named versions again, just before their delete, by a second look at the whole history of each key."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.objects import NULL_VERSION, ListedVersion, is_same_incarnation
from s3_retention.core.outcome import Final, Outcome, kept
from s3_retention.core.verdict import Verdict
from s3_retention.core.versions import NO_LATEST, OVER_KEPT, VersionDecider
from s3_retention.s3.recheck import Faults
from s3_retention.s3.version_listing import look_at_histories
from s3_retention.steps.retry import look_with_retries

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.objects import ObjectRef
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.versions import Judged
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.s3.limits import RetryLimits


@dataclass(slots=True)
class VersionsDecided:
    """What must not be deleted, by command id; and what goes last, with the versions beneath that must go before."""

    outcomes: dict[bytes, Outcome] = field(default_factory=dict)
    beneath: dict[bytes, set[ObjectRef]] = field(default_factory=dict)


def run(
    gateway: S3Gateway,
    policy: RetentionPolicy,
    commands: Sequence[DeleteCommand],
    now: datetime,
    limits: RetryLimits,
) -> VersionsDecided:
    """Decide the commands that name a version, at ``now`` by the ledger's clock. Touches the store alone.

    A version that became the latest again is kept, and so is what is no longer due, or is not the null version that
    was planned. A version that is gone is ``already_absent``: a delete of it would be answered like any other.
    """
    decided = VersionsDecided()
    by_key: dict[str, list[DeleteCommand]] = defaultdict(list)
    for command in commands:
        if command.ref.version_id is not None:
            by_key[command.ref.key].append(command)
    if not by_key:
        return decided
    decider = VersionDecider(policy)
    unseen: list[DeleteCommand] = []
    for key, history in look_at_histories(gateway, policy.source.bucket, by_key).items():
        if isinstance(history, Outcome):
            decided.outcomes |= {command.command_id: history for command in by_key[key]}
            continue
        if not history:
            unseen += by_key[key]
            continue
        judged = zip(history, decider.decide(history, now=now), strict=True)
        by_ref = {entry.facts.ref: (entry, verdict) for entry, verdict in judged}
        for command in by_key[key]:
            outcome = _decide(command, by_ref.get(command.ref), now)
            if outcome is not None:
                decided.outcomes[command.command_id] = outcome
            elif by_ref[command.ref][0].is_latest and len(history) > 1:
                decided.beneath[command.command_id] = by_ref.keys() - {command.ref}
    decided.outcomes |= _look_at_unseen(gateway, unseen, limits)
    return decided


def run_alone(
    gateway: S3Gateway,
    policy: RetentionPolicy,
    commands: Sequence[DeleteCommand],
    *,
    now: datetime,
    limits: RetryLimits,
) -> dict[bytes, Outcome]:
    """Decide commands of which the others of their keys are not sent with them: nothing may lie beneath a latest."""
    decided = run(gateway, policy, commands, now, limits)
    return dict.fromkeys(decided.beneath, kept(OVER_KEPT.reasons[0])) | decided.outcomes


def _look_at_unseen(
    gateway: S3Gateway, commands: Sequence[DeleteCommand], limits: RetryLimits
) -> dict[bytes, Outcome]:
    """Look by its id at each version of a key that no page has shown: a store may leave a whole key out.

    One that is there after all is kept, since nothing is known of what lies on top of it. Of a delete marker a store
    tells nothing by its id: it is ``already_absent``. A store at fault is not asked for each of them.
    """
    outcomes: dict[bytes, Outcome] = {}
    faults = Faults()
    for command in commands:
        if command.facts.etag is None:
            outcomes[command.command_id] = Outcome(Final.ALREADY_ABSENT)
            continue
        found = faults.of_all or look_with_retries(gateway, command.ref, limits)
        seen = found if isinstance(found, Outcome) else kept(NO_LATEST.reasons[0])
        outcomes[command.command_id] = faults.see(seen) or seen
    return outcomes


def _decide(
    command: DeleteCommand, found: tuple[ListedVersion, Judged] | None, now: datetime
) -> Outcome | None:
    if found is None:
        return Outcome(Final.ALREADY_ABSENT)
    entry, judged = found
    if command.ref.version_id == NULL_VERSION and not is_same_incarnation(command.facts, entry.facts):
        return Outcome(Final.CHANGED)
    if isinstance(judged, Verdict):
        return kept(judged.reasons[0])
    is_due = judged.due_at is not None and judged.due_at < now
    return None if is_due else kept("not_due")
