"""The answer of a policy to one object: keep or expire, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import TYPE_CHECKING

from s3_retention.core.age import DETACH_TIME_UNKNOWN, NO_DATE_IN_TAG
from s3_retention.core.values import value

if TYPE_CHECKING:
    from s3_retention.core.objects import ObjectFacts

UTC = timezone.utc
_OLDEST = datetime.min.replace(tzinfo=UTC)


class Action(str, Enum):
    """What a policy wants to happen to an object."""

    KEEP = "keep"
    EXPIRE = "expire"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An action and its reasons: stable snake_case ids, stored and counted."""

    action: Action
    reasons: tuple[str, ...]


@value
class Candidate:
    """An object that is selected and dated; if it is due, and if a keep rule spares it, is asked next.

    Times are aware, in UTC. ``group_key`` is a JSON array of the group's values, None without a keep rule; ``tenant``
    is None where the policy names none.
    """

    facts: ObjectFacts
    reference_at: datetime | None
    due_at: datetime | None
    group_key: str | None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What the rows of an object tell of it, for a policy of rows."""

    detached_at: datetime | None
    tenant: str | None = None


NO_ROWS = RowFacts(None)
# One value for each reason, made once: most objects of a listing get one of these.
(
    NOT_SELECTED,
    TOO_SMALL,
    TOO_LARGE,
    OTHER_CLASS,
    NO_DATE,
    NOT_PARSABLE,
    IN_FUTURE,
    NOT_RECORDABLE,
    NO_GROUP,
    NO_TENANT,
    NO_DETACH_TIME,
    NOT_DUE,
    OTHER_TAGS,
    TAGS_NOT_READ,
    NO_TAG_DATE,
) = (
    Verdict(Action.KEEP, (reason,))
    for reason in (
        "not_selected",
        "too_small",
        "too_large",
        "other_storage_class",
        "no_date_in_key",
        "date_not_parsable",
        "date_in_future",
        "key_not_recordable",
        "group_not_readable",
        "tenant_not_readable",
        DETACH_TIME_UNKNOWN,
        "not_due",
        "other_tags",
        "tags_not_readable",
        NO_DATE_IN_TAG,
    )
)
DUE = Verdict(Action.EXPIRE, ("due",))
BY_REASON = {
    verdict.reasons[0]: verdict
    for verdict in (TOO_SMALL, TOO_LARGE, NO_DATE, NOT_PARSABLE, IN_FUTURE, NO_DETACH_TIME, NO_TAG_DATE)
}


def is_recordable(key: str) -> bool:
    """Tell whether Postgres can hold the key: NUL and lone surrogates have no place in its text."""
    if key.isascii():
        return "\0" not in key
    return "\0" not in key and not any("\ud800" <= char <= "\udfff" for char in key)


def newness(candidate: Candidate) -> tuple[bool, datetime, datetime, bytes]:
    """Give by what a candidate is newer than another one of its group."""
    at = candidate.reference_at
    return at is None, at or _OLDEST, candidate.facts.last_modified_at, candidate.facts.ref.key.encode()
