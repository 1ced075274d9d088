"""The types of the fields of a policy file, and the base of its models."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)

from s3_retention.core import policy_rules as rules
from s3_retention.core.key_date import finest_level
from s3_retention.core.storage_classes import check_class
from s3_retention.core.tags import ANY


def _check_time(value: object) -> object:
    # Pydantic would read 1767225600 and a plain date too: both hide which instant is meant.
    if isinstance(value, datetime) or (isinstance(value, str) and not value.strip("+-.").isdigit()):
        return value
    raise ValueError("must be a time with its zone; write for example 2026-01-01T00:00:00Z")


def _to_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(timezone.utc)
    except OverflowError as error:
        raise ValueError("is outside the calendar; write for example 2026-01-01T00:00:00Z") from error


def _check_format(value: str) -> str:
    finest_level(rules.check_text(value))
    return value


# YAML reads `1.10` as a number and `on` as a boolean. Nothing is converted: the author says what is meant.
Text = Annotated[str, Field(strict=True), AfterValidator(rules.check_text)]
Whole = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Share = Annotated[float, Field(strict=True, gt=0, le=1)]
Glob = Annotated[str, Field(strict=True), AfterValidator(rules.check_glob)]
Format = Annotated[str, Field(strict=True), AfterValidator(_check_format)]
StorageClasses = Annotated[
    tuple[Annotated[str, Field(strict=True), AfterValidator(check_class)], ...],
    # The order means nothing, and two orders are one rule.
    AfterValidator(lambda names: tuple(sorted(set(names)))),
]


def _check_tag(text: str) -> str:
    # No tag of S3 can hold one (https://docs.aws.amazon.com/AmazonS3/latest/API/API_Tag.html), and none is a pattern.
    if ANY in rules.check_text(text):
        raise ValueError(f"is no pattern: write the whole of it; for any value of a tag, {ANY!r} alone")
    return text


def refuse_null(value: object) -> object:
    """Refuse a field with nothing behind it: what it was to keep would go, without a word."""
    if value is None:
        raise ValueError("is empty; fill it in or remove it")
    return value


_TagName = Annotated[str, Field(strict=True, min_length=1, max_length=128), AfterValidator(_check_tag)]
_TagValue = Annotated[
    str,
    Field(strict=True, max_length=256),
    AfterValidator(lambda text: text if text == ANY else _check_tag(text)),
]
_TagValues = Annotated[
    tuple[_TagValue, ...],
    # One value may stand for itself; of several, the order means nothing.
    BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,)),
    Field(min_length=1),
    AfterValidator(lambda values: tuple(sorted(set(values)))),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "maxLength": 256},
                {"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 256}},
            ]
        }
    ),
]
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html: these lengths.
Tags = Annotated[dict[_TagName, _TagValues], Field(min_length=1, max_length=50)]
UtcTime = Annotated[AwareDatetime, BeforeValidator(_check_time), AfterValidator(_to_utc)]


class StrictModel(BaseModel):
    """Base of all models: frozen, and unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
