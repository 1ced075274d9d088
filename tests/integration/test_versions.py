"""A real bucket with versions: what a delete of current versions leaves behind, in the bucket and in the ledger."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

from s3_retention.core.outcome import Final
from tests.factories import ODD_KEYS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from s3_retention.core.objects import ObjectFacts
    from tests.factories import World


@pytest.fixture
def versioned(world: World, admin: S3Client) -> World:
    admin.put_bucket_versioning(Bucket=world.bucket, VersioningConfiguration={"Status": "Enabled"})
    return world


def listed(world: World) -> list[ObjectFacts]:
    return [one for page in world.gateway.list_pages(world.bucket, "exports/") for one in page]


def num_markers_and_versions(world: World, admin: S3Client) -> tuple[int, int]:
    found = admin.list_object_versions(Bucket=world.bucket, Prefix="exports/")
    return len(found.get("DeleteMarkers", [])), len(found.get("Versions", []))


def test_a_delete_in_a_versioned_bucket_adds_one_marker_and_keeps_every_version(
    versioned: World, admin: S3Client
) -> None:
    versioned.put("exports/a", body=b"older")
    versioned.put("exports/a", body=b"newer")
    (outcome,) = versioned.gateway.delete_chunk(listed(versioned))
    assert outcome.kind is Final.DELETED
    assert listed(versioned) == []
    assert num_markers_and_versions(versioned, admin) == (1, 2)


def test_the_same_delete_again_in_a_versioned_bucket_stacks_no_second_marker(
    versioned: World, admin: S3Client
) -> None:
    versioned.put("exports/a")
    planned = listed(versioned)
    versioned.gateway.delete_chunk(planned)
    (again,) = versioned.gateway.delete_chunk(planned)
    assert again.kind is Final.ALREADY_ABSENT
    assert num_markers_and_versions(versioned, admin) == (1, 1)


def test_a_delete_that_names_a_version_removes_it_alone_and_adds_no_marker(
    versioned: World, admin: S3Client
) -> None:
    versioned.put("exports/a", body=b"older")
    (older,) = admin.list_object_versions(Bucket=versioned.bucket, Prefix="exports/")["Versions"]
    (facts,) = listed(versioned)
    versioned.put("exports/a", body=b"newer")
    named = replace(facts, ref=replace(facts.ref, version_id=older["VersionId"]))
    (outcome,) = versioned.gateway.delete_chunk([named])
    assert outcome.kind is Final.DELETED
    assert num_markers_and_versions(versioned, admin) == (0, 1)
    assert [one.size for one in listed(versioned)] == [len(b"newer")]
    assert [one.etag for one in listed(versioned)] != [facts.etag]


def test_a_delete_marker_that_is_named_is_removed_and_said_to_be_deleted(
    versioned: World, admin: S3Client
) -> None:
    versioned.put("exports/a")
    (facts,) = listed(versioned)
    versioned.gateway.delete_chunk([facts])
    (marker,) = admin.list_object_versions(Bucket=versioned.bucket, Prefix="exports/")["DeleteMarkers"]
    named = replace(facts, ref=replace(facts.ref, version_id=marker["VersionId"]))
    (outcome,) = versioned.gateway.delete_chunk([named])
    assert (outcome.kind, outcome.code) == (Final.DELETED, None)
    assert num_markers_and_versions(versioned, admin) == (0, 1)


# What the ledger says of it -------------------------------------------------------------------------------
MARKERS = "SELECT key, marker_version_id FROM s3_retention.ledger_entries"


def markers(world: World, admin: S3Client) -> list[tuple[str, str | None]]:
    """The delete markers by key, by an independent listing; no key may have two.

    ``weed`` has one and the same character for all that XML cannot carry.
    """
    found = admin.list_object_versions(Bucket=world.bucket, Prefix="exports/").get("DeleteMarkers", [])
    assert len({one["VersionId"] for one in found}) == len(found)
    return sorted((as_shown(one["Key"]), one["VersionId"]) for one in found)


def as_shown(key: str) -> str:
    return re.sub("[\x01\x1f\ufffe]", "\ufffd", key)


def recorded(world: World) -> list[tuple[str, str | None]]:
    return sorted((as_shown(row["key"]), row["marker_version_id"]) for row in world.rows(MARKERS))


def test_the_ledger_names_the_marker_of_each_delete_whatever_bytes_the_key_has(
    versioned: World, admin: S3Client
) -> None:
    versioned.put("exports/2020-01/a.json", *ODD_KEYS)
    versioned.clean()
    assert len(recorded(versioned)) == len(ODD_KEYS) + 1
    assert recorded(versioned) == markers(versioned, admin)


def test_the_marker_that_the_ledger_names_brings_the_object_back_when_it_is_removed(
    versioned: World, admin: S3Client
) -> None:
    versioned.put("exports/2020-01/a.json")
    versioned.clean()
    ((_, marker),) = recorded(versioned)
    admin.delete_object(Bucket=versioned.bucket, Key="exports/2020-01/a.json", VersionId=str(marker))
    assert versioned.keys() == {"exports/2020-01/a.json"}


def test_a_second_delivery_and_a_second_run_stack_no_marker_and_record_none(
    versioned: World, admin: S3Client
) -> None:
    versioned.put("exports/2020-01/a.json")
    (batch,) = versioned.planned().batches
    versioned.delete(batch)
    before = recorded(versioned)
    assert versioned.delete(batch, try_number=2).was_closed
    versioned.sweep()
    versioned.report()
    versioned.clean("run-2")
    assert recorded(versioned) == before == markers(versioned, admin)


def test_a_delete_in_a_bucket_without_versions_names_no_marker(world: World) -> None:
    world.put("exports/2020-01/a.json", "exports/2020-01/\x01.json")
    world.clean()
    assert {marker for _, marker in recorded(world)} == {None}
    assert set(world.outcomes().values()) == {"deleted"}


def test_an_entry_that_names_a_version_or_deleted_nothing_cannot_name_a_marker(versioned: World) -> None:
    versioned.put("exports/2020-01/a.json")
    versioned.clean()
    copied = (
        "INSERT INTO s3_retention.ledger_entries SELECT (jsonb_populate_record(entry, %(changes)s::jsonb)).* "
        "FROM s3_retention.ledger_entries AS entry"
    )
    for changes in ({"version_id": "v1"}, {"outcome": "changed"}):
        other = json.dumps(changes | {"generation": 1})
        with pytest.raises(psycopg.errors.CheckViolation, match="ledger_entries_check"):
            versioned.root.execute(copied, {"changes": other})
