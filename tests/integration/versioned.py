"""A bucket with versions, of one of two servers, and what to do with it from outside."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from s3_retention.s3.gateway import S3Gateway
from tests.factories import BY_LAST_MODIFIED, NO_WAIT

if TYPE_CHECKING:
    from sandbox.moto import MotoServer
    from tests.factories import World

KEY = "exports/2020-01/a.json"
OTHER = "exports/2020-01/b.json"
IN_40_DAYS = "clock_timestamp() + interval '40 days'"


def versioned_world(world: World, moto: MotoServer | None, *, is_locked: bool = False) -> World:
    """A bucket with versions; what is written now has been there for 40 days when a run looks at it.

    With a bucket for locks, it is another one than that of `world`.
    """
    if moto is not None:
        client = moto.client()
        world = replace(world, admin=client, gateway=S3Gateway(client, NO_WAIT))
    if moto is not None or is_locked:
        world = replace(world, bucket=f"{world.bucket}-versions")
        world.admin.create_bucket(Bucket=world.bucket, ObjectLockEnabledForBucket=is_locked)
    set_versioning(world, "Enabled")
    world.set_clock(IN_40_DAYS)
    return world.under(versions="noncurrent", age=BY_LAST_MODIFIED)


def set_versioning(world: World, status: Any) -> None:
    world.admin.put_bucket_versioning(Bucket=world.bucket, VersioningConfiguration={"Status": status})


def put(world: World, key: str, *bodies: str) -> list[str]:
    """Write versions of a key, the oldest first; their ids."""
    answers = [world.admin.put_object(Bucket=world.bucket, Key=key, Body=body.encode()) for body in bodies]
    return [answer.get("VersionId", "null") for answer in answers]


def mark(world: World, key: str) -> str:
    """Put a delete marker on top; its id."""
    return str(world.admin.delete_object(Bucket=world.bucket, Key=key)["VersionId"])


def remove(world: World, key: str, version_id: str) -> None:
    world.admin.delete_object(Bucket=world.bucket, Key=key, VersionId=version_id)


def there(world: World) -> set[tuple[str, str]]:
    """Key and version id of every version and every marker, by an independent listing."""
    found = world.admin.list_object_versions(Bucket=world.bucket)
    assert not found["IsTruncated"]
    entries = [*found.get("Versions", []), *found.get("DeleteMarkers", [])]
    return {(entry["Key"], entry["VersionId"]) for entry in entries}


def ledger(world: World) -> dict[str, str]:
    """The outcome of each version, with the reason where it was kept."""
    rows = world.rows("SELECT version_id, outcome, reason FROM s3_retention.ledger_entries")
    found = {row["version_id"]: ":".join(filter(None, (row["outcome"], row["reason"]))) for row in rows}
    assert len(found) == len(rows), "a version has two entries"
    return found


def kept_by_reason(world: World) -> dict[str, int]:
    reasons: dict[str, int] = world.value(
        "SELECT num_kept_by_reason FROM s3_retention.intervals ORDER BY interval_id DESC LIMIT 1"
    )
    return reasons


def deliver(world: World, run: str = "run-1") -> None:
    """Deliver what was planned, and close the run."""
    rows = world.rows("SELECT batch_id, map_index FROM s3_retention.batches WHERE run_id = %(run)s", run=run)
    for row in rows:
        world.delete(SimpleNamespace(**row), run)
    world.sweep(run)
    assert world.report(run).is_balanced


def versions_waiting(world: World) -> dict[str, str]:
    """The class of each version in quarantine."""
    rows = world.rows(
        "SELECT version_id, failure_class FROM s3_retention.quarantine WHERE resolved_at IS NULL"
    )
    return {row["version_id"]: row["failure_class"] for row in rows}
