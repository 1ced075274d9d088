"""Reads what botocore gives or raises, and classes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

from s3_retention.core.outcome import FailureClass, Final, Outcome, classify

if TYPE_CHECKING:
    from collections.abc import Mapping

STORE_ERRORS = (ClientError, BotoCoreError, ResponseParserError)
"""All that a call can raise: the last one, for an answer that is cut or no XML, is neither of the others."""

MAX_MESSAGE = 500
"""Characters of a store's message that are kept."""

_NEVER_LEFT = (EndpointConnectionError, ConnectTimeoutError)
_NO_IDENTITY = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)


def request_id_of(answer: Mapping[str, Any]) -> str | None:
    """Give the request id of an answer, as AWS support and server logs know it."""
    metadata = answer.get("ResponseMetadata", {})
    found = metadata.get("RequestId") or metadata.get("HTTPHeaders", {}).get("x-amz-request-id")
    return None if found is None else str(found)


def outcome_of_error(
    error: ClientError | BotoCoreError | ResponseParserError, *, whole_request: bool
) -> Outcome:
    """Class an error that botocore raised.

    A broken connection or answer is ``unknown``: the store may have acted. Only where the request cannot have
    left is it ``transient``. A bare 404 is ``unknown`` too, since a HEAD cannot tell a missing key from a
    missing bucket.
    """
    if isinstance(error, ClientError):
        body = error.response.get("Error", {})
        code = str(body.get("Code", ""))
        return Outcome(
            classify(code, error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")),
            code=code or None,
            message=str(body.get("Message", ""))[:MAX_MESSAGE] or None,
            request_id=request_id_of(error.response),
            whole_request=whole_request,
        )
    kind = FailureClass.UNKNOWN
    if isinstance(error, _NEVER_LEFT):
        kind = FailureClass.TRANSIENT
    elif isinstance(error, _NO_IDENTITY):
        kind = FailureClass.AUTH
    # The text of a botocore error can hold a signed URL: its name alone is kept.
    return Outcome(kind, code=type(error).__name__, message=None, whole_request=whole_request)


def outcome_of_entry(entry: Mapping[str, Any], *, request_id: str | None) -> Outcome:
    """Class one ``<Error>`` of a DeleteObjects answer."""
    code = str(entry.get("Code", ""))
    return Outcome(
        classify(code),
        code=code or None,
        message=str(entry.get("Message", ""))[:MAX_MESSAGE] or None,
        request_id=request_id,
    )


def is_settled_by_look(outcome: Outcome) -> bool:
    """Say whether a look at the object must decide: nobody knows, or the condition failed.

    A 412 can also mean that the key is gone, and an unanswered request may have been carried out.
    """
    return outcome.kind in (FailureClass.UNKNOWN, Final.CHANGED)
