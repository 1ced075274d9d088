"""What became of one object: a value, never an exception. The table of S3 codes and classes stands here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime


class Final(str, Enum):
    """Outcomes that end a command with a ledger entry."""

    DELETED = "deleted"
    ALREADY_ABSENT = "already_absent"
    CHANGED = "changed"
    KEPT = "kept"


class FailureClass(str, Enum):
    """Why a command could not be ended. The operator's answer to each stands in docs/runbook.md."""

    THROTTLED = "throttled"
    TRANSIENT = "transient"
    CONFLICT = "conflict"
    PERMISSION = "permission"
    LOCKED = "locked"
    MALFORMED = "malformed"
    CONFIG = "config"
    AUTH = "auth"
    CLOCK = "clock"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"
    WORKER_LOST = "worker_lost"


_GONE = frozenset({Final.DELETED, Final.ALREADY_ABSENT})

RETRIED_IN_TASK = frozenset(
    {FailureClass.THROTTLED, FailureClass.TRANSIENT, FailureClass.CONFLICT, FailureClass.UNKNOWN}
)
"""Worth another attempt within the task; the others need a person first."""

OF_ONE_OBJECT = frozenset({FailureClass.PERMISSION, FailureClass.MALFORMED})
"""Of a look at one object: what another one need not meet."""

STOPS_BATCH = frozenset({FailureClass.CONFIG, FailureClass.AUTH, FailureClass.CLOCK})
"""No fault of an object: every further request would fail alike, so the batch stops."""

STILL_EXPIRED = "CredentialsStillExpired"
"""Our own code: new credentials were fetched, and are no better. No request was made."""

DATABASE_UNAVAILABLE = "DatabaseUnavailable"
"""Our own code: the database of the rows is away or too slow. No request was made."""

POINTER_UNAVAILABLE = "PointerUnavailable"
"""Our own code: the store did not give a pointer of the policy; another try may get it."""

_PASSES_AT_NEXT_TRY = frozenset(
    {"ExpiredToken", "TokenRefreshRequired", STILL_EXPIRED, DATABASE_UNAVAILABLE, POINTER_UNAVAILABLE}
)

_CODES: dict[str, FailureClass | Final] = {
    # https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html unless another source is named
    "SlowDown": FailureClass.THROTTLED,
    "ServiceUnavailable": FailureClass.THROTTLED,
    "Throttling": FailureClass.THROTTLED,
    "ThrottlingException": FailureClass.THROTTLED,
    "RequestLimitExceeded": FailureClass.THROTTLED,
    "TooManyRequests": FailureClass.THROTTLED,
    "InternalError": FailureClass.TRANSIENT,
    "RequestTimeout": FailureClass.TRANSIENT,
    "IncompleteBody": FailureClass.TRANSIENT,
    "BadDigest": FailureClass.TRANSIENT,
    "OperationAborted": FailureClass.CONFLICT,
    "ConditionalRequestConflict": FailureClass.CONFLICT,
    # RFC 9110 section 13.1.1: the condition named an incarnation that is not there any more.
    "PreconditionFailed": Final.CHANGED,
    # Only these two mean "gone": NoSuchBucket never does.
    "NoSuchKey": Final.ALREADY_ABSENT,
    "NoSuchVersion": Final.ALREADY_ABSENT,
    "AccessDenied": FailureClass.PERMISSION,
    "MalformedXML": FailureClass.MALFORMED,
    "KeyTooLongError": FailureClass.MALFORMED,
    "InvalidArgument": FailureClass.MALFORMED,
    "InvalidURI": FailureClass.MALFORMED,
    "NoSuchBucket": FailureClass.CONFIG,
    "InvalidBucketName": FailureClass.CONFIG,
    "PermanentRedirect": FailureClass.CONFIG,
    "TemporaryRedirect": FailureClass.CONFIG,
    "AuthorizationHeaderMalformed": FailureClass.CONFIG,
    "MissingContentMD5": FailureClass.CONFIG,
    "InvalidAccessKeyId": FailureClass.AUTH,
    "SignatureDoesNotMatch": FailureClass.AUTH,
    "AccountProblem": FailureClass.AUTH,
    "AllAccessDisabled": FailureClass.AUTH,
    "ExpiredToken": FailureClass.AUTH,
    "TokenRefreshRequired": FailureClass.AUTH,
    "InvalidToken": FailureClass.AUTH,
    "RequestTimeTooSkewed": FailureClass.CLOCK,
    "NotImplemented": FailureClass.UNSUPPORTED,
    "MethodNotAllowed": FailureClass.UNSUPPORTED,
}

# A HEAD has no body, so botocore puts the bare status where a code would be. 404 is missing on purpose:
# it can be the key or the bucket, and only a look at the bucket tells which.
_STATUSES: dict[int, FailureClass | Final] = {
    HTTPStatus.MOVED_PERMANENTLY: FailureClass.CONFIG,
    HTTPStatus.TEMPORARY_REDIRECT: FailureClass.CONFIG,
    HTTPStatus.FORBIDDEN: FailureClass.PERMISSION,
    HTTPStatus.CONFLICT: FailureClass.CONFLICT,
    HTTPStatus.PRECONDITION_FAILED: Final.CHANGED,
    HTTPStatus.TOO_MANY_REQUESTS: FailureClass.THROTTLED,
    HTTPStatus.INTERNAL_SERVER_ERROR: FailureClass.TRANSIENT,
    HTTPStatus.NOT_IMPLEMENTED: FailureClass.UNSUPPORTED,
    HTTPStatus.BAD_GATEWAY: FailureClass.TRANSIENT,
    HTTPStatus.SERVICE_UNAVAILABLE: FailureClass.THROTTLED,
    HTTPStatus.GATEWAY_TIMEOUT: FailureClass.TRANSIENT,
}


def classify(code: str, status: int | None = None) -> FailureClass | Final:
    """Class an S3 error code, or the bare status where the code says nothing; else ``unknown``."""
    known = _CODES.get(code)
    if known is not None:
        return known
    if code.isdigit():
        status = int(code)
    return _STATUSES.get(status or 0, FailureClass.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attempt did to one object.

    ``reason`` is set for ``kept`` alone. ``code`` and ``message`` are the store's own words. ``whole_request``
    says that the request failed as one, so that no object of it is to blame, also where a look has settled it
    since. ``retry_after`` is how many seconds the store asks to be left alone. ``marker_version_id`` is set for
    ``deleted`` alone: the delete marker that a delete without a version id has put on top of the key.
    ``not_before`` may be set for ``locked``: until then the store will not delete the version.
    """

    kind: Final | FailureClass
    reason: str | None = None
    code: str | None = None
    message: str | None = None
    request_id: str | None = None
    whole_request: bool = False
    retry_after: float = 0.0
    marker_version_id: str | None = None
    not_before: datetime | None = None

    @property
    def is_final(self) -> bool:
        """True where the command ends with a ledger entry."""
        return isinstance(self.kind, Final)

    @property
    def is_gone(self) -> bool:
        """True where the object is there no more."""
        return self.kind in _GONE

    @property
    def is_retried(self) -> bool:
        """True where another attempt in the same task may help."""
        return self.kind in RETRIED_IN_TASK

    @property
    def may_pass(self) -> bool:
        """True where a later try of the task may get on: new credentials are fetched by it, a database may be back."""
        return self.is_retried or self.code in _PASSES_AT_NEXT_TRY

    @property
    def stops_batch(self) -> bool:
        """True where every further request would fail alike: the store or the identity is at fault."""
        return self.kind in STOPS_BATCH or (self.whole_request and self.kind is FailureClass.PERMISSION)


def distinct(outcomes: Iterable[Outcome]) -> Collection[Outcome]:
    """Give each of these values once, by what it is and not by what it says, in the order in which they came.

    Most of an answer is one and the same value, so that a question about all of them is asked of a few.
    """
    return {id(one): one for one in outcomes}.values()


def kept(reason: str) -> Outcome:
    """Make the outcome of an object that is left in place, with its reason."""
    return Outcome(Final.KEPT, reason=reason)
