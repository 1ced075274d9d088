"""What a store holds: a reference to an object, and the facts that a listing tells of it."""

from __future__ import annotations

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
    """One object as a store described it: size in bytes, ``last_modified_at`` aware, ETag with its quotes."""

    ref: ObjectRef
    etag: str | None
    size: int
    last_modified_at: datetime
