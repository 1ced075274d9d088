"""A redrive takes exactly what its form says, shows it first, and knows when to stop; a waiver closes undeleted."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.core.redrive import Selection
from s3_retention.errors import RedriveRefusedError, ReplayRefusedError
from s3_retention.steps import redrive, replay
from tests.factories import NAME, REDRIVE, Timeless
from tests.fakes import asked, deleted, faulty_gateway

if TYPE_CHECKING:
    from tests.factories import World

CODES = {
    "AccessDenied": "permission",
    "OperationAborted": "conflict",
    "MethodNotAllowed": "unsupported",
    "InternalError": "transient",
    "SlowDown": "throttled",
}
A, B = "exports/2020-01/a.json", "exports/2020-01/b.json"
TABLES = ("batches", "quarantine", "quarantine_events", "ledger_entries", "intervals", "replays", "chunks")


@pytest.fixture
def failed(world: World) -> World:
    """200 objects in quarantine: 40 of each of five classes."""
    keys = [f"exports/2020-01/{number:03d}.json" for number in range(200)]
    world.put(*keys)
    codes = list(CODES)

    def delete_objects(**arguments: Any) -> Any:
        return deleted(errors=[(key, codes[int(key[16:19]) % 5]) for key in asked(arguments)])

    failing = world.through(faulty_gateway(world.gateway, delete_objects=delete_objects))
    for batch in failing.planned().batches:
        failing.delete(batch)
    failing.sweep()
    failing.report()
    assert len(world.waiting()) == 200
    return world


def written(world: World) -> dict[str, list[dict[str, Any]]]:
    """All that a redrive could change."""
    return {table: world.rows(f"SELECT * FROM s3_retention.{table} ORDER BY 1, 2, 3") for table in TABLES}  # noqa: S608


# Selecting ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", list(CODES))
def test_of_200_commands_of_five_classes_one_class_is_redriven_alone(failed: World, code: str) -> None:
    report = failed.redrive(failure_classes=(CODES[code],))
    assert report.num_by_outcome == {"deleted": 40}
    assert report.num_redriven_by_class == report.num_resolved_by_class == {CODES[code]: 40}
    assert CODES[code] not in failed.waiting().values()
    assert len(failed.waiting()) == 160


def test_each_field_selects_exactly_and_all_must_match(failed: World) -> None:
    def count(**what: Any) -> int:
        return redrive.look(failed.conn, Selection(**what), max_redrives={}).num_selected

    failed.root.execute(
        "UPDATE s3_retention.quarantine SET tenant = 't', last_failed_at = last_failed_at - interval '3 days' "
        "WHERE code = 'AccessDenied'"
    )
    assert count() == count(interval_key=failed.interval_key()) == 200
    assert count(code="AccessDenied") == count(tenant="t") == count(older_than=timedelta(days=2)) == 40
    assert count(code="AccessDenied", failure_classes=("conflict",)) == 0
    assert count(code="accessdenied") == count(tenant="T") == count(older_than=timedelta(days=4)) == 0
    # Further back than a timestamp can be.
    assert count(older_than=timedelta(days=9_999_999)) == 0
    assert count(max_commands=7) == 7
    assert count(policy="another") == 0


def test_an_interval_that_is_not_there_is_refused_and_not_taken_for_an_empty_one(failed: World) -> None:
    with pytest.raises(RedriveRefusedError, match="interval = 'cleanup:x:y:z': there is none of this key"):
        failed.select(interval_key="cleanup:x:y:z")


def test_one_corrected_permission_redriven_by_its_operation_touches_exactly_one_object(world: World) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [A, B])
    world.clean()
    world.s3.allow(world.bucket, [A])
    operation = world.value(
        "SELECT encode(operation_id, 'hex') FROM s3_retention.quarantine WHERE key = %(key)s", key=A
    )
    report = world.redrive(operation_ids=(operation,))
    assert report.num_by_outcome == {"deleted": 1}
    assert "resolved of permission: 1 of 1 (100%)" in str(report)
    assert world.keys() == {B}
    assert world.waiting() == {B: "permission"}


# Dry runs -------------------------------------------------------------------------------------------------
def test_a_dry_run_shows_what_it_selects_and_touches_nothing(failed: World) -> None:
    before = (written(failed), failed.keys())
    preview = redrive.look(failed.conn, Selection(failure_classes=("permission",)), max_redrives={NAME: 5})
    assert (written(failed), failed.keys()) == before
    assert preview.num_by_cause == {(NAME, "permission", "AccessDenied"): 40}
    said = str(preview)
    assert said.startswith("40 commands selected, the oldest failed at ")
    assert said.count("s3://") == 20
    assert "and 20 more" in said


def test_a_dry_run_shows_what_another_redrive_has_left(failed: World) -> None:
    failed.select(failure_classes=("permission",))
    assert redrive.look(failed.conn, Selection(), max_redrives={}).num_selected == 160


def test_a_dry_run_of_a_replay_decides_as_the_replay_does_and_stores_nothing(world: World) -> None:
    world.put(A)
    world.clean()
    world.put(B)
    before = written(world)
    source = Timeless(world.gateway, world.bucket, "exports/")
    shown = replay.look(world.conn, source, world.policy, world.interval_key())
    assert written(world) == before
    planned = world.replan()
    assert (shown.num_discovered, shown.num_kept_by_reason) == (1, planned.num_kept_by_reason)
    assert planned.num_discovered == 1


def test_a_dry_run_of_a_replay_over_a_limit_is_refused_as_the_replay_is(world: World) -> None:
    world.put(A)
    world.clean()
    world.put(B)
    limited = world.under(limits={"max_objects": 0, "allow_expire_everything": True})
    source = Timeless(world.gateway, world.bucket, "exports/")
    with pytest.raises(ReplayRefusedError, match=r"1 objects, over limits\.max_objects = 0"):
        replay.look(world.conn, source, limited.policy, world.interval_key())
    with pytest.raises(ReplayRefusedError, match=r"1 objects, over limits\.max_objects = 0"):
        limited.replan()


# Once -----------------------------------------------------------------------------------------------------
def test_the_same_redrive_of_the_same_run_is_one(failed: World) -> None:
    first = failed.select(code="AccessDenied")
    again = failed.select(code="SlowDown")
    assert [one.batch_id for one in first.batches] == [one.batch_id for one in again.batches]
    assert again.preview is None


def test_two_redrives_with_other_fields_never_take_the_same_row(failed: World) -> None:
    assert failed.select("redrive-1", code="AccessDenied").num_selected == 40
    assert failed.select("redrive-2").num_selected == 160
    assert failed.select("redrive-3").num_selected == 0


# How often ------------------------------------------------------------------------------------------------
def redrive_with(world: World, run: str, num: int, **what: Any) -> redrive.RedriveResult:
    """A whole redrive under a limit."""
    selected = redrive.run(
        world.conn,
        Selection(**what),
        Holder(REDRIVE, run, "select"),
        acted_by="ann",
        max_batches=10,
        max_redrives={NAME: num},
        note="the rights are back",
    )
    for batch in selected.batches:
        world.delete(batch, run, dag=REDRIVE)
    world.sweep(run, dag=REDRIVE)
    world.report_redrive(run)
    return selected


def test_a_command_that_was_redriven_too_often_is_only_taken_by_its_operation_id(world: World) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    world.clean()
    assert [redrive_with(world, f"redrive-{number}", 2).num_selected for number in range(3)] == [1, 1, 0]
    preview = redrive.look(world.conn, Selection(), max_redrives={NAME: 2})
    assert "1 more were redriven limits.max_redrives times" in str(preview)
    operation = world.value("SELECT encode(operation_id, 'hex') FROM s3_retention.quarantine")
    world.s3.allow(world.bucket, [A])
    assert redrive_with(world, "redrive-3", 2, operation_ids=(operation,)).num_selected == 1
    assert world.waiting() == {}


def test_who_acted_and_why_is_kept_with_each_command(world: World) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    world.clean()
    redrive_with(world, "redrive-1", 5)
    rows = world.rows(
        "SELECT event, acted_by, detail, note FROM s3_retention.quarantine_events ORDER BY event_id"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("quarantined", None, "permission", None),
        ("redriven", "ann", "permission", "the rights are back"),
        ("returned", None, "permission", None),
    ]


def test_the_report_of_a_redrive_says_how_much_of_each_class_has_ended(world: World) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [A, B])
    world.clean()
    world.s3.allow(world.bucket, [A])
    assert "resolved of permission: 1 of 2 (50%)" in str(world.redrive())


# Waiving --------------------------------------------------------------------------------------------------
def waive(world: World, run: str = "redrive-1", **what: Any) -> int:
    who = Holder(REDRIVE, run, "select")
    return redrive.waive(world.conn, Selection(**what), who, acted_by="ann", note="stays for good")


def test_waived_commands_end_as_kept_with_note_and_name_and_the_interval_balances(failed: World) -> None:
    assert waive(failed, code="AccessDenied") == 40
    assert failed.balance() == (200, 0, 0, 0, 40, 160, 0)
    assert list(failed.outcomes().values()) == ["kept:waived"] * 40
    assert len(failed.keys()) == 200
    num_events = failed.value(
        "SELECT count(*) FROM s3_retention.quarantine_events WHERE event = 'waived' AND acted_by = 'ann' "
        "AND note = 'stays for good' AND detail = 'permission'"
    )
    assert num_events == 40
    assert failed.select().num_selected == 160


def test_a_waiver_of_the_same_run_waives_nothing_more(failed: World) -> None:
    assert waive(failed, code="AccessDenied") == 40
    assert waive(failed) == 40
    assert len(failed.waiting()) == 160


def test_what_a_redrive_holds_is_not_waived(failed: World) -> None:
    selected = failed.select("redrive-1", code="AccessDenied")
    assert waive(failed, "redrive-2") == 160
    for batch in selected.batches:
        failed.delete(batch, "redrive-1", dag=REDRIVE)
    failed.sweep("redrive-1", dag=REDRIVE)
    assert failed.balance() == (200, 40, 0, 0, 160, 0, 0)


def test_a_waived_object_is_planned_again_by_the_next_interval_like_any_kept_one(world: World) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    world.clean()
    waive(world)
    world.s3.allow(world.bucket, [A])
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}
