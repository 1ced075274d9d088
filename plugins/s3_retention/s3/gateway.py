"""The gateway to one store: lists, looks, deletes up to 1,000 objects and says what became of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from s3_retention.core.outcome import FailureClass, Outcome, distinct
from s3_retention.errors import ListingError
from s3_retention.s3.answers import (
    STORE_ERRORS,
    broken_off,
    clock_of,
    facts_of_listed,
    is_settled_by_look,
    may_pass,
    no_end_told,
    outcome_of_error,
)
from s3_retention.s3.deletes import BY_ETAG, NEVER, NOT_SENT, delete_alone, delete_together
from s3_retention.s3.keys import can_go_together, refuse_unsent, xml_can_carry
from s3_retention.s3.limits import RetryLimits
from s3_retention.s3.locks import settle_locks
from s3_retention.s3.looks import look
from s3_retention.s3.parsing import quicken, refuse_other_answers
from s3_retention.s3.reads import read_body, read_tags
from s3_retention.s3.recheck import outcome_by_look, recheck
from s3_retention.s3.request_body import write_quickly
from s3_retention.s3.version_listing import ask_versioning, list_histories, look_at_marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from threading import Event

    from mypy_boto3_s3 import S3Client

    from s3_retention.core.condition import Guard
    from s3_retention.core.objects import ListedVersion, ObjectFacts, ObjectRef, Versioning

MAX_CHUNK = 1000
"""Keys of one DeleteObjects request (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html)."""


@dataclass(frozen=True, slots=True)
class S3Gateway:
    """One store under one identity. Threads may share it, as they may a boto3 client."""

    client: S3Client
    limits: RetryLimits = field(default_factory=RetryLimits)

    def __post_init__(self) -> None:
        """Let the client read long answers and write long requests quickly."""
        quicken(self.client)
        refuse_other_answers(self.client)
        write_quickly(self.client)

    @property
    def endpoint(self) -> str:
        """The URL of the store."""
        return self.client.meta.endpoint_url

    def read_clock(self, bucket: str) -> datetime | None:
        """Read the clock of the store, in whole seconds, from an answer about the bucket; None if it tells none."""
        answer = self.limits.retrying(may_pass)(self.head_bucket, bucket)
        # Where it is refused, the listing that follows says what is wrong with the store.
        return None if isinstance(answer, Outcome) else clock_of(answer)

    def list_pages(self, bucket: str, prefix: str) -> Iterator[list[ObjectFacts]]:
        """List everything under a prefix, a page of up to 1,000 at a time, in the store's own order.

        Raises ``ListingError`` whenever the answer cannot be trusted: a part of a listing is no listing.
        """
        token: str | None = None
        while True:
            arguments: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix, "EncodingType": "url"}
            if token is not None:
                arguments["ContinuationToken"] = token
            answer = self.limits.retrying(may_pass)(self.ask_page, arguments)
            if isinstance(answer, Outcome):
                raise broken_off(f"listing s3://{bucket}/{prefix} broke off with", answer)
            yield [facts_of_listed(bucket, prefix, entry, answer) for entry in answer.get("Contents", [])]
            if not answer["IsTruncated"]:
                return
            last, token = token, answer.get("NextContinuationToken")
            if token is None or token == last:
                raise ListingError(f"listing s3://{bucket}/{prefix}: more was promised without a new token")

    def list_page(
        self, bucket: str, prefix: str, *, start_after: str, token: str | None
    ) -> tuple[list[ObjectFacts], str | None] | Outcome:
        """List one page under a prefix, from a key on or by the token of the page before; None for no token: the end.

        For a second look at what is known already: a store may start later than it is asked to, or say less.
        """
        arguments: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix, "EncodingType": "url"}
        arguments |= {"StartAfter": start_after} if token is None else {"ContinuationToken": token}
        answer = self.limits.retrying(may_pass)(self.ask_page, arguments)
        if isinstance(answer, Outcome):
            return answer
        found = [facts_of_listed(bucket, prefix, entry, answer) for entry in answer.get("Contents", [])]
        return found, answer.get("NextContinuationToken") if answer.get("IsTruncated") else None

    def list_histories(self, bucket: str, prefix: str) -> Iterator[list[list[ListedVersion]]]:
        """List all versions and markers, some whole histories of keys at a time; raises as ``list_pages`` does."""
        return list_histories(self, bucket, prefix)

    def ask_versioning(self, bucket: str) -> Versioning:
        """Ask whether a bucket has versions; raises ``ListingError`` where the store does not say."""
        return ask_versioning(self, bucket)

    def read_versioning(self, bucket: str) -> str | None:
        """Read what the store says of the versions of a bucket: ``Enabled``, ``Suspended``, ``Never``; None: nothing.

        Needs ``s3:GetBucketVersioning``; some stores do not know the question.
        """
        try:
            return str(self.client.get_bucket_versioning(Bucket=bucket).get("Status") or "Never")
        except STORE_ERRORS:
            return None

    def ask_page(self, arguments: dict[str, Any]) -> dict[str, Any] | Outcome:
        """Ask for one page of a listing, once: its answer as boto3 gives it, or why it did not come."""
        try:
            answer = dict(self.client.list_objects_v2(**arguments))
        except STORE_ERRORS as error:
            return outcome_of_error(error, whole_request=True)
        # An empty 200 reads as an empty listing.
        return answer if "IsTruncated" in answer else no_end_told(answer)

    def look(self, ref: ObjectRef) -> ObjectFacts | Outcome:
        """Look at one object: its facts, ``already_absent``, or why the store would not say.

        HEAD has whole seconds, so ``last_modified_at`` is cut to them.
        """
        return look(self, ref)

    def read_body(self, ref: ObjectRef, *, max_bytes: int) -> bytes | Outcome:
        """Read a small object whole, or why that cannot be had. Needs ``s3:GetObject``."""
        return read_body(self.client, ref, max_bytes=max_bytes)

    def read_tags(self, ref: ObjectRef) -> dict[str, str] | Outcome:
        """Read the tags of an object, or why that cannot be had. Needs ``s3:GetObjectTagging``."""
        found = read_tags(self.client, ref)
        if isinstance(found, Outcome) and found.kind is FailureClass.UNSUPPORTED:
            # AWS says 405 of a key under a delete marker, as a store does that knows no tags.
            seen = self.look(ref)
            return seen if isinstance(seen, Outcome) and seen.is_final else found
        return found

    def delete_chunk(
        self, targets: Sequence[ObjectFacts], *, guard: Guard = BY_ETAG, ending: Event = NEVER
    ) -> list[Outcome]:
        """Delete up to 1,000 objects of one bucket, each only if it is still what was planned.

        Gives one outcome per target, in input order. Keys that XML cannot carry go one by one, and are looked at
        before. An object without an ETag is not deleted; a version that is named cannot change, and needs no guard.
        Once ``ending`` is set no other request leaves, and what is left is ``NOT_SENT``.
        """
        if len(targets) > MAX_CHUNK:
            raise ValueError(f"{len(targets)} keys: a request takes {MAX_CHUNK}")
        if len({facts.ref.bucket for facts in targets}) > 1:
            raise ValueError("keys of several buckets: a request names one")
        send = self._delete_rechecked if guard.looks_first else self._delete_together
        if can_go_together(targets):
            return settle_locks(self, targets, send(targets, guard, ending))
        outcomes: dict[int, Outcome] = {}
        together: list[int] = []
        for place, facts in enumerate(targets):
            if (refused := refuse_unsent(facts)) is not None:
                outcomes[place] = refused
            elif xml_can_carry(facts.ref.key):
                together.append(place)
            elif ending.is_set():
                outcomes[place] = NOT_SENT
            else:
                outcomes[place] = self._delete_alone(facts, guard)
        if together:
            sent = send([targets[place] for place in together], guard, ending)
            outcomes.update(zip(together, sent, strict=True))
        return settle_locks(self, targets, [outcomes[place] for place in range(len(targets))])

    def _delete_together(self, targets: Sequence[ObjectFacts], guard: Guard, ending: Event) -> list[Outcome]:
        answers = delete_together(self.client, targets, guard=guard, ending=ending)
        return self._settle_by_looks(targets, answers)

    def _delete_alone(self, facts: ObjectFacts, guard: Guard) -> Outcome:
        if facts.ref.version_id is None:
            # That a store honours the ETag was found out with DeleteObjects, and says nothing of DeleteObject.
            (part,) = recheck(self, [facts])
            if (ended := part[0]) is not None:
                return ended
        answer = delete_alone(self.client, facts, guard=guard)
        return self._settle_by_looks([facts], [answer])[0]

    def _delete_rechecked(self, targets: Sequence[ObjectFacts], guard: Guard, ending: Event) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}
        for part in recheck(self, targets):
            outcomes |= {place: ended for place, ended in part.items() if ended is not None}
            there = [place for place, ended in part.items() if ended is None]
            if there:
                answers = self._delete_together([targets[place] for place in there], guard, ending)
                outcomes.update(zip(there, answers, strict=True))
            if ending.is_set():
                break  # nobody looks for what is not sent
        return [outcomes.get(place, NOT_SENT) for place in range(len(targets))]

    def _settle_by_looks(self, targets: Sequence[ObjectFacts], outcomes: Sequence[Outcome]) -> list[Outcome]:
        if not any(map(is_settled_by_look, distinct(outcomes))):
            return list(outcomes)
        settled = []
        no_answer: Outcome | None = None
        for planned, outcome in zip(targets, outcomes, strict=True):
            if not is_settled_by_look(outcome):
                settled.append(outcome)
                continue
            # A store that answers neither the request nor a look is not asked 1,000 times, each up to a timeout.
            found = no_answer if outcome.whole_request and no_answer else self._look_again(planned)
            if outcome.whole_request and isinstance(found, Outcome) and not found.is_final:
                no_answer = found
            settled.append(outcome_by_look(planned, outcome, found))
        return settled

    def _look_again(self, planned: ObjectFacts) -> ObjectFacts | Outcome:
        is_marker = planned.etag is None and planned.ref.version_id is not None
        return look_at_marker(self, planned) if is_marker else self.look(planned.ref)

    def head_bucket(self, bucket: str) -> dict[str, Any] | Outcome:
        """Ask about a bucket; of a missing one, a ``config`` fault."""
        try:
            return dict(self.client.head_bucket(Bucket=bucket))
        except STORE_ERRORS as error:
            fault = outcome_of_error(error, whole_request=True)
            # Of a bucket, a 404 has one meaning only, and does not pass by itself.
            is_missing = fault.code in ("404", "NoSuchBucket")
            return replace(fault, kind=FailureClass.CONFIG, code="NoSuchBucket") if is_missing else fault
