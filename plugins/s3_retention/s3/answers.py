"""Reads what botocore gives or raises, and classes it."""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError

from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.core.outcome import STILL_EXPIRED, FailureClass, Final, Outcome, classify
from s3_retention.core.storage_classes import told_class
from s3_retention.errors import ListingError, ListingRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

StoreError = (
    ClientError | BotoCoreError | ResponseParserError | ValueError | TypeError | RuntimeError | OverflowError
)
STORE_ERRORS = (
    ClientError,
    BotoCoreError,
    ResponseParserError,
    ValueError,
    TypeError,
    RuntimeError,
    OverflowError,
)
"""All that a call can raise. An answer that is cut or no XML is a ``ResponseParserError``, which is no
``BotoCoreError``; one in which a number or a time is none, or comes twice, is whatever Python raises over it; and
credentials that are expired after their refresh, too, are a ``RuntimeError``."""

MAX_MESSAGE = 500
"""Characters of a store's message, code and request id that are kept."""

_NEVER_LEFT = (EndpointConnectionError, ConnectTimeoutError)
_NO_IDENTITY = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)


def request_id_of(answer: Mapping[str, Any]) -> str | None:
    """Give the request id of an answer, as AWS support and server logs know it."""
    metadata = answer.get("ResponseMetadata", {})
    found = metadata.get("RequestId") or metadata.get("HTTPHeaders", {}).get("x-amz-request-id")
    # Of a header, which can hold what the ledger's text cannot.
    return None if found is None else str(found).replace("\0", "")[:MAX_MESSAGE]


def retry_after_of(answer: Mapping[str, Any]) -> float:
    """Give the seconds for which an answer asks to be left alone; 0.0 where it does not, or in no known form.

    ``Retry-After`` has seconds or a date (RFC 9110 section 10.2.3); a date is held against the ``Date`` of the same
    answer, since the clock of the store is not ours. ``x-amz-retry-after`` has milliseconds.
    """
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    milliseconds = str(headers.get("x-amz-retry-after", "")).strip()
    if milliseconds.isdecimal():
        return float(milliseconds) / 1000
    asked_for = str(headers.get("retry-after", "")).strip()
    if asked_for.isdecimal():
        return float(asked_for)
    at = _http_date(asked_for)
    now = _http_date(str(headers.get("date", ""))) or datetime.now(timezone.utc)
    return max(0.0, (at - now).total_seconds()) if at is not None else 0.0


def _http_date(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return at if at.tzinfo is not None else None  # "-0000" names no zone (RFC 5322, 3.3)


def clock_of(answer: Mapping[str, Any]) -> datetime | None:
    """Give the clock of the store in an answer, in whole seconds; None if it tells none."""
    return _http_date(str(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", "")))


def outcome_of_error(error: StoreError, *, whole_request: bool) -> Outcome:
    """Class an error that botocore raised.

    A broken connection or answer is ``unknown``: the store may have acted. Only where the request cannot have
    left is it ``transient``. A bare 404 is ``unknown`` too, since a HEAD cannot tell a missing key from a
    missing bucket.
    """
    if isinstance(error, ClientError):
        body = error.response.get("Error", {})
        code, message = (str(body.get(name, ""))[:MAX_MESSAGE] for name in ("Code", "Message"))
        kind = classify(code, error.response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
        if code == "InvalidRequest" and "Content-MD5" in message:
            kind = FailureClass.CONFIG  # "Missing required header for this request: Content-MD5"
        return Outcome(
            kind,
            code=code or None,
            message=message or None,
            request_id=request_id_of(error.response),
            whole_request=whole_request,
            retry_after=retry_after_of(error.response),
        )
    kind = FailureClass.UNKNOWN
    if isinstance(error, RuntimeError) and "credentials" in str(error):
        return Outcome(FailureClass.AUTH, code=STILL_EXPIRED, whole_request=whole_request)
    if isinstance(error, _NEVER_LEFT):
        kind = FailureClass.TRANSIENT
    elif isinstance(error, _NO_IDENTITY):
        kind = FailureClass.AUTH
    # The text of a botocore error can hold a signed URL: its name alone is kept.
    return Outcome(kind, code=type(error).__name__, message=None, whole_request=whole_request)


def outcome_of_entry(entry: Mapping[str, Any], *, request_id: str | None) -> Outcome:
    """Class one ``<Error>`` of a DeleteObjects answer."""
    code = str(entry.get("Code", ""))[:MAX_MESSAGE]
    return Outcome(
        classify(code),
        code=code or None,
        message=str(entry.get("Message", ""))[:MAX_MESSAGE] or None,
        request_id=request_id,
    )


def may_pass(answer: object) -> bool:
    """Say whether a call failed with what may pass by itself, so that it is worth another one."""
    return isinstance(answer, Outcome) and answer.is_retried


def broken_off(what: str, why: Outcome, *, then: str = "; nothing was planned") -> ListingError:
    """Make the error of a listing, or of a question before it, that the store did not answer to its end."""
    raised = ListingError if why.is_retried else ListingRefusedError
    return raised(f"{what} {why.code} ({why.kind.value}): {why.message or 'the store gave no message'}{then}")


def is_settled_by_look(outcome: Outcome) -> bool:
    """Say whether a look at the object must decide: nobody knows, or the condition failed.

    A 412 can also mean that the key is gone, and an unanswered request may have been carried out.
    """
    return outcome.kind in (FailureClass.UNKNOWN, Final.CHANGED)


def no_end_told(answer: Mapping[str, Any]) -> Outcome:
    """The outcome of a listing's answer without ``IsTruncated``: nobody knows what it leaves out."""
    return Outcome(
        FailureClass.UNKNOWN,
        code="NoIsTruncated",
        message="an answer without IsTruncated is a fault, not an end",
        request_id=request_id_of(answer),
        whole_request=True,
    )


def is_empty(answer: Mapping[str, Any]) -> bool:
    """Say whether a 200 came without a body, which botocore reads like one that says nothing."""
    return bool(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("content-length") == "0")


def nothing_said(answer: Mapping[str, Any]) -> Outcome:
    """The outcome of a 200 without a body."""
    return Outcome(
        FailureClass.UNKNOWN,
        code="EmptyAnswer",
        message="the store answered 200 without a body",
        request_id=request_id_of(answer),
        whole_request=True,
    )


def facts_of_listed(bucket: str, prefix: str, entry: dict[str, Any], answer: dict[str, Any]) -> ObjectFacts:
    """Read one entry of a page. Raises ``ListingError`` for a key that was not asked for, or an entry that is none."""
    key, etag, size, modified_at = (entry.get(name) for name in ("Key", "ETag", "Size", "LastModified"))
    if not (isinstance(key, str) and isinstance(size, int) and isinstance(modified_at, datetime)):
        raise ListingError(f"listing s3://{bucket}/{prefix}: not one key, size and time: {entry!r:.200}")
    if answer.get("EncodingType") == "url" and ("%" in key or "+" in key):
        try:
            key = unquote_plus(key, errors="strict")
        except UnicodeDecodeError:
            # No UTF-8: kept as it is, with lone surrogates, so that the policy keeps the object and counts it.
            key = unquote_plus(key, errors="surrogateescape")
    if not key.startswith(prefix):
        raise ListingError(f"listing s3://{bucket}/{prefix} named a key outside the prefix: {key!r}")
    etag, storage_class = etag if isinstance(etag, str) else None, told_class(entry)
    return ObjectFacts(ObjectRef(bucket, key), etag, size, modified_at, storage_class)
