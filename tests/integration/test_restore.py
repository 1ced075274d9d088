"""Deleted objects are brought back from real buckets with versions, and from nowhere else."""

from __future__ import annotations

import json
import signal
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
from tests.faults.pipeline import restore_bucket
from tests.faults.story import Zygote
from tests.integration.versioned import KEY, OTHER, mark, put, remove, set_versioning, there

if TYPE_CHECKING:
    from s3_retention.steps.restore import RestoreResult
    from sandbox.ledger import Ledger
    from tests.factories import World
    from tests.faults.story import Task

DAG = "s3_retention_restore"


@pytest.fixture
def marking(world: World) -> World:
    """A bucket with versions under a policy for current ones."""
    set_versioning(world, "Enabled")
    return world


def bring_back(
    world: World, run: str = "restore-1", *, dry_run: bool = False, try_number: int = 1, **form: Any
) -> RestoreResult:
    selected = {"bucket": world.bucket} | form
    return restore.run(
        world.conn,
        world.gateway,
        RestoreForm(is_dry_run=dry_run, note="was too much", **selected),
        Holder(DAG, run, "restore", try_number=try_number),
        acted_by="ann",
    )


def rows(world: World) -> list[tuple[str, str]]:
    found = world.rows("SELECT key, outcome FROM s3_retention.restores ORDER BY restore_id")
    return [(row["key"], row["outcome"]) for row in found]


def body(world: World, key: str) -> bytes:
    return bytes(world.admin.get_object(Bucket=world.bucket, Key=key)["Body"].read())


def record_again(world: World, of_key: str, **changes: str) -> None:
    """Give the ledger another entry like that of a key, but for some changes."""
    world.root.execute(
        "INSERT INTO s3_retention.ledger_entries SELECT entry.* FROM s3_retention.ledger_entries AS old, "
        "jsonb_populate_record(old, %s) AS entry WHERE old.key = %s",
        [json.dumps(changes | {"generation": 1}), of_key],
    )


def test_objects_come_back_byte_for_byte_and_are_recorded_with_who_and_why(marking: World) -> None:
    put(marking, KEY, "older", "newer \x00 bytes")
    put(marking, OTHER, "other")
    before = there(marking)
    marking.clean()
    assert marking.keys() == set()
    assert bring_back(marking).num_by_kind == {"restored": 2}
    assert there(marking) == before
    assert (body(marking, KEY), body(marking, OTHER)) == (b"newer \x00 bytes", b"other")
    (row,) = marking.rows("SELECT DISTINCT acted_by, note, run_id FROM s3_retention.restores")
    assert row == {"acted_by": "ann", "note": "was too much", "run_id": "restore-1"}


def test_odd_keys_come_back_but_for_those_that_the_store_cannot_show(marking: World) -> None:
    marking.put(*ODD_KEYS)
    marking.clean()
    assert marking.keys() == set()
    # A listing of versions is XML: whether a marker is the latest of such a key, nobody can say.
    hidden = {key for key in ODD_KEYS if any(one in key for one in "\x01\x1f\ufffe")}
    counts = bring_back(marking).num_by_kind
    assert counts == {"restored": len(ODD_KEYS) - len(hidden), "failed": len(hidden)}
    assert marking.keys() == set(ODD_KEYS) - hidden
    assert {key for key, outcome in rows(marking) if outcome == "failed"} == hidden


def test_keys_that_the_store_cannot_show_keep_no_other_one_from_coming_back(
    marking: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In the order of keys they come first, and one after the other.
    hidden = {f"exports/2020-01/{one}.json" for one in "\x01\x02\x03\x04"}
    others = {f"exports/2020-01/{one}.json" for one in ("\rx", "a", "b", "c")}
    marking.put(*hidden, *others)
    marking.clean()
    with monkeypatch.context() as patched:
        patched.setattr(restore, "PAGE_SIZE", 1)
        patched.setattr(restore, "MAX_FAILED", 1)
        assert bring_back(marking, "paged").num_by_kind == {"restored": len(others), "failed": len(hidden)}
    assert marking.keys() == others
    marking.clean("run-2")
    assert bring_back(marking).num_by_kind["restored"] == len(others)
    assert marking.keys() == others


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    before = there(marking)
    result = bring_back(marking, dry_run=True)
    assert result.num_by_kind == {"restored": 1}
    assert [one.deleted.facts.ref.key for one in result.sample] == [KEY]
    assert there(marking) == before
    assert rows(marking) == []


def test_what_was_written_since_is_left(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    put(marking, KEY, "b")
    before = there(marking)
    assert bring_back(marking).num_by_kind == {"newer_version": 1}
    assert there(marking) == before


def test_a_newer_marker_keeps_the_older_one_in_place(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    put(marking, KEY, "b")
    mark(marking, KEY)
    before = there(marking)
    assert bring_back(marking).num_by_kind == {"newer_version": 1}
    assert there(marking) == before


def test_a_marker_that_somebody_removed_is_told_as_restored_already(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    remove(marking, KEY, marking.value("SELECT marker_version_id FROM s3_retention.ledger_entries"))
    assert bring_back(marking).num_by_kind == {"already_restored": 1}


def test_a_key_without_any_history_has_lost_its_marker(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    for key, version_id in there(marking):
        remove(marking, key, version_id)
    assert bring_back(marking).num_by_kind == {"marker_gone": 1}


def test_an_older_version_never_comes_back_in_place_of_a_purged_one(marking: World) -> None:
    (_, newer) = put(marking, KEY, "older", "newer!")
    marking.clean()
    remove(marking, KEY, newer)
    before = there(marking)
    assert bring_back(marking).num_by_kind == {"purged": 1}
    assert there(marking) == before


def test_a_bucket_without_versions_has_nothing_to_bring_back(world: World) -> None:
    world.put(KEY)
    world.clean()
    assert bring_back(world).num_by_kind == {"bucket_unversioned": 1}
    assert world.keys() == set()


def test_a_marker_of_a_bucket_whose_versioning_was_suspended_is_left_with_all_beneath_it(
    marking: World,
) -> None:
    put(marking, KEY, "older")
    set_versioning(marking, "Suspended")
    put(marking, KEY, "current")
    marking.clean()
    assert marking.value("SELECT marker_version_id FROM s3_retention.ledger_entries") == "null"
    before = there(marking)
    assert len(before) == 2
    assert bring_back(marking).num_by_kind == {"null_marker": 1}
    assert there(marking) == before
    assert rows(marking) == [(KEY, "null_marker")]


def test_a_version_that_was_deleted_by_its_id_is_purged(versioned: World) -> None:
    put(versioned, KEY, "a", "b")
    versioned.clean()
    assert bring_back(versioned).num_by_kind == {"purged": 1}


def test_a_second_run_of_the_same_selection_restores_nothing_twice(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    bring_back(marking)
    assert bring_back(marking, "restore-2").num_by_kind == {"already_restored": 1}
    assert rows(marking) == [(KEY, "restored"), (KEY, "already_restored")]


def test_a_run_that_is_cleared_says_the_same_again(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    bring_back(marking)
    assert bring_back(marking).num_by_kind == {"restored": 1}
    assert rows(marking) == [(KEY, "restored")]


def test_a_run_that_was_killed_after_the_removal_is_ended_by_the_next_try(
    marking: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(marking, KEY, "a")
    put(marking, OTHER, "b")
    marking.clean()
    monkeypatch.setattr(restores, "insert", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bring_back(marking)
    assert rows(marking) == []
    monkeypatch.undo()
    assert bring_back(marking).num_by_kind == {"already_restored": 2}
    assert (body(marking, KEY), body(marking, OTHER)) == (b"a", b"b")


def test_what_a_killed_try_may_have_brought_back_counts_towards_the_limit_of_its_run(
    marking: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(marking, KEY, "a")
    put(marking, OTHER, "b")
    marking.clean()
    monkeypatch.setattr(restores, "insert", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bring_back(marking, max_objects=1)
    monkeypatch.undo()
    for try_number in (2, 3):
        result = bring_back(marking, max_objects=1, try_number=try_number)
        assert (result.num_by_kind, result.is_limited) == ({"already_restored": 1}, True)
        assert len(marking.keys()) == 1
    # Another run is told by its first try what others have done, and goes on behind it.
    assert bring_back(marking, "restore-2", max_objects=1).num_by_kind == {
        "already_restored": 1,
        "restored": 1,
    }


def test_a_marker_that_was_recorded_twice_brings_one_object_back(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    record_again(marking, KEY)
    before = bring_back(marking, "dry", dry_run=True).num_by_kind
    assert bring_back(marking).num_by_kind == before == {"restored": 1, "already_restored": 1}


def test_an_identity_that_may_not_remove_is_not_asked_for_all_that_is_selected(
    marking: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    marking.put(*(f"exports/2020-01/{number}.json" for number in range(9)))
    marking.clean()
    monkeypatch.setattr(restore, "PAGE_SIZE", 2)
    monkeypatch.setattr(restore, "MAX_FAILED", 4)
    denied = Outcome(FailureClass.PERMISSION, code="AccessDenied")
    with monkeypatch.context() as patched:
        patched.setattr(S3Gateway, "delete_chunk", lambda _, targets: [denied] * len(targets))
        result = bring_back(marking)
    assert (result.num_by_kind, result.is_stopped) == ({"failed": 4}, True)
    result = bring_back(marking)
    assert (result.num_by_kind, result.is_stopped) == ({"restored": 9}, False)


def test_a_restore_killed_between_the_first_removals_and_their_rows_is_ended_by_the_next_try(
    marking: World, ledger: Ledger
) -> None:
    bodies = {f"exports/2020-01/{number}.json": f"body {number} \x00".encode() for number in range(130)}
    for key, written in bodies.items():
        marking.put(key, body=written)
    marking.clean()
    assert len(bodies) > restore.PART_SIZE
    assert marking.keys() == set()
    worker = marking.s3.worker
    task: Task = {
        "pipeline": "restore",
        "run": "restore-1",
        "more": {},
        "seam": "restore.restore_objects: store: a delete",
        "visit": 1,
        "act": "kill",
        "into": "",
        "bucket": marking.bucket,
        "changes": {},
        "writer": ledger.writer_conninfo,
        "root": ledger.superuser_conninfo,
        "store": [marking.s3.endpoint, worker.access_key, worker.secret_key],
    }
    with closing(Zygote()) as zygote:
        assert zygote.say(task)["ended"] == -signal.SIGKILL
    assert marking.keys()
    assert rows(marking) == []
    counts = restore_bucket(marking, "restore-1", 2).num_by_kind
    assert {key: body(marking, key) for key in sorted(marking.keys())} == bodies
    assert sorted(key for key, _ in rows(marking)) == sorted(bodies)
    # What the killed try has removed is told as found: its row is lost, and no other try can swear to it.
    assert sum(counts.values()) == len(bodies)
    assert counts["already_restored"] >= 1
    assert counts.keys() <= {"restored", "already_restored"}


def test_a_try_that_comes_late_with_its_rows_adds_none_to_those_of_the_next_try(
    marking: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(marking, KEY, "a")
    marking.clean()
    late: list[tuple[Any, Any]] = []
    monkeypatch.setattr(restores, "insert", lambda *given, **named: late.append((given, named)))
    bring_back(marking)
    monkeypatch.undo()
    bring_back(marking)
    ((given, named),) = late
    restores.insert(*given, **named)
    assert rows(marking) == [(KEY, "already_restored")]
    assert bring_back(marking).num_by_kind == {"already_restored": 1}


def test_of_two_at_once_each_object_is_restored_by_one(marking: World, ledger: Ledger) -> None:
    for number in range(30):
        put(marking, f"exports/2020-01/{number}.json", "a")
    marking.clean()
    with closing(connect(ledger.writer_conninfo)) as own, ThreadPoolExecutor(2) as pool:
        list(pool.map(bring_back, [marking, replace(marking, conn=own)], ["restore-1", "restore-2"]))
    assert [outcome for _, outcome in rows(marking)].count("restored") == 30
    assert len(marking.keys()) == 30


def test_only_what_is_selected_comes_back_and_no_more_than_the_limit(marking: World) -> None:
    put(marking, KEY, "a")
    put(marking, OTHER, "b")
    marking.clean()
    ids = marking.rows("SELECT key, operation_id FROM s3_retention.ledger_entries ORDER BY key")
    assert bring_back(marking, "nobody", operation_ids=(b"x" * 32,)).num_by_kind == {}
    assert bring_back(marking, "prefix", prefix="other/").num_by_kind == {}
    bring_back(marking, "by-id", operation_ids=(ids[1]["operation_id"],))
    assert marking.keys() == {OTHER}
    limited = bring_back(marking, "limited", interval_key=marking.interval_key(), max_objects=1)
    assert limited.is_limited
    assert marking.keys() == {KEY, OTHER}


def test_a_prefix_is_no_pattern(marking: World) -> None:
    keys = [f"exports/2020-01/a{one}b.json" for one in ("%", "_", "x", "%25")]
    marking.put(*keys)
    marking.clean()
    assert bring_back(marking, "under", prefix="exports/2020-01/a_").num_by_kind == {"restored": 1}
    assert marking.keys() == {"exports/2020-01/a_b.json"}
    assert bring_back(marking, "share", prefix="exports/2020-01/a%").num_by_kind == {"restored": 2}
    assert marking.keys() == set(keys) - {"exports/2020-01/axb.json"}
    # The store of the tests keeps no such key.
    record_again(marking, "exports/2020-01/axb.json", key="exports/2020-01/a\\b.json")
    assert bring_back(marking, "escape", prefix="exports/2020-01/a\\").num_by_kind == {"marker_gone": 1}


def test_of_two_lives_of_a_key_the_later_one_comes_back(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    put(marking, KEY, "b")
    marking.clean("run-2")
    assert bring_back(marking).num_by_kind == {"newer_version": 1, "restored": 1}
    assert body(marking, KEY) == b"b"


def test_what_was_restored_and_deleted_once_more_is_restored_once_more(marking: World) -> None:
    put(marking, KEY, "a")
    marking.clean()
    bring_back(marking)
    marking.clean("run-2")
    assert marking.keys() == set()
    assert bring_back(marking, "restore-2").num_by_kind == {"marker_gone": 1, "restored": 1}
    assert body(marking, KEY) == b"a"


def test_of_several_buckets_each_key_comes_back_in_its_own(marking: World) -> None:
    other = replace(marking, bucket=f"{marking.bucket}-other")
    other.admin.create_bucket(Bucket=other.bucket)
    set_versioning(other, "Enabled")
    put(marking, KEY, "a")
    marking.clean()
    put(other, KEY, "b")
    mark_of_other = mark(other, KEY)
    version = next(one for key, one in there(other) if one != mark_of_other)
    listed = other.admin.head_object(Bucket=other.bucket, Key=KEY, VersionId=version)
    record_again(
        marking,
        KEY,
        bucket=other.bucket,
        etag=listed["ETag"],
        last_modified_at=listed["LastModified"].isoformat(),
        marker_version_id=mark_of_other,
    )
    interval_key = marking.interval_key()
    assert bring_back(marking, bucket=None, interval_key=interval_key).num_by_kind == {"restored": 2}
    assert (body(marking, KEY), body(other, KEY)) == (b"a", b"b")


def test_an_interval_that_is_not_there_is_refused(marking: World) -> None:
    with pytest.raises(RestoreRefusedError, match="there is no such interval"):
        bring_back(marking, interval_key="cleanup:nothing:a:b")


def test_what_fails_is_counted_and_the_same_restore_triggered_again_ends_it(
    marking: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(marking, KEY, "a")
    marking.clean()
    denied = Outcome(FailureClass.PERMISSION, code="AccessDenied")
    monkeypatch.setattr(S3Gateway, "delete_chunk", lambda _, targets: [denied] * len(targets))
    result = bring_back(marking)
    assert (result.num_by_kind, result.num_failed) == ({"failed": 1}, 1)
    assert marking.keys() == set()
    monkeypatch.undo()
    assert bring_back(marking).num_by_kind == {"restored": 1}
    assert rows(marking) == [(KEY, "failed"), (KEY, "restored")]
