"""Whether a deleted object can be brought back, by all that its key has gone through."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from s3_retention.core.objects import ListedVersion, ObjectFacts, ObjectRef
from s3_retention.core.restore import DeletedObject, RestoreKind, decide_restore, decide_unmarked

AT = datetime(2026, 5, 1, tzinfo=timezone.utc)
OBJECT = ObjectFacts(ObjectRef("b", "k"), '"e"', 3, AT)
DELETED = DeletedObject(1, 0, b"c" * 32, b"o" * 32, OBJECT, "m1")


def version(version_id: str, *, etag: str = '"e"', days: int = 0, is_latest: bool = False) -> ListedVersion:
    facts = ObjectFacts(ObjectRef("b", "k", version_id), etag, 3, AT + timedelta(days=days))
    return ListedVersion(facts, is_latest)


def marker(version_id: str, *, days: int = 1, is_latest: bool = True) -> ListedVersion:
    facts = ObjectFacts(ObjectRef("b", "k", version_id), None, 0, AT + timedelta(days=days))
    return ListedVersion(facts, is_latest, is_marker=True)


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        ([marker("m1"), version("v1")], RestoreKind.RESTORED),
        ([marker("m1"), version("v1"), version("v0", etag='"old"', days=-1)], RestoreKind.RESTORED),
        ([marker("m2", days=2), marker("m1", is_latest=False), version("v1")], RestoreKind.NEWER_VERSION),
        (
            [version("v2", days=2, is_latest=True), marker("m1", is_latest=False), version("v1")],
            RestoreKind.NEWER_VERSION,
        ),
        ([version("v1", is_latest=True)], RestoreKind.ALREADY_RESTORED),
        # As a store shows it that is about to remove the marker, for another run or for a try that was killed.
        ([marker("m1", is_latest=False), version("v1", is_latest=True)], RestoreKind.ALREADY_RESTORED),
        ([version("v2", etag='"new"', days=2, is_latest=True)], RestoreKind.NEWER_VERSION),
        ([marker("m2")], RestoreKind.MARKER_GONE),
        ([], RestoreKind.MARKER_GONE),
        # What lies beneath is not what was deleted: bringing it back would be a lie.
        ([marker("m1"), version("v0", etag='"old"', days=-1)], RestoreKind.PURGED),
        ([marker("m1")], RestoreKind.PURGED),
        # What lies beneath is a marker of somebody else, or a newer version: without ours the object is as hidden.
        ([marker("m1", days=2), marker("m0", is_latest=False), version("v1")], RestoreKind.NEWER_VERSION),
        (
            [marker("m1", days=2), version("v2", etag='"new"', days=1), version("v1")],
            RestoreKind.NEWER_VERSION,
        ),
        ([marker("m1"), version("v1"), marker("m0", days=-1, is_latest=False)], RestoreKind.RESTORED),
        ([marker("m1"), marker("m0", days=0, is_latest=False), version("v1")], RestoreKind.RESTORED),
    ],
)
def test_a_marker_goes_only_where_it_is_the_latest_and_hides_the_very_object(
    history: list[ListedVersion], kind: RestoreKind
) -> None:
    assert decide_restore(DELETED, history) is kind


def test_a_marker_whose_id_names_no_incarnation_is_left() -> None:
    assert decide_unmarked(replace(DELETED, marker_version_id="null")) is RestoreKind.NULL_MARKER


def test_what_was_deleted_by_its_version_is_gone() -> None:
    named = replace(DELETED, facts=replace(OBJECT, ref=ObjectRef("b", "k", "v1")), marker_version_id=None)
    assert decide_unmarked(named) is RestoreKind.PURGED


@pytest.mark.parametrize("marker_version_id", ["m1", None])
def test_all_else_needs_a_look(marker_version_id: str | None) -> None:
    assert decide_unmarked(replace(DELETED, marker_version_id=marker_version_id)) is None
