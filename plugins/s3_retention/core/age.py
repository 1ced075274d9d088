"""When an object becomes deletable: its reference time plus the retention, added as absolute time in UTC."""

from __future__ import annotations

from datetime import timezone
from typing import TYPE_CHECKING

from s3_retention.core.key_date import KeyDate, Period

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.policy import Age

UTC = timezone.utc
DETACH_TIME_UNKNOWN = "detach_time_unknown"
NO_DATE_IN_TAG = "no_date_in_tag"
_WHOLE = "(?s)(?P<date>.*)"
"""A date that is the whole text, as in a tag."""


class AgeRule:
    """The compiled ``age`` of a policy."""

    __slots__ = ("_date", "_is_detached", "_retain", "_tag")

    def __init__(self, age: Age, *, timezone: str) -> None:
        """Compile the rule; ``timezone`` is the IANA zone in which a date in a key is a day or a month."""
        self._retain = age.retain
        self._is_detached = age.from_ == "detached_at"
        self._date: KeyDate | None = None
        self._tag = age.tag
        if age.format is not None:
            self._date = KeyDate(age.regex or _WHOLE, age.format, timezone)

    def period(
        self,
        facts: ObjectFacts,
        detached_at: datetime | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Period | str:
        """Return the period from whose end the age counts, or a reason to keep the object.

        ``last_modified`` gives an instant, and so does ``detached_at``, which the caller knows. Reasons:
        ``no_date_in_key``, ``date_not_parsable``, ``date_in_future``, ``detach_time_unknown``; ``no_date_in_tag``,
        also where the tags are not known.
        """
        if self._is_detached:
            return DETACH_TIME_UNKNOWN if detached_at is None else Period(detached_at, detached_at)
        if self._date is not None:
            text = facts.ref.key if self._tag is None else (tags or {}).get(self._tag)
            return NO_DATE_IN_TAG if text is None else self._date.read(text)
        modified_at = in_utc(facts.last_modified_at)
        return Period(modified_at, modified_at)

    def due_at(self, reference_at: datetime) -> datetime | None:
        """Return ``reference_at`` plus the retention, in UTC; None when that is after the year 9999."""
        try:
            return reference_at + self._retain
        except OverflowError:
            return None


def in_utc(at: datetime) -> datetime:
    """Convert an aware time. Raises ValueError for a naive one: it would mean the machine's own zone."""
    if at.tzinfo is UTC:
        return at
    if at.utcoffset() is None:
        raise ValueError("a time without a zone cannot be compared")
    return at.astimezone(UTC)
