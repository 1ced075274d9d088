"""Storage classes that bill an object for longer than it lives."""

from __future__ import annotations

from dataclasses import dataclass

_KIB = 1024


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
