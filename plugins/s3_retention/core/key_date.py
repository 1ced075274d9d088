"""A date in an object's key, read as a period: age counts from its end, in the policy's time zone."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

UTC = timezone.utc
# What each directive of strptime fixes, and after which of the others it means something. Left out:
# %y (1969 or 2069?), %I with %p, %z (the policy's time zone counts), names of weekdays and locale formats.
_LEVELS = {
    "Y": "year", "G": "ISO year", "m": "month", "b": "month", "B": "month", "V": "ISO week",
    "d": "day", "j": "day of the year", "u": "weekday", "H": "hour", "M": "minute", "S": "second",
}  # fmt: skip
_CHAINS = (
    ("year", "month", "day", "hour", "minute", "second"),
    ("year", "day of the year", "hour", "minute", "second"),
    ("ISO year", "ISO week", "weekday", "hour", "minute", "second"),
)
_LENGTHS = {
    "ISO week": timedelta(days=7),
    "day": timedelta(days=1),
    "day of the year": timedelta(days=1),
    "weekday": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_SAMPLE = datetime(2026, 11, 23, 14, 35, 46)  # noqa: DTZ001 - a reading of the wall clock, in no zone
_CACHE_SIZE = 4096


class Period(NamedTuple):
    """A span of time, in UTC: half open. An instant has both ends the same."""

    starts_at: datetime
    ends_at: datetime


def finest_level(date_format: str) -> str:
    """Return the finest level that a strptime format fixes: ``year``, ``month``, ``ISO week``, ``day``, ...

    Raises ValueError, with the fix, when the format has an unknown directive, lacks a year, leaves a level
    out between two others (a day without its month), or says one twice.
    """
    levels = []
    for directive in _DIRECTIVE.findall(date_format):
        if directive == "%":
            continue
        if directive not in _LEVELS:
            known = " ".join(f"%{known}" for known in _LEVELS)
            raise ValueError(f"has the directive {f'%{directive}'!r}, which is not read here; use {known}")
        levels.append(_LEVELS[directive])
    if not {"year", "ISO year"} & set(levels):
        raise ValueError("has no year; add %Y (or %G with %V), or the date could be of any year")
    for chain in _CHAINS:
        if sorted(levels) == sorted(chain[: len(levels)]) and levels != ["ISO year"]:
            _try(date_format, levels)
            return chain[len(levels) - 1]
    raise ValueError(
        "does not name one date; write each level once and none without the coarser one: "
        "%Y %m %d %H %M %S, or %Y %j, or %G %V (%u), each as far as it goes"
    )


def _try(date_format: str, levels: list[str]) -> None:
    text = _SAMPLE.strftime(date_format)
    if _parse(text, date_format, iso_week="ISO week" in levels and "weekday" not in levels) is None:
        raise ValueError("cannot be read back by strptime; use plain separators between the directives")


def _parse(text: str, date_format: str, *, iso_week: bool) -> datetime | None:
    try:
        # A week is read by its Monday: without a weekday strptime refuses %V.
        if iso_week:
            start = datetime.strptime(f"{text} 1", f"{date_format} %u")  # noqa: DTZ007 - the zone is applied later
        else:
            start = datetime.strptime(text, date_format)  # noqa: DTZ007 - as above
        written = start.strftime(date_format)
    except (ValueError, OverflowError):
        return None
    # strptime is lenient: 2026111 is taken for November 1st, a week 53 spills into the next year, digits of
    # other scripts count. A date that does not come out as it went in may not delete anything.
    padded = re.search(r"%[A-Za-z]%[A-Za-z]", date_format) is not None
    return start if _plain(written, padded=padded) == _plain(text, padded=padded) else None


def _plain(text: str, *, padded: bool) -> str:
    """Fold case, and, between separators, zeros in front of a number: ``7`` and ``07`` are the same month."""
    return text.casefold() if padded else re.sub(r"(?<![0-9])0+(?=[0-9])", "", text.casefold())


class KeyDate:
    """Reads the period that a key names. Compiled once; texts already seen are remembered."""

    __slots__ = ("_format", "_iso_week", "_level", "_search", "_zone", "period_of")

    def __init__(self, regex: str, date_format: str, zone: str) -> None:
        """Take a regex with the group ``date``, a format that ``finest_level`` accepts, and an IANA zone."""
        self._search = re.compile(regex).search
        self._format = date_format
        self._level = finest_level(date_format)
        self._iso_week = self._level == "ISO week"
        self._zone = ZoneInfo(zone)
        self.period_of = lru_cache(maxsize=_CACHE_SIZE)(self._read)

    def read(self, key: str) -> Period | str:
        """Return the period, or why there is none: ``no_date_in_key``, ``date_not_parsable``.

        The regex is searched, so its first match counts. ``date_in_future`` stands for a period that ends
        after the year 9999.
        """
        match = self._search(key)
        text = match["date"] if match else None
        return "no_date_in_key" if text is None else self.period_of(text)

    def _read(self, text: str) -> Period | str:
        start = _parse(text, self._format, iso_week=self._iso_week)
        if start is None:
            return "date_not_parsable"
        try:
            end = self._end(start)
        except (OverflowError, ValueError):
            return "date_in_future"
        try:
            return Period(min(self._instants(start)), max(self._instants(end)))
        except OverflowError:
            return "date_not_parsable"

    def _end(self, start: datetime) -> datetime:
        if self._level == "year":
            return start.replace(year=start.year + 1)
        if self._level == "month":
            first_of_next = date(start.year + start.month // 12, start.month % 12 + 1, 1)
            return datetime.combine(first_of_next, start.time())
        return start + _LENGTHS[self._level]

    def _instants(self, wall: datetime) -> tuple[datetime, datetime]:
        """Read the wall clock in both ways that a DST change leaves open; they are equal on all other days.

        The later end counts: in an hour that comes twice the object may be of the second, and in one that is
        skipped the later reading is the end of what came before.
        """
        return (
            wall.replace(tzinfo=self._zone, fold=0).astimezone(UTC),
            wall.replace(tzinfo=self._zone, fold=1).astimezone(UTC),
        )
