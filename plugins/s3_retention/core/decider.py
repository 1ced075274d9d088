"""Decides one object by a policy: keep or expire, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from s3_retention.core.age import AgeRule, in_utc
from s3_retention.core.selection import Selection
from s3_retention.core.storage_classes import STANDARD
from s3_retention.core.tags import TagRule
from s3_retention.core.verdict import (
    BY_REASON,
    DUE,
    IN_FUTURE,
    NO_GROUP,
    NO_ROWS,
    NO_TENANT,
    NOT_DUE,
    NOT_RECORDABLE,
    NOT_SELECTED,
    OTHER_CLASS,
    OTHER_TAGS,
    TAGS_NOT_READ,
    Candidate,
    RowFacts,
    Verdict,
    is_recordable,
)

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping
    from datetime import datetime

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.policy import RetentionPolicy

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Decider:
    """A policy made ready to decide millions of objects: compiled once, the models are not touched again."""

    __slots__ = (
        "_age",
        "_asks_all",
        "_bucket",
        "_classes",
        "_dates_by_tag",
        "_group_by",
        "_has_tenants",
        "_selection",
        "_tags",
        "_tenant_group",
    )

    def __init__(self, policy: RetentionPolicy) -> None:
        """Compile the policy's patterns."""
        self._bucket = policy.source.bucket
        self._selection = Selection(policy.select, prefix=policy.source.prefix)
        self._classes = policy.select.storage_class
        self._age = AgeRule(policy.age, timezone=policy.timezone)
        self._group_by = policy.keep.group_by if policy.keep is not None else policy.age.whole_groups or None
        self._tenant_group = policy.tenant.group if policy.tenant is not None else None
        self._has_tenants = policy.tenant is not None
        self._tags = TagRule(policy.select) if policy.asks_tags else None
        # Elsewhere what is not due is held against nothing, and need not be asked for its tags.
        self._asks_all = (
            policy.age.tag is not None
            or self._group_by is not None
            or policy.limits.max_tenant_share is not None
        )
        self._dates_by_tag = policy.age.tag is not None

    def candidate(  # noqa: C901, PLR0911 - one for each reason
        self,
        facts: ObjectFacts,
        *,
        now: datetime | None = None,
        rows: RowFacts = NO_ROWS,
        tags: Mapping[str, str] | None = None,
    ) -> Candidate | Verdict:
        """Return a candidate, due or not, or the verdict "keep" when it is not selected or cannot be decided.

        Where the policy asks for tags and ``tags`` is None, they are not known: ``TAGS_NOT_READ`` says that all else
        is as the policy has it, so that they are worth a request. What is not due at ``now`` by another date, and
        ranked with no others, is a candidate without it.

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
            return BY_REASON[reason]
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
        if self._tags is not None:
            kept = self._by_tags(facts, tags, now)
            if kept is not None:
                return kept
        period = self._age.period(facts, rows.detached_at, tags)
        if isinstance(period, str):
            return BY_REASON[period]
        due_at = self._age.due_at(period.ends_at)
        begins_at = max(period.starts_at, in_utc(facts.last_modified_at))
        in_future = due_at is None or (now is not None and begins_at > now)
        return IN_FUTURE if in_future else Candidate(facts, period.ends_at, due_at, group_key, tenant)

    def _by_tags(
        self, facts: ObjectFacts, tags: Mapping[str, str] | None, now: datetime | None
    ) -> Verdict | None:
        assert self._tags is not None  # noqa: S101 - the caller has asked
        if tags is not None:
            return None if self._tags.selects(tags) else OTHER_TAGS
        if self._asks_all or now is None:
            return TAGS_NOT_READ
        period = self._age.period(facts)
        due_at = None if isinstance(period, str) else self._age.due_at(period.ends_at)
        return None if due_at is None or due_at >= now else TAGS_NOT_READ

    def group_of(self, facts: ObjectFacts) -> str | None:
        """Give the group of an object that is selected by its key, whatever else is decided about it."""
        match = self._selection.match(facts.ref.key)
        return None if match is None or self._group_by is None else _group_key(match, self._group_by)

    def by_tags(self, facts: ObjectFacts, tags: Mapping[str, str], *, now: datetime) -> Verdict:
        """Decide by its tags alone an object that a plan has found to be due by all else."""
        if self._tags is not None and not self._tags.selects(tags):
            return OTHER_TAGS
        if not self._dates_by_tag:
            return DUE
        period = self._age.period(facts, tags=tags)
        if isinstance(period, str):
            return BY_REASON[period]
        return _due_or_not(self._age.due_at(period.ends_at), now)

    def verdict(
        self,
        facts: ObjectFacts,
        *,
        now: datetime,
        rows: RowFacts = NO_ROWS,
        tags: Mapping[str, str] | None = None,
    ) -> Verdict:
        """Decide one object by itself, at ``now`` (aware): expire with ``due``, or keep with the reason.

        Keep rules are not asked: they need the whole group. What is from the future is kept. ``facts`` must be those of
        a listing or a look: the ledger tells no storage class.
        """
        candidate = self.candidate(facts, now=now, rows=rows, tags=tags)
        return candidate if isinstance(candidate, Verdict) else _due_or_not(candidate.due_at, now)


def _due_or_not(due_at: datetime | None, now: datetime) -> Verdict:
    # Before, not at: as in an interval, whose end is not part of it.
    return DUE if due_at is not None and due_at < now else NOT_DUE


def _group_key(match: re.Match[str], group_by: tuple[str, ...]) -> str | None:
    values = [match[name] for name in group_by]
    return None if None in values else _encode(values)
