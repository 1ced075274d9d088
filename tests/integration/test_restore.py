"""Deleted objects are brought back from real buckets with versions, and from nowhere else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.core.outcome import FailureClass, Outcome
from s3_retention.core.restore import RestoreForm
from s3_retention.errors import RestoreRefusedError
from s3_retention.s3.gateway import S3Gateway
from s3_retention.steps import restore
from s3_retention.store import restores
from s3_retention.store.connection import connect
from tests.factories import ODD_KEYS
from tests.integration.versioned import KEY, OTHER, mark, put, remove, set_versioning, there

if TYPE_CHECKING:
    from s3_retention.steps.restore import RestoreResult
    from sandbox.ledger import Ledger
    from tests.factories import World

DAG = "s3_retention_restore"


@pytest.fixture
def bucket(world: World) -> World:
    """A bucket with versions under a policy for current ones."""
    set_versioning(world, "Enabled")
    return world


def bring_back(world: World, run: str = "restore-1", *, dry_run: bool = False, **form: Any) -> RestoreResult:
    selected = {"bucket": world.bucket} | form
    return restore.run(
        world.conn,
        world.gateway,
        RestoreForm(is_dry_run=dry_run, note="was too much", **selected),
        Holder(DAG, run, "restore"),
        acted_by="ann",
    )


def rows(world: World) -> list[tuple[str, str]]:
    found = world.rows("SELECT key, outcome FROM s3_retention.restores ORDER BY restore_id")
    return [(row["key"], row["outcome"]) for row in found]


def body(world: World, key: str) -> bytes:
    return bytes(world.admin.get_object(Bucket=world.bucket, Key=key)["Body"].read())


def test_objects_come_back_byte_for_byte_and_are_recorded_with_who_and_why(bucket: World) -> None:
    put(bucket, KEY, "older", "newer \x00 bytes")
    put(bucket, OTHER, "other")
    before = there(bucket)
    bucket.clean()
    assert bucket.keys() == set()
    assert bring_back(bucket).num_by_kind == {"restored": 2}
    assert there(bucket) == before
    assert (body(bucket, KEY), body(bucket, OTHER)) == (b"newer \x00 bytes", b"other")
    (row,) = bucket.rows("SELECT DISTINCT acted_by, note, run_id FROM s3_retention.restores")
    assert row == {"acted_by": "ann", "note": "was too much", "run_id": "restore-1"}


def test_odd_keys_come_back(bucket: World) -> None:
    bucket.put(*ODD_KEYS)
    before = bucket.keys()
    bucket.clean()
    gone = before - bucket.keys()
    assert bring_back(bucket).num_by_kind == {"restored": len(gone)}
    assert bucket.keys() == before


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(bucket: World) -> None:
    put(bucket, KEY, "a")
    bucket.clean()
    before = there(bucket)
    result = bring_back(bucket, dry_run=True)
    assert result.num_by_kind == {"restored": 1}
    assert [one.deleted.facts.ref.key for one in result.sample] == [KEY]
    assert there(bucket) == before
    assert rows(bucket) == []


def test_what_was_written_since_is_left(bucket: World) -> None:
    put(bucket, KEY, "a")
    bucket.clean()
    put(bucket, KEY, "b")
    before = there(bucket)
    assert bring_back(bucket).num_by_kind == {"newer_version": 1}
    assert there(bucket) == before


def test_a_newer_marker_keeps_the_older_one_in_place(bucket: World) -> None:
    put(bucket, KEY, "a")
    bucket.clean()
    put(bucket, KEY, "b")
    mark(bucket, KEY)
    before = there(bucket)
    assert bring_back(bucket).num_by_kind == {"newer_version": 1}
    assert there(bucket) == before


def test_a_marker_that_somebody_removed_is_told_as_restored_already(bucket: World) -> None:
    put(bucket, KEY, "a")
    bucket.clean()
    remove(bucket, KEY, bucket.value("SELECT marker_version_id FROM s3_retention.ledger_entries"))
    assert bring_back(bucket).num_by_kind == {"already_restored": 1}


def test_a_key_without_any_history_has_lost_its_marker(bucket: World) -> None:
    put(bucket, KEY, "a")
    bucket.clean()
    for key, version_id in there(bucket):
        remove(bucket, key, version_id)
    assert bring_back(bucket).num_by_kind == {"marker_gone": 1}


def test_an_older_version_never_comes_back_in_place_of_a_purged_one(bucket: World) -> None:
    (_, newer) = put(bucket, KEY, "older", "newer!")
    bucket.clean()
    remove(bucket, KEY, newer)
    before = there(bucket)
    assert bring_back(bucket).num_by_kind == {"purged": 1}
    assert there(bucket) == before


def test_a_bucket_without_versions_has_nothing_to_bring_back(world: World) -> None:
    world.put(KEY)
    world.clean()
    assert bring_back(world).num_by_kind == {"bucket_unversioned": 1}
    assert world.keys() == set()


def test_a_version_that_was_deleted_by_its_id_is_purged(versioned: World) -> None:
    put(versioned, KEY, "a", "b")
    versioned.clean()
    assert bring_back(versioned).num_by_kind == {"purged": 1}


def test_a_second_run_of_the_same_selection_restores_nothing_twice(bucket: World) -> None:
    put(bucket, KEY, "a")
    bucket.clean()
    bring_back(bucket)
    assert bring_back(bucket, "restore-2").num_by_kind == {"already_restored": 1}
    assert rows(bucket) == [(KEY, "restored"), (KEY, "already_restored")]


def test_a_run_that_is_cleared_says_the_same_again(bucket: World) -> None:
    put(bucket, KEY, "a")
    bucket.clean()
    bring_back(bucket)
    assert bring_back(bucket).num_by_kind == {"restored": 1}
    assert rows(bucket) == [(KEY, "restored")]


def test_a_run_that_was_killed_after_the_removal_is_ended_by_the_next_try(
    bucket: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, KEY, "a")
    put(bucket, OTHER, "b")
    bucket.clean()
    monkeypatch.setattr(restores, "insert", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bring_back(bucket)
    assert rows(bucket) == []
    monkeypatch.undo()
    assert bring_back(bucket).num_by_kind == {"already_restored": 2}
    assert (body(bucket, KEY), body(bucket, OTHER)) == (b"a", b"b")


def test_of_two_at_once_each_object_is_restored_by_one(bucket: World, ledger: Ledger) -> None:
    for number in range(30):
        put(bucket, f"exports/2020-01/{number}.json", "a")
    bucket.clean()
    with closing(connect(ledger.writer_conninfo)) as own, ThreadPoolExecutor(2) as pool:
        list(pool.map(bring_back, [bucket, replace(bucket, conn=own)], ["restore-1", "restore-2"]))
    assert [outcome for _, outcome in rows(bucket)].count("restored") == 30
    assert len(bucket.keys()) == 30


def test_only_what_is_selected_comes_back_and_no_more_than_the_limit(bucket: World) -> None:
    put(bucket, KEY, "a")
    put(bucket, OTHER, "b")
    bucket.clean()
    ids = bucket.rows("SELECT key, operation_id FROM s3_retention.ledger_entries ORDER BY key")
    assert bring_back(bucket, "nobody", operation_ids=(b"x" * 32,)).num_by_kind == {}
    assert bring_back(bucket, "prefix", prefix="other/").num_by_kind == {}
    bring_back(bucket, "by-id", operation_ids=(ids[1]["operation_id"],))
    assert bucket.keys() == {OTHER}
    limited = bring_back(bucket, "limited", interval_key=bucket.interval_key(), max_objects=1)
    assert limited.is_limited
    assert bucket.keys() == {KEY, OTHER}


def test_an_interval_that_is_not_there_is_refused(bucket: World) -> None:
    with pytest.raises(RestoreRefusedError, match="there is no such interval"):
        bring_back(bucket, interval_key="cleanup:nothing:a:b")


def test_what_fails_is_counted_and_the_same_restore_triggered_again_ends_it(
    bucket: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, KEY, "a")
    bucket.clean()
    denied = Outcome(FailureClass.PERMISSION, code="AccessDenied")
    monkeypatch.setattr(S3Gateway, "delete_chunk", lambda _, targets: [denied] * len(targets))
    result = bring_back(bucket)
    assert (result.num_by_kind, result.num_failed) == ({"failed": 1}, 1)
    assert bucket.keys() == set()
    monkeypatch.undo()
    assert bring_back(bucket).num_by_kind == {"restored": 1}
    assert rows(bucket) == [(KEY, "failed"), (KEY, "restored")]
