"""Storage classes: what a store tells of them, and which bill an object for longer than it lives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_KIB = 1024
STANDARD = "STANDARD"


def told_class(answer: Mapping[str, Any]) -> str | None:
    """Give the class that a store tells of an object, None for ``STANDARD``: many stores tell all but that.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
    """
    name = answer.get("StorageClass")
    return name if isinstance(name, str) and name not in ("", STANDARD) else None


def check_class(name: str) -> str:
    """Check the name of a storage class, unchanged: stores other than AWS have classes of their own."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise ValueError("is not the name of a storage class; write for example STANDARD or GLACIER_IR")
    return name


@dataclass(frozen=True, slots=True)
class StorageClass:
    """What a class bills at least: days from when the object came into it, and bytes whatever its size."""

    name: str
    min_days: int
    min_bytes: int


BILLED_LONGER = (
    StorageClass("STANDARD_IA", 30, 128 * _KIB),
    StorageClass("ONEZONE_IA", 30, 128 * _KIB),
    StorageClass("GLACIER_IR", 90, 128 * _KIB),
    StorageClass("GLACIER", 90, 0),
    StorageClass("DEEP_ARCHIVE", 180, 0),
)
"""The classes of Amazon S3 with a minimum storage duration
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-class-intro.html); every other has none."""
