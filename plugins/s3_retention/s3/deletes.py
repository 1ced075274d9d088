"""The two requests that delete, and what each of them says of its objects."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any

from s3_retention.core.condition import Guard
from s3_retention.core.outcome import FailureClass, Final, Outcome
from s3_retention.s3.answers import STORE_ERRORS, outcome_of_error, request_id_of
from s3_retention.s3.delete_results import join
from s3_retention.s3.request_body import Identifiers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_s3 import S3Client

    from s3_retention.core.objects import ObjectFacts

BY_ETAG = Guard()

NEVER = Event()
"""Of a delivery that nothing ends: it is not set by anyone."""
NOT_SENT = Outcome(
    FailureClass.TRANSIENT, code="NotSent", message="the delivery was to end before its request left"
)
"""What stands for a target that was not tried, known by identity: it is no attempt, and the command stays as it was."""

MIN_ALL_MALFORMED = 50
"""Keys of one request from which on, where each of them is refused as malformed, no key is to blame."""


def delete_together(
    client: S3Client, targets: Sequence[ObjectFacts], *, guard: Guard = BY_ETAG, ending: Event = NEVER
) -> list[Outcome]:
    """Send one DeleteObjects, or more where one key spoils it for all; one outcome per target, in input order.

    Once ``ending`` is set nothing leaves any more, and what is left is ``NOT_SENT``.
    """
    outcomes = _delete_in_halves(client, targets, guard, ending)
    if len(targets) < MIN_ALL_MALFORMED or any(one.kind is not FailureClass.MALFORMED for one in outcomes):
        return outcomes
    # The store takes no such request at all, as some do that know no DeleteObjects, or no ETag in it.
    return [replace(one, whole_request=True) for one in outcomes]


def _delete_in_halves(
    client: S3Client, targets: Sequence[ObjectFacts], guard: Guard, ending: Event
) -> list[Outcome]:
    if ending.is_set():
        return [NOT_SENT] * len(targets)
    try:
        answer: dict[str, Any] = dict(
            client.delete_objects(
                Bucket=targets[0].ref.bucket,
                Delete={
                    "Objects": Identifiers(_identifier(facts, guard) for facts in targets),
                    "Quiet": False,
                },
                **_bypass(guard, *targets),
            )
        )
    except STORE_ERRORS as error:
        fault = outcome_of_error(error, whole_request=True)
        if fault.is_final:
            # No key was answered for: "not found" or "changed" of a whole request proves nothing of any.
            fault = replace(fault, kind=FailureClass.UNKNOWN)
        if fault.kind is FailureClass.MALFORMED:
            # One key spoils the request for all: halve until it stands alone, and is the one to blame.
            middle = len(targets) // 2
            if not middle:
                return [replace(fault, whole_request=False)]
            return [
                *_delete_in_halves(client, targets[:middle], guard, ending),
                *_delete_in_halves(client, targets[middle:], guard, ending),
            ]
        return [fault] * len(targets)
    return join(targets, answer)


def delete_alone(client: S3Client, facts: ObjectFacts, *, guard: Guard = BY_ETAG) -> Outcome:
    """Send one DeleteObject: its key stands in the URL, which carries what XML does not."""
    arguments: dict[str, Any] = {"Bucket": facts.ref.bucket, "Key": facts.ref.key}
    if facts.ref.version_id is not None:
        arguments["VersionId"] = facts.ref.version_id
    elif guard.sends_etag and facts.etag is not None:
        arguments["IfMatch"] = facts.etag
    try:
        answer: dict[str, Any] = dict(client.delete_object(**arguments, **_bypass(guard, facts)))
    except STORE_ERRORS as error:
        return outcome_of_error(error, whole_request=False)
    # The id is that of the marker which was added; where a version was named, it is that one's own.
    marker = answer.get("VersionId") if facts.ref.version_id is None and answer.get("DeleteMarker") else None
    return Outcome(Final.DELETED, request_id=request_id_of(answer), marker_version_id=marker or None)


def _identifier(facts: ObjectFacts, guard: Guard) -> Any:
    identifier = {"Key": facts.ref.key}
    if facts.ref.version_id is not None:
        identifier["VersionId"] = facts.ref.version_id
    elif guard.sends_etag and facts.etag is not None:
        identifier["ETag"] = facts.etag
    return identifier


def _bypass(guard: Guard, *targets: ObjectFacts) -> Any:
    """Ask to go past a retention in mode GOVERNANCE, where the policy says so and a version is named."""
    is_asked = guard.bypasses_governance and any(facts.ref.version_id is not None for facts in targets)
    return {"BypassGovernanceRetention": True} if is_asked else {}
