"""Candidates from a listing of one bucket under one prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from s3_retention.core.objects import ListedVersion, ObjectFacts, ObjectRef, Versioning
    from s3_retention.core.outcome import Outcome


class CandidateSource(Protocol):
    """What every source gives."""

    def pages(self) -> Iterator[list[ObjectFacts]]:
        """Give every object once or more, page by page; raise ``StoreError`` rather than leave one out."""

    def read_clock(self) -> datetime | None:
        """Read the clock that stamps the objects; None where the source tells none."""


@runtime_checkable
class VersionSource(CandidateSource, Protocol):
    """What a source gives besides where its objects have versions."""

    def histories(self) -> Iterator[list[list[ListedVersion]]]:
        """Give every version and delete marker, some whole histories of keys at a time; raise as ``pages`` does."""

    def ask_versioning(self) -> Versioning:
        """Ask whether the objects have versions; raise ``StoreError`` where the store does not say."""


@runtime_checkable
class BodyReader(Protocol):
    """What reads what is in an object: a source, or the store itself."""

    def read_body(self, ref: ObjectRef, *, max_bytes: int) -> bytes | Outcome:
        """Read a small object whole."""


@runtime_checkable
class TagReader(Protocol):
    """What reads the tags of an object: a source, or the store itself."""

    def read_tags(self, ref: ObjectRef) -> dict[str, str] | Outcome:
        """Read the tags of an object."""


class Lister(BodyReader, TagReader, Protocol):
    """What a listing needs of a store."""

    def list_pages(self, bucket: str, prefix: str) -> Iterator[list[ObjectFacts]]:
        """List everything under a prefix."""

    def list_histories(self, bucket: str, prefix: str) -> Iterator[list[list[ListedVersion]]]:
        """List all versions and delete markers under a prefix."""

    def read_clock(self, bucket: str) -> datetime | None:
        """Read the clock of the store."""

    def ask_versioning(self, bucket: str) -> Versioning:
        """Ask whether a bucket has versions."""


@dataclass(frozen=True, slots=True)
class S3Listing:
    """A whole listing of ``s3://bucket/prefix``."""

    lister: Lister
    bucket: str
    prefix: str

    def pages(self) -> Iterator[list[ObjectFacts]]:
        """List page by page; raise ``ListingError`` when the listing breaks off."""
        return self.lister.list_pages(self.bucket, self.prefix)

    def read_clock(self) -> datetime | None:
        """Read the clock of the store; None where it tells none."""
        return self.lister.read_clock(self.bucket)

    def histories(self) -> Iterator[list[list[ListedVersion]]]:
        """List all versions and delete markers; raise ``ListingError`` when the listing breaks off."""
        return self.lister.list_histories(self.bucket, self.prefix)

    def ask_versioning(self) -> Versioning:
        """Ask whether the bucket has versions; raise ``ListingError`` where the store does not say."""
        return self.lister.ask_versioning(self.bucket)

    def read_body(self, ref: ObjectRef, *, max_bytes: int) -> bytes | Outcome:
        """Read a small object whole."""
        return self.lister.read_body(ref, max_bytes=max_bytes)

    def read_tags(self, ref: ObjectRef) -> dict[str, str] | Outcome:
        """Read the tags of an object."""
        return self.lister.read_tags(ref)
