"""Looks at one object by a HEAD, and finds out what a refusal of it means: a HEAD has no body to say so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from s3_retention.core.objects import ObjectFacts
from s3_retention.core.outcome import STOPS_BATCH, FailureClass, Final, Outcome
from s3_retention.core.storage_classes import told_class
from s3_retention.s3.answers import STORE_ERRORS, outcome_of_error, request_id_of
from s3_retention.s3.keys import NOT_SENDABLE, is_sendable

if TYPE_CHECKING:
    from s3_retention.core.objects import ObjectRef
    from s3_retention.s3.gateway import S3Gateway


def look(gateway: S3Gateway, ref: ObjectRef) -> ObjectFacts | Outcome:
    """Look at one object, once: its facts, ``already_absent``, or why the store would not say."""
    if not is_sendable(ref.key):
        return NOT_SENDABLE
    arguments: dict[str, Any] = {"Bucket": ref.bucket, "Key": ref.key}
    if ref.version_id is not None:
        arguments["VersionId"] = ref.version_id
    try:
        answer = gateway.client.head_object(**arguments)
    except STORE_ERRORS as error:
        fault = outcome_of_error(error, whole_request=False)
        if fault.code in ("404", "NoSuchKey", "NoSuchVersion"):
            return _absent_or_no_bucket(gateway, ref.bucket, fault)
        if fault.code in ("400", "403"):
            why = _why_refused(gateway, ref.bucket, fault)
            # The store takes requests, but not this one: as of an object that needs its customer's key (SSE-C).
            return replace(why, kind=FailureClass.MALFORMED) if why.code == "400" else why
        return fault
    etag, size, modified_at = answer.get("ETag"), answer.get("ContentLength"), answer.get("LastModified")
    if etag is None or size is None or modified_at is None:
        # Python takes the end of a connection for the end of the headers: this answer may have broken off.
        missing = next(name for name in ("ContentLength", "LastModified", "ETag") if name not in answer)
        return Outcome(FailureClass.UNKNOWN, code=f"No{missing}", request_id=request_id_of(dict(answer)))
    return ObjectFacts(ref, etag, size, modified_at.replace(microsecond=0), told_class(answer))


def _why_refused(gateway: S3Gateway, bucket: str, fault: Outcome) -> Outcome:
    # A HEAD has no body, so a refused signature, an expired token and a denied key look alike: an answer with
    # a body tells a fault of the identity or the clock, which no object is to blame for.
    why = gateway.ask_page({"Bucket": bucket, "MaxKeys": 1})
    return why if isinstance(why, Outcome) and why.kind in STOPS_BATCH else fault


def _absent_or_no_bucket(gateway: S3Gateway, bucket: str, fault: Outcome) -> Outcome:
    # A HEAD has no body: a 404 is also what a missing bucket says, and that is never "already gone".
    why = gateway.head_bucket(bucket)
    return why if isinstance(why, Outcome) else replace(fault, kind=Final.ALREADY_ABSENT)
