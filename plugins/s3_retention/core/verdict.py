"""The answer of a policy to one object: keep or expire, and why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import TYPE_CHECKING

from s3_retention.core.age import DETACH_TIME_UNKNOWN, AgeRule, in_utc
from s3_retention.core.selection import Selection
from s3_retention.core.storage_classes import STANDARD
from s3_retention.core.values import value

if TYPE_CHECKING:
    import re

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.policy import RetentionPolicy

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
    )
)
DUE = Verdict(Action.EXPIRE, ("due",))
_KEEPS = {
    verdict.reasons[0]: verdict
    for verdict in (TOO_SMALL, TOO_LARGE, NO_DATE, NOT_PARSABLE, IN_FUTURE, NO_DETACH_TIME)
}
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Decider:
    """A policy made ready to decide millions of objects: compiled once, the models are not touched again."""

    __slots__ = ("_age", "_bucket", "_classes", "_group_by", "_has_tenants", "_selection", "_tenant_group")

    def __init__(self, policy: RetentionPolicy) -> None:
        """Compile the policy's patterns."""
        self._bucket = policy.source.bucket
        self._selection = Selection(policy.select, prefix=policy.source.prefix)
        self._classes = policy.select.storage_class
        self._age = AgeRule(policy.age, timezone=policy.timezone)
        self._group_by = policy.keep.group_by if policy.keep is not None else policy.age.whole_groups or None
        self._tenant_group = policy.tenant.group if policy.tenant is not None else None
        self._has_tenants = policy.tenant is not None

    def candidate(  # noqa: PLR0911 - one for each reason
        self, facts: ObjectFacts, *, now: datetime | None = None, rows: RowFacts = NO_ROWS
    ) -> Candidate | Verdict:
        """Return a candidate, due or not, or the verdict "keep" when it is not selected or cannot be decided.

        At ``now`` (aware) nothing from the future is a candidate, or it would take the place of the newest of
        its group, and the real newest would go: an object that was modified after ``now`` by the store's
        clock, whatever its key says, since one of the two clocks is wrong; and one whose period starts later.
        Raises ValueError when ``last_modified_at`` has no zone.
        """
        key = facts.ref.key
        match = self._selection.match(key) if facts.ref.bucket == self._bucket else None
        if match is None:
            return NOT_SELECTED
        reason = self._selection.size_reason(facts.size)
        if reason is not None:
            return _KEEPS[reason]
        if self._classes is not None and (facts.storage_class or STANDARD) not in self._classes:
            return OTHER_CLASS
        if not is_recordable(key):
            return NOT_RECORDABLE
        group_key = None
        if self._group_by is not None:
            group_key = _group_key(match, self._group_by)
            if group_key is None:
                return NO_GROUP
        tenant = None
        if self._has_tenants:
            tenant = match[self._tenant_group] if self._tenant_group is not None else rows.tenant
            # An empty text names nobody either: the form of a redrive would take it for all tenants.
            if not tenant:
                return NO_TENANT
        period = self._age.period(facts, rows.detached_at)
        if isinstance(period, str):
            return _KEEPS[period]
        due_at = self._age.due_at(period.ends_at)
        begins_at = max(period.starts_at, in_utc(facts.last_modified_at))
        in_future = due_at is None or (now is not None and begins_at > now)
        return IN_FUTURE if in_future else Candidate(facts, period.ends_at, due_at, group_key, tenant)

    def group_of(self, facts: ObjectFacts) -> str | None:
        """Give the group of an object that is selected by its key, whatever else is decided about it."""
        match = self._selection.match(facts.ref.key)
        return None if match is None or self._group_by is None else _group_key(match, self._group_by)

    def verdict(self, facts: ObjectFacts, *, now: datetime, rows: RowFacts = NO_ROWS) -> Verdict:
        """Decide one object by itself, at ``now`` (aware): expire with ``due``, or keep with the reason.

        Keep rules are not asked: they need the whole group. What is from the future is kept. ``facts`` must be those of
        a listing or a look: the ledger tells no storage class.
        """
        candidate = self.candidate(facts, now=now, rows=rows)
        if isinstance(candidate, Verdict):
            return candidate
        # Before, not at: as in an interval, whose end is not part of it.
        return DUE if candidate.due_at is not None and candidate.due_at < now else NOT_DUE


def is_recordable(key: str) -> bool:
    """Tell whether Postgres can hold the key: NUL and lone surrogates have no place in its text."""
    if key.isascii():
        return "\0" not in key
    return "\0" not in key and not any("\ud800" <= char <= "\udfff" for char in key)


def _group_key(match: re.Match[str], group_by: tuple[str, ...]) -> str | None:
    values = [match[name] for name in group_by]
    return None if None in values else _encode(values)


def newness(candidate: Candidate) -> tuple[bool, datetime, datetime, bytes]:
    """Give by what a candidate is newer than another one of its group."""
    at = candidate.reference_at
    return at is None, at or _OLDEST, candidate.facts.last_modified_at, candidate.facts.ref.key.encode()
