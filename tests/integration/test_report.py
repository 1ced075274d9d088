"""The end of a run: what it says, what it refuses to say, and what it lets go on."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from s3_retention.errors import BatchStoppedError, NotPlannedError, UnbalancedError
from tests.factories import REDRIVE, Pages, World, facts
from tests.fakes import deleted, faulty_gateway, one_after_another, refusal

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")
MARKS = "SELECT position = completed_through AS is_through FROM s3_retention.watermarks"


def test_a_run_reports_its_outcomes_with_reasons_and_bytes(world: World) -> None:
    world.put(A, B, C, body=b"12345")
    world.s3.deny(world.bucket, [B])
    (batch,) = world.planned().batches
    world.admin.delete_object(Bucket=world.bucket, Key=C)
    world.delete(batch)
    world.sweep()
    report = world.report()
    counts = report.counts()
    seconds = counts.pop("seconds")
    assert isinstance(seconds, dict)
    assert set(seconds) == {"claim_to_plan", "deal_to_drain", "claim_to_report"}
    assert counts == {
        "num_discovered": 3,
        "num_by_outcome": {"already_absent": 1, "deleted": 1, "quarantined": 1},
        "num_by_detail": {"quarantined:permission": 1},
        "num_failed_attempts_by_class": {"permission": 1},
        "num_deleted_bytes": 5,
        "num_remaining": 0,
        "num_uploads_aborted": 0,
        "num_redriven_by_class": {},
        "num_resolved_by_class": {},
        "tenants": [],
        "num_rows_by_outcome": {},
        "is_balanced": True,
        "plan_hash": world.value("SELECT s3_retention.plan_hash(1, 0)").hex(),
        "rules_hash": world.policy.rules_hash,
    }
    (row,) = world.rows("SELECT counts, is_balanced, policy, interval_id FROM s3_retention.run_reports")
    assert row == {
        "counts": report.counts(),
        "is_balanced": True,
        "policy": "weekly_digests",
        "interval_id": 1,
    }


def test_commands_that_nothing_accounts_for_are_named(world: World) -> None:
    world.put(A, B)
    world.under(batch={"size": 1}).planned()
    with pytest.raises(UnbalancedError) as caught:
        world.report()
    lines = str(caught.value).split("\n")
    assert lines[0] == (
        "the run does not balance: 2 commands were dealt to it, 0 are accounted for and 2 are pending; the next "
        "run resumes them. The first of them:"
    )
    assert lines[1].startswith(f"  s3://{world.bucket}/{A} (operation ")
    assert lines[2].endswith(", batch 2, map index 1)")
    assert len(lines) == 3
    # It is on record all the same, and the interval stays open.
    assert world.rows("SELECT is_balanced FROM s3_retention.run_reports") == [{"is_balanced": False}]
    assert world.value("SELECT state FROM s3_retention.intervals") == "planned"


def test_of_many_missing_commands_20_are_named(world: World) -> None:
    world.claim()
    objects = [facts(f"exports/2020-01/{number:02d}.json", bucket=world.bucket) for number in range(30)]
    many: Any = Pages([objects])
    world.plan(source=many)
    with pytest.raises(UnbalancedError) as caught:
        world.report()
    assert str(caught.value).count("\n  s3://") == 20


def test_rows_that_a_redrive_holds_are_named_when_nothing_accounts_for_them(world: World) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    world.clean()
    world.select()
    with pytest.raises(UnbalancedError, match=f"s3://{world.bucket}/{A} \\(operation"):
        world.report_redrive()


def test_a_ledger_from_which_an_entry_went_missing_does_not_balance(world: World) -> None:
    world.put(A, B)
    world.clean()
    # As no one can: past the trigger.
    world.root.execute("SET session_replication_role = replica")
    world.root.execute("DELETE FROM s3_retention.ledger_entries WHERE key = %s", [A])
    with pytest.raises(UnbalancedError, match=f"1 are pending.*\n  s3://{world.bucket}/{A} "):
        world.report()


def test_a_run_with_a_stopped_batch_is_red_and_its_interval_stays_open(world: World) -> None:
    world.put(A)
    broken = faulty_gateway(
        world.gateway, delete_objects=one_after_another(refusal("RequestTimeTooSkewed", 403, "clock"))
    )
    with pytest.raises(BatchStoppedError) as caught:
        world.through(broken).clean()
    assert str(caught.value) == (
        "1 commands stay pending for the next run: batch 1 was stopped by clock (RequestTimeTooSkewed clock)"
    )
    assert world.value("SELECT state FROM s3_retention.intervals") == "planned"
    assert world.rows("SELECT counts -> 'num_by_outcome' AS n FROM s3_retention.run_reports") == [
        {"n": {"stopped": 1}}
    ]


def test_a_run_that_ends_early_gives_its_interval_back_at_once(world: World) -> None:
    world.claim("run-1")
    with pytest.raises(NotPlannedError):
        world.report("run-1")
    assert world.value("SELECT claimed_until FROM s3_retention.intervals") is None
    assert world.claim("run-2").status.value == "claimed"
    # The run before it gives nothing back that is not its own.
    with pytest.raises(NotPlannedError):
        world.report("run-1")
    assert world.value("SELECT claimed_until FROM s3_retention.intervals") is not None


def test_what_is_completed_moves_only_when_every_command_is_accounted_for(world: World) -> None:
    world.put(A, B)
    small = world.under(
        batch={"size": 1}, limits={"max_commands_per_run": 1, "allow_expire_everything": True}
    )
    small.clean("run-1")
    assert world.value(MARKS) is False
    small.clean("run-2")
    assert world.value(MARKS) is True
    assert world.value("SELECT state FROM s3_retention.intervals") == "completed"


def test_quarantined_objects_do_not_hold_an_interval_open(world: World) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    world.clean()
    assert world.value(MARKS) is True


def test_a_run_that_is_cleared_reports_the_same_again(world: World) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [B])
    first = world.clean()
    assert world.clean() == first
    assert world.value("SELECT count(*) FROM s3_retention.run_reports") == 2
    assert world.value("SELECT count(*) FROM s3_retention.intervals") == 1


def test_a_run_that_is_cleared_after_a_redrive_still_balances(world: World) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [B])
    first = world.clean()
    world.s3.allow(world.bucket, [B])
    second = world.redrive()
    assert world.report_redrive() == second
    again = world.clean()
    assert (again.num_discovered, again.is_balanced) == (first.num_discovered, True)
    # Its command has ended since: the report says where each stands now, and the first one is still on record.
    assert again.num_by_outcome == {"deleted": 2}
    assert world.value(
        "SELECT counts -> 'num_by_outcome' ->> 'quarantined' FROM s3_retention.run_reports LIMIT 1"
    )


def test_a_redrive_that_is_cleared_after_another_one_reports_the_same_again(world: World) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    world.clean()
    first = world.redrive("redrive-1")
    assert first.num_by_outcome == {"quarantined": 1}
    world.s3.allow(world.bucket, [A])
    world.redrive("redrive-2")
    assert world.redrive("redrive-1") == first


def test_a_redrive_of_nothing_is_a_success(world: World) -> None:
    report = world.redrive()
    assert (report.num_discovered, report.is_balanced) == (0, True)
    assert world.rows("SELECT dag_id, policy FROM s3_retention.run_reports") == [
        {"dag_id": REDRIVE, "policy": None}
    ]


def test_two_runs_do_not_count_each_others_batches(world: World) -> None:
    world.put(A)
    world.clean("run-1")
    world.put(B)
    report = world.clean("run-2")
    assert report.num_by_outcome == {"deleted": 1}
    assert world.report("run-1", interval_id=1).num_by_outcome == {"deleted": 1}


def test_what_a_run_resumes_is_drained_by_the_run_that_ended_it(world: World) -> None:
    world = world.under(batch={"parallel": 1})
    world.put(A, B, C)
    (batch,) = world.planned().batches
    world.cut_chunks(2)
    answers = one_after_another(deleted(A, B), refusal("ExpiredToken"))
    world.through(faulty_gateway(world.gateway, delete_objects=answers)).delete(batch)
    with pytest.raises(BatchStoppedError):
        world.report()
    world.expire_leases()
    report = world.clean("run-2")
    assert (report.num_discovered, report.num_drained) == (3, 1)
    # What had ended before the batch was stopped and resumed is not told as stopped.
    assert report.num_by_detail == {}
    drained = world.rows("SELECT num_drained FROM s3_retention.run_reports ORDER BY report_id")
    assert [row["num_drained"] for row in drained] == [2, 1]


def test_a_report_tells_how_long_the_run_waited_planned_drained_and_lasted(world: World) -> None:
    world.put(A)
    world.set_clock("timestamptz '2036-07-01 00:10:00+00'")
    planned = world.planned()
    world.set_clock("timestamptz '2036-07-01 00:11:00+00'")
    for batch in planned.batches:
        world.delete(batch)
    world.set_clock("timestamptz '2036-07-01 00:11:30+00'")
    report = world.report(triggered_at=datetime(2036, 7, 1, tzinfo=timezone.utc))
    assert report.seconds == {
        "trigger_to_claim": 600.0,
        "claim_to_plan": 0.0,
        "deal_to_drain": 60.0,
        "claim_to_report": 90.0,
    }
    assert "trigger to claim 600.0 s, claim to plan 0.0 s, deal to drain 60.0 s" in str(report)


def test_a_plan_that_an_earlier_run_has_stored_took_the_run_no_time(world: World) -> None:
    world.put(A, B)
    world = world.under(
        batch={"size": 1}, limits={"max_commands_per_run": 1, "allow_expire_everything": True}
    )
    world.clean()
    again = world.clean("run-2")
    assert set(again.seconds) == {"deal_to_drain", "claim_to_report"}
    assert again.plan_hash == world.value("SELECT s3_retention.plan_hash(1, 0)")


def test_a_replay_reports_the_hash_of_its_own_plan(world: World) -> None:
    world.put(A)
    first = world.clean()
    world.put(A, B)
    replayed = world.replan()
    for batch in replayed.batches:
        world.delete(batch, "replay-1", dag=REDRIVE)
    report = world.report_redrive("replay-1")
    assert report.plan_hash == world.value("SELECT s3_retention.plan_hash(1, 1)")
    assert report.plan_hash != first.plan_hash


def test_a_redrive_has_no_plan_of_its_own(world: World) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    world.clean()
    world.redrive()
    report = world.report_redrive()
    assert (report.plan_hash, report.rules_hash) == (None, None)
    assert set(report.seconds) == {"deal_to_drain", "claim_to_report"}
