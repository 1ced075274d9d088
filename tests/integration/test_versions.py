"""The gateway on a real bucket with versions: what a delete of current versions leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from s3_retention.core.outcome import Final

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
