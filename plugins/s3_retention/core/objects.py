"""What a store holds: a reference to an object, and the facts that a listing tells of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.values import value

if TYPE_CHECKING:
    from datetime import datetime


@value
class ObjectRef:
    """The target of one delete. ``key`` is exact: never normalised, trimmed or unquoted by guess."""

    bucket: str
    key: str
    version_id: str | None = None

    def __str__(self) -> str:
        """Print the S3 URI; a version follows after ``?versionId=``."""
        uri = f"s3://{self.bucket}/{self.key}"
        return uri if self.version_id is None else f"{uri}?versionId={self.version_id}"


@value
class ObjectFacts:
    """One object as a store described it: size in bytes, ``last_modified_at`` aware, ETag with its quotes.

    ``storage_class`` is told by a listing or a look, and not by the ledger; None for ``STANDARD``. It tells no object
    from another.
    """

    ref: ObjectRef
    etag: str | None
    size: int
    last_modified_at: datetime
    storage_class: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ListedVersion:
    """One entry in the history of a key: a version, or a delete marker, which has no ETag and no size."""

    facts: ObjectFacts
    is_latest: bool
    is_marker: bool = False


@dataclass(frozen=True, slots=True)
class Versioning:
    """What a store says of the versions of a bucket: ``Enabled``, ``Suspended`` or ``Never``."""

    status: str
    needs_mfa: bool = False


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart upload that has been begun and not ended; ``initiated_at`` is aware."""

    key: str
    upload_id: str
    initiated_at: datetime


NULL_VERSION = "null"
"""The id of what was written without versions. It names no incarnation: another upload takes its place."""


def is_same_incarnation(planned: ObjectFacts, found: ObjectFacts) -> bool:
    """Say whether a look found what the plan saw; times are compared in whole seconds, as HEAD has them.

    A version is known by its id: on some stores a lock changes its time. The null version is not: see ``NULL_VERSION``.
    """
    if planned.ref.version_id not in (None, NULL_VERSION) and planned.ref == found.ref:
        return True
    return (
        planned.etag == found.etag
        and planned.size == found.size
        and planned.last_modified_at.replace(microsecond=0) == found.last_modified_at.replace(microsecond=0)
    )
