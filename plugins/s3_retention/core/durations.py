"""Durations as an operator writes them: ``30d``, ``12h``, ``1d12h``; never a number without its unit."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_UNITS = ("weeks", "days", "hours", "minutes", "seconds")
# [0-9] and not \d: a digit of another script is a mistake here, not a number.
_SHORT = re.compile(
    r"(?P<sign>-?)(?:(?P<weeks>[0-9]+)w)?(?:(?P<days>[0-9]+)d)?"
    r"(?:(?P<hours>[0-9]+)h)?(?:(?P<minutes>[0-9]+)m)?(?:(?P<seconds>[0-9]+)s)?"
)
# ISO 8601 without years and months, which have no fixed length.
_ISO = re.compile(
    r"(?P<sign>-?)P(?:(?P<weeks>[0-9]+)W)?(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+)S)?)?"
)
_LENGTH = (
    "(P([0-9]+W)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?"
    "|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)"
)
_PATTERN = rf"^(?=.*[0-9])-?{_LENGTH}$"
UNSIGNED_PATTERN = rf"(?=.*[0-9])(?!.*T$){_LENGTH}"
"""For the schema of a form: what is read, but for a negative one."""
MAX_LENGTH = 40


def parse_duration(value: object) -> timedelta:
    """Read ``2w``, ``30d``, ``12h``, ``15m``, ``45s``, several in that order, or ISO 8601 (``P1DT12H``).

    A timedelta of whole seconds passes. Negative durations are read: refusing them is up to the field.
    Raises ValueError, with the fix, for everything else; a number without a unit is never guessed at.
    """
    if isinstance(value, timedelta):
        if value.microseconds:
            raise ValueError("must be whole seconds")
        return value
    if not isinstance(value, str):
        raise ValueError("is a duration without a unit; write a text such as 30d, 12h, 15m or 45s")  # noqa: TRY004 - pydantic turns only ValueError into a fault
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        raise ValueError("is a duration without a unit; write for example 30d, 12h, 15m or 45s")
    match = _SHORT.fullmatch(value) or _ISO.fullmatch(value) if len(value) <= MAX_LENGTH else None
    parts = {unit: int(match[unit]) for unit in _UNITS if match[unit]} if match else {}
    if match is None or not parts or value.endswith("T"):
        raise ValueError("is not a duration; write for example 30d, 12h, 15m, 45s, 2w or 1d12h")
    try:
        length = timedelta(**parts)
        return -length if match["sign"] else length
    except OverflowError as error:
        raise ValueError("is too long a duration; write a shorter one") from error


def _split(length: timedelta) -> list[tuple[int, str]]:
    total = abs(length.days * 86400 + length.seconds)
    minutes, seconds = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    counts = ((days, "day"), (hours, "hour"), (minutes, "minute"), (seconds, "second"))
    return [(count, unit) for count, unit in counts if count]


def format_duration(length: timedelta) -> str:
    """Write the one canonical text, ``1d12h``: equal durations give equal texts, whatever the file said."""
    text = "".join(f"{count}{unit[0]}" for count, unit in _split(length)) or "0s"
    return f"-{text}" if length < timedelta(0) else text


def round_duration(length: timedelta) -> str:
    """Write the two largest units of a duration for a person: ``3 h 12 min``, ``2 d 4 h``, ``45 s``."""
    short = {"day": "d", "hour": "h", "minute": "min", "second": "s"}
    parts = [(count, short[unit]) for count, unit in _split(length)]
    text = " ".join(f"{count} {unit}" for count, unit in parts[:2]) or "0 s"
    return f"-{text}" if length < timedelta(0) else text


def spell_duration(length: timedelta) -> str:
    """Write a duration in words for a message: ``1 day``, ``1 day 12 hours``."""
    words = " ".join(f"{count} {unit}{'s' * (count != 1)}" for count, unit in _split(length)) or "0 seconds"
    return f"-({words})" if length < timedelta(0) else words


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _PATTERN, "examples": ["30d", "12h", "1d12h"]}),
]
