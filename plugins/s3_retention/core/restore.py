"""Decides whether a deleted object can be brought back: by the removal of the delete marker that was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from s3_retention.core.objects import NULL_VERSION, is_same_incarnation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.objects import ListedVersion, ObjectFacts
    from s3_retention.core.outcome import Outcome


class RestoreKind(str, Enum):
    """What became of one deleted object, or why it stays deleted."""

    RESTORED = "restored"
    ALREADY_RESTORED = "already_restored"
    NEWER_VERSION = "newer_version"
    MARKER_GONE = "marker_gone"
    PURGED = "purged"
    BUCKET_UNVERSIONED = "bucket_unversioned"
    NULL_MARKER = "null_marker"
    NO_MARKER_RECORDED = "no_marker_recorded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RestoreForm:
    """Which deleted objects to bring back: all that is given must match. ``max_objects`` are brought back."""

    operation_ids: tuple[bytes, ...] | None = None
    interval_key: str | None = None
    bucket: str | None = None
    prefix: str | None = None
    deleted_from: datetime | None = None
    deleted_before: datetime | None = None
    max_objects: int = 1000
    is_dry_run: bool = True
    note: str | None = None


@dataclass(frozen=True, slots=True)
class DeletedObject:
    """A ledger entry of an object that was deleted, and the marker that the delete has put on top of it."""

    interval_id: int
    generation: int
    command_id: bytes
    operation_id: bytes
    facts: ObjectFacts
    marker_version_id: str | None


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of one; ``failure`` is set for ``failed`` alone."""

    deleted: DeletedObject
    kind: RestoreKind
    failure: Outcome | None = None


def decide_unmarked(deleted: DeletedObject) -> RestoreKind | None:
    """Decide what needs no look at the key; None where the history, or the bucket, must say."""
    if deleted.facts.ref.version_id is not None:
        return RestoreKind.PURGED
    if deleted.marker_version_id == NULL_VERSION:
        # The id names no incarnation: an upload that takes the marker's place would be removed for it.
        return RestoreKind.NULL_MARKER
    return None


def decide_restore(deleted: DeletedObject, history: Sequence[ListedVersion]) -> RestoreKind:
    """Decide by the whole history of the key: ``restored`` where the marker is to be removed.

    It is removed only where it is the latest, and what lies right beneath is the very object that was deleted.
    """
    latest = [entry for entry in history if entry.is_latest]
    current = latest[0].facts if len(latest) == 1 and not latest[0].is_marker else None
    if current is not None and is_same_incarnation(deleted.facts, current):
        # A store may show the marker for a moment longer: a try that was killed has left its request there.
        return RestoreKind.ALREADY_RESTORED
    marker = [entry for entry in history if entry.facts.ref.version_id == deleted.marker_version_id]
    if not marker:
        return RestoreKind.MARKER_GONE if current is None else RestoreKind.NEWER_VERSION
    if latest != marker or not marker[0].is_marker:
        return RestoreKind.NEWER_VERSION
    # Of two versions of one second the one that is listed first is the newer; a marker of that second is the older:
    # what a policy deletes had been there for long.
    others = [entry for entry in history if entry not in marker]
    beneath = max(others, key=lambda entry: (entry.facts.last_modified_at, not entry.is_marker), default=None)
    its_own = [
        entry for entry in others if not entry.is_marker and is_same_incarnation(deleted.facts, entry.facts)
    ]
    if not its_own:
        return RestoreKind.PURGED
    # Something else that lies right beneath would hide the object as the marker does, or come back in its place.
    return RestoreKind.RESTORED if beneath in its_own else RestoreKind.NEWER_VERSION
