"""Replaying one interval: the same code and rules, nothing settled is repeated, what has appeared is picked up."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from s3_retention.core.command import operation_id
from s3_retention.core.holder import Holder
from s3_retention.errors import (
    BatchStoppedError,
    ClaimLostError,
    NotPlannedError,
    PlanRefusedError,
    ReplayRefusedError,
    UnbalancedError,
)
from s3_retention.steps import replay
from s3_retention.store.connection import connect
from tests.factories import KEEP_LATEST, REDRIVE, facts, source_of
from tests.fakes import faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from sandbox.ledger import Ledger
    from tests.factories import World

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")
LATER = "exports/2027-04/later.json"


@pytest.fixture
def june(world: World) -> World:
    """A first interval that ends on 1 June 2027, closed, with two deletes."""
    world.set_clock("'2027-06-01T12:00:00Z'::timestamptz")
    world.put(A, B)
    assert world.clean().num_by_outcome == {"deleted": 2}
    return world


def replays(world: World) -> list[tuple[Any, ...]]:
    rows = world.rows(
        "SELECT generation, state, policy_version, acted_by, num_discovered FROM s3_retention.replays ORDER BY 1, 2"
    )
    return [tuple(row.values()) for row in rows]


def test_a_replay_picks_up_what_has_appeared_since_in_its_slice_of_due_time(june: World) -> None:
    june.put(C)
    report = june.replay()
    assert (report.num_discovered, report.num_by_outcome, report.is_balanced) == (1, {"deleted": 1}, True)
    assert report.interval_key == june.interval_key()
    assert june.keys() == set()
    assert june.outcomes() == dict.fromkeys((A, B, C), "deleted")
    assert june.balance() == (3, 3, 0, 0, 0, 0, 0)
    assert replays(june) == [(1, "completed", "v1", "ann", 1)]


def test_a_replay_is_bounded_on_both_sides(june: World) -> None:
    first = june.interval_key()
    june.set_clock("'2027-08-01T12:00:00Z'::timestamptz")
    june.clean("run-2")
    second = june.interval_key()
    # Other bytes: the same ones, in the same second, would be the same life of A, which has been settled.
    june.put(A, LATER, "exports/2027-05/due-in-july.json", body=b"again")
    planned = june.replan(second)
    assert (planned.num_discovered, planned.num_kept_by_reason) == (1, {"outside_interval": 2})
    for batch in planned.batches:
        june.delete(batch, "replay-1", dag=REDRIVE)
    june.report_redrive("replay-1")
    assert june.keys() == {A, LATER}
    assert june.replay(first, "replay-2").num_by_outcome == {"deleted": 2}
    assert june.keys() == set()


def test_a_replay_moves_no_watermark_and_leaves_the_interval_completed(june: World) -> None:
    before = june.rows("SELECT position, completed_through FROM s3_retention.watermarks")
    june.put(C)
    june.replay()
    assert june.rows("SELECT position, completed_through FROM s3_retention.watermarks") == before
    assert june.value("SELECT state FROM s3_retention.intervals") == "completed"


def test_nothing_that_the_interval_has_settled_is_repeated_and_the_next_interval_decides_it(
    world: World,
) -> None:
    world = world.under(keep=KEEP_LATEST)
    world.set_clock("'2027-06-01T12:00:00Z'::timestamptz")
    old, keeper, newer = (f"exports/2020-0{month}/a.json" for month in (1, 2, 3))
    world.put(old, keeper)
    (batch,) = world.planned().batches
    world.admin.delete_object(Bucket=world.bucket, Key=keeper)
    world.delete(batch)
    world.report()
    world.put(newer)
    assert world.outcomes() == {old: "kept:keeper_gone"}
    planned = world.replan()
    assert (planned.num_discovered, planned.num_kept_by_reason) == (
        0,
        {"already_settled": 1, "kept_latest": 1},
    )
    assert world.report_redrive("replay-1").is_balanced
    world.set_clock("'2027-07-01T12:00:00Z'::timestamptz")
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}
    assert world.keys() == {newer}


def test_under_a_new_version_a_replay_decides_by_the_rules_of_today(june: World) -> None:
    june.put(C)
    later = june.under(version="v2")
    assert later.replay().num_by_outcome == {"deleted": 1}
    assert replays(june) == [(1, "completed", "v2", "ann", 1)]
    (settled,) = june.rows(
        "SELECT encode(operation_id, 'hex') AS made FROM s3_retention.ledger_entries WHERE generation = 1"
    )
    assert settled["made"] == operation_id(june.bucket, C, "v2")


def test_what_waits_in_quarantine_is_left_to_a_redrive(june: World) -> None:
    june.put(C)
    june.s3.deny(june.bucket, [C])
    assert june.replay().num_by_outcome == {"quarantined": 1}
    again = june.replan(run="replay-2")
    assert (again.num_discovered, again.num_kept_by_reason) == (0, {"in_quarantine": 1})
    june.report_redrive("replay-2")
    june.s3.allow(june.bucket, [C])
    assert june.redrive().num_by_outcome == {"deleted": 1}
    assert june.balance() == (3, 3, 0, 0, 0, 0, 0)


def test_the_same_run_gets_the_same_replay_again_and_does_nothing_twice(june: World) -> None:
    june.put(C)
    first = june.replan()
    assert june.replan() == first
    (batch,) = first.batches
    june.delete(batch, "replay-1", dag=REDRIVE)
    assert june.report_redrive("replay-1").is_balanced
    assert june.replan().batches == ()
    assert june.delete(batch, "replay-1", dag=REDRIVE, try_number=2).was_closed
    assert replays(june) == [(1, "completed", "v1", "ann", 1)]


def test_two_replays_of_one_interval_at_once_are_one(june: World) -> None:
    june.put(C)
    june.replan()
    with pytest.raises(ReplayRefusedError, match=f"is being replayed by {REDRIVE}/replay-1"):
        june.replan(run="replay-2")
    assert len(replays(june)) == 1


def test_a_replay_that_died_is_taken_over_by_the_next_one_and_its_worker_settles_nothing(
    june: World, ledger: Ledger
) -> None:
    june.put(C)
    (batch,) = june.replan().batches
    june.expire_leases()
    (same,) = june.replan(run="replay-2").batches
    assert same.batch_id == batch.batch_id
    with closing(connect(ledger.writer_conninfo)) as own, pytest.raises(ClaimLostError):
        replace(june, conn=own).delete(batch, "replay-1", dag=REDRIVE)
    june.delete(same, "replay-2", dag=REDRIVE)
    assert june.report_redrive("replay-2").num_by_outcome == {"deleted": 1}
    assert len(replays(june)) == 1


def test_a_replay_that_was_stopped_stays_open_and_is_resumed_by_the_next_one(june: World) -> None:
    june.put(C)
    (batch,) = june.replan().batches
    refused = faulty_gateway(
        june.gateway, delete_objects=one_after_another(refusal("InvalidAccessKeyId", 403))
    )
    june.through(refused).delete(batch, "replay-1", dag=REDRIVE)
    june.sweep("replay-1", dag=REDRIVE)
    with pytest.raises(BatchStoppedError, match="1 commands stay pending"):
        june.report_redrive("replay-1")
    june.watch()
    finding = june.open_findings()["replay_unfinished", f"{june.interval_id()}/1"]
    assert (finding["num_commands"], finding["interval_key"]) == (1, june.interval_key())
    assert june.replay(run="replay-2").num_by_outcome == {"deleted": 1}
    june.watch()
    assert "replay_unfinished" not in {kind for kind, _ in june.open_findings()}


def test_a_replay_that_is_larger_than_a_run_may_be_is_drained_by_several(june: World) -> None:
    june = june.under(limits={"allow_expire_everything": True, "max_commands_per_run": 2})
    june.put(*(f"exports/2020-01/more-{number}.json" for number in range(3)))
    first = june.replay()
    assert (first.num_discovered, first.num_remaining) == (2, 1)
    assert june.replay(run="replay-2").num_by_outcome == {"deleted": 1}
    assert replays(june) == [(1, "completed", "v1", "ann", 3)]


def test_what_a_lost_replay_had_begun_is_swept_by_the_watch(june: World) -> None:
    june.put(C)
    (batch,) = june.replan().batches
    dying = faulty_gateway(june.gateway, delete_objects=one_after_another(MemoryError("killed")))
    with pytest.raises(MemoryError):
        june.through(dying).delete(batch, "replay-1", dag=REDRIVE)
    with pytest.raises(UnbalancedError):
        june.report_redrive("replay-1")
    june.set_clock("'2027-06-01T13:00:00Z'::timestamptz")
    june.watch()
    assert june.waiting() == {C: "worker_lost"}
    assert june.balance() == (3, 2, 0, 0, 0, 1, 0)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("cleanup:weekly_digests:never:ever", "there is no interval 'cleanup:weekly_digests:never:ever'"),
        ("", "there is no interval ''"),
    ],
)
def test_an_interval_that_is_not_there_is_refused(june: World, key: str, why: str) -> None:
    with pytest.raises(ReplayRefusedError, match=why):
        replay.run(
            june.conn,
            source_of(),
            june.policy,
            key,
            Holder(REDRIVE, "replay-1", "select"),
            acted_by=None,
            max_batches=1,
        )


def test_an_interval_that_is_not_completed_is_refused_because_the_next_run_resumes_it(world: World) -> None:
    world.put(A)
    world.planned()
    with pytest.raises(ReplayRefusedError, match="is not completed: trigger the cleanup DAG"):
        world.replan()


def test_a_policy_in_mode_simulate_replays_nothing(june: World) -> None:
    with pytest.raises(ReplayRefusedError, match="in mode simulate, which deletes nothing"):
        june.under(mode="simulate").replan()
    assert replays(june) == []


def test_a_plan_that_would_delete_everything_is_refused_and_its_replay_is_made_anew(june: World) -> None:
    june.put(C)
    careful = june.under(limits={})
    with pytest.raises(PlanRefusedError, match="all 1 objects that the scan saw would be deleted"):
        careful.replan()
    with pytest.raises(NotPlannedError):
        june.report_redrive("replay-1")
    assert june.replay(run="replay-2").num_by_outcome == {"deleted": 1}
    assert replays(june) == [(1, "completed", "v1", "ann", 1)]


def test_an_interval_whose_end_has_not_come_is_not_replayed(june: World) -> None:
    june.put(C)
    june.set_clock("'2027-05-01T12:00:00Z'::timestamptz")
    with pytest.raises(PlanRefusedError, match="ends in the future"):
        june.replan()
    assert june.keys() == {C}


def test_a_version_cannot_change_under_a_planned_replay(june: World) -> None:
    june.replan(source=source_of(facts(C, bucket=june.bucket)))
    with pytest.raises(psycopg.errors.RestrictViolation, match="is planned"):
        june.root.execute("UPDATE s3_retention.replays SET policy_version = 'v2'")


def test_an_object_is_in_one_open_plan_only_be_it_of_a_replay_or_of_a_cleanup(june: World) -> None:
    june.put(C)
    (batch,) = june.replan().batches
    june.set_clock("'2027-07-01T12:00:00Z'::timestamptz")
    june.claim("run-2")
    planned = june.plan("run-2")
    assert (planned.num_discovered, planned.num_kept_by_reason) == (0, {"in_other_plan": 1})
    june.delete(batch, "replay-1", dag=REDRIVE)
    assert june.outcomes()[C] == "deleted"
    june.report_redrive("replay-1")

    # And the other way round.
    june.report("run-2")
    june.put("exports/2020-02/d.json")
    june.set_clock("'2027-08-01T12:00:00Z'::timestamptz")
    june.claim("run-3")
    assert june.plan("run-3").num_discovered == 1
    first = june.value("SELECT min(interval_key) FROM s3_retention.intervals")
    again = june.replan(first, "replay-2")
    assert (again.num_discovered, again.num_kept_by_reason) == (0, {"in_other_plan": 1})


def test_of_one_command_that_waits_twice_a_redrive_takes_one(june: World) -> None:
    june.put(C)
    june.s3.deny(june.bucket, [C])
    june.replay()
    june.root.execute(
        """
        INSERT INTO s3_retention.quarantine (
            policy, policy_version, interval_id, generation, command_id, operation_id, bucket, key, etag, size,
            last_modified_at, due_at, failure_class, num_attempts, dag_id, run_id, map_index, first_failed_at,
            last_failed_at
        )
        SELECT policy, policy_version, interval_id, 7, command_id, operation_id, bucket, key, etag, size,
            last_modified_at, due_at, failure_class, num_attempts, dag_id, run_id, map_index, first_failed_at,
            last_failed_at
        FROM s3_retention.quarantine
        """
    )
    june.s3.allow(june.bucket, [C])
    assert june.redrive().num_by_outcome == {"deleted": 1}
    assert june.redrive("redrive-2").num_by_outcome == {"already_absent": 1}


def test_a_replay_that_was_completed_by_a_report_in_between_has_nothing_more_to_deal(
    june: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = replay._store_plan

    def store(*arguments: Any) -> None:
        real(*arguments)
        june.report_redrive("replay-1")

    monkeypatch.setattr(replay, "_store_plan", store)
    assert june.replan().batches == ()


def test_a_replay_that_was_refused_is_no_finding_since_nothing_waits(june: World) -> None:
    june.put(C)
    with pytest.raises(PlanRefusedError):
        june.under(limits={}).replan()
    june.expire_leases()
    june.watch()
    assert "replay_unfinished" not in {kind for kind, _ in june.open_findings()}
