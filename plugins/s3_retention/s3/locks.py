"""Finds out whether a version that could not be deleted is under Object Lock: a retention, or a legal hold.

A store says ``AccessDenied`` for a locked version as it does for one that the identity may not delete
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock-managing.html). A HEAD tells the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from s3_retention.core.outcome import FailureClass, Outcome, distinct
from s3_retention.s3.answers import STORE_ERRORS, clock_of, outcome_of_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.objects import ObjectFacts, ObjectRef
    from s3_retention.s3.gateway import S3Gateway

_NOT_THERE = ("404", "NoSuchKey", "NoSuchVersion", "NoSuchObjectLockConfiguration")
_MAY_BE_LOCKED = (FailureClass.PERMISSION, FailureClass.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Lock:
    """What holds a version: a retention in a mode until a time, a legal hold, or both."""

    mode: str | None = None
    retain_until: datetime | None = None
    is_held: bool = False

    def __bool__(self) -> bool:
        """True where anything holds the version."""
        return self.is_held or self.mode is not None

    def __str__(self) -> str:
        """Say what holds the version."""
        parts = []
        if self.mode is not None:
            until = f" until {self.retain_until:%Y-%m-%d %H:%M:%S} UTC" if self.retain_until else ""
            parts.append(f"a retention in mode {self.mode}{until}")
        if self.is_held:
            parts.append("a legal hold, which has no end")
        return f"the version is under {' and '.join(parts)}"


def settle_locks(
    gateway: S3Gateway, targets: Sequence[ObjectFacts], outcomes: Sequence[Outcome]
) -> list[Outcome]:
    """Class as ``locked`` what was denied, or not answered for, because of a lock on the version that was named.

    ``not_before`` is the end of the retention, None under a legal hold alone. What no look explains stays as it is.
    """
    if not any(one.kind in _MAY_BE_LOCKED for one in distinct(outcomes)):
        return list(outcomes)
    looks = _Looks(gateway)
    return [
        _locked(outcome, lock)
        if _is_suspect(planned, outcome) and (lock := looks.at(planned.ref))
        else outcome
        for planned, outcome in zip(targets, outcomes, strict=True)
    ]


def _is_suspect(planned: ObjectFacts, outcome: Outcome) -> bool:
    # A delete marker cannot be locked.
    is_version = planned.ref.version_id is not None and planned.etag is not None
    return is_version and outcome.kind in _MAY_BE_LOCKED and not outcome.whole_request


def _locked(outcome: Outcome, lock: Lock) -> Outcome:
    return replace(outcome, kind=FailureClass.LOCKED, message=str(lock), not_before=lock.retain_until)


def _lock(mode: str | None, until: datetime | None, hold: str | None, at: datetime | None) -> Lock:
    """Make a lock of what an answer shows; ``at`` is the store's clock, None where it tells none.

    A retention is shown for ever, and holds nothing from its end on.
    """
    has_ended = until is not None and at is not None and until <= at
    is_held = hold == "ON"
    return Lock(is_held=is_held) if has_ended else Lock(mode, until, is_held)


@dataclass(slots=True)
class _Looks:
    """The looks at the versions of one chunk; what the store refuses once is not asked for again."""

    gateway: S3Gateway
    _refused: set[str] = field(default_factory=set)

    def at(self, ref: ObjectRef) -> Lock:
        """Look at one version; a lock that is none where nothing is known."""
        shown = self._ask("head_object", ref)
        mode, until = shown.get("ObjectLockMode"), shown.get("ObjectLockRetainUntilDate")
        lock = _lock(mode, until, shown.get("ObjectLockLegalHoldStatus"), clock_of(shown))
        if lock or not shown:
            return lock
        # A HEAD leaves out what the identity may not read of it, and each of the two has a right of its own.
        answer = self._ask("get_object_retention", ref)
        retention = answer.get("Retention", {})
        hold = self._ask("get_object_legal_hold", ref).get("LegalHold", {})
        mode, until = retention.get("Mode"), retention.get("RetainUntilDate")
        return _lock(mode, until, hold.get("Status"), clock_of(answer))

    def _ask(self, name: str, ref: ObjectRef) -> dict[str, Any]:
        if name in self._refused:
            return {}
        call = getattr(self.gateway.client, name)

        def ask() -> dict[str, Any] | Outcome:
            try:
                return dict(call(Bucket=ref.bucket, Key=ref.key, VersionId=ref.version_id))
            except STORE_ERRORS as error:
                return outcome_of_error(error, whole_request=False)

        answer: dict[str, Any] | Outcome = self.gateway.limits.retrying(
            lambda answer: isinstance(answer, Outcome) and answer.is_retried and answer.code not in _NOT_THERE
        )(ask)
        if isinstance(answer, Outcome):
            # Not there: said of this version. Anything else would be said of the next one, too.
            self._refused |= set() if answer.code in _NOT_THERE else {name}
            return {}
        return answer
