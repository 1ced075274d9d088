"""Quarantined commands and their return."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.command import operation_id
from s3_retention.core.holder import Holder
from s3_retention.errors import BatchStoppedError, S3RetentionError
from s3_retention.steps.redrive import RedriveResult
from s3_retention.store import batches
from s3_retention.store.connection import connect
from tests.factories import KEEP_LATEST, REDRIVE, World, holder
from tests.fakes import deleted, faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from sandbox.ledger import Ledger

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")


@pytest.fixture
def parked(world: World) -> World:
    """Three objects in quarantine: two of class permission, one of class worker_lost."""
    world.put(A, B, C)
    world.s3.deny(world.bucket, [A, B])
    real = world.gateway.client.delete_objects

    def malformed_c(**arguments: Any) -> Any:
        if any(one["Key"] == C for one in arguments["Delete"]["Objects"]):
            raise refusal("MalformedXML")
        return real(**arguments)

    world.through(faulty_gateway(world.gateway, delete_objects=malformed_c)).clean()
    assert world.waiting() == {A: "permission", B: "permission", C: "malformed"}
    return world


def ids(world: World, *keys: str) -> tuple[str, ...]:
    return tuple(operation_id(world.bucket, key, "v1") for key in keys)


def lift(world: World) -> None:
    world.s3.allow(world.bucket, [A, B])


def test_one_operation_is_redriven_and_nothing_else(parked: World) -> None:
    lift(parked)
    report = parked.redrive(operation_ids=ids(parked, A))
    assert report.num_by_outcome == {"deleted": 1}
    assert parked.keys() == {B, C}
    assert parked.waiting() == {B: "permission", C: "malformed"}
    assert parked.balance() == (3, 1, 0, 0, 0, 2, 0)


def test_one_class_is_redriven(parked: World) -> None:
    lift(parked)
    assert parked.redrive(failure_classes=("permission",)).num_by_outcome == {"deleted": 2}
    assert parked.keys() == {C}


def test_one_policy_is_redriven(parked: World) -> None:
    lift(parked)
    assert parked.redrive("redrive-1", policy="another").num_discovered == 0
    assert parked.redrive("redrive-2", policy="weekly_digests").num_by_outcome == {"deleted": 3}


def test_all_that_is_given_must_match(parked: World) -> None:
    none = parked.select(failure_classes=("permission",), operation_ids=ids(parked, C))
    assert none == RedriveResult(0)
    assert parked.select("redrive-2", operation_ids=()) == RedriveResult(0)
    assert parked.select("redrive-3", failure_classes=()) == RedriveResult(0)


@pytest.mark.parametrize("bad", ["", "xyz", "ab", "0" * 63, "0" * 66, "0" * 64 + "'; --"])
def test_an_operation_id_that_is_none_is_refused_with_what_one_looks_like(parked: World, bad: str) -> None:
    with pytest.raises(S3RetentionError) as caught:
        parked.select(operation_ids=(*ids(parked, A), bad))
    assert str(caught.value).startswith(f"operation id {bad[:80]!r} is not one: it has 64 hex digits")
    assert parked.value("SELECT count(*) FROM s3_retention.batches WHERE kind = 'redrive'") == 0


def test_an_operation_id_that_was_pasted_with_spaces_is_one(parked: World) -> None:
    assert parked.select(operation_ids=(f"  {ids(parked, A)[0].upper()}\n",)).num_selected == 1


def test_a_run_that_selects_again_gets_the_same_batches(parked: World) -> None:
    first = parked.select()
    assert first.num_selected == 3
    assert parked.select() == first
    assert parked.value("SELECT max(num_redrives) FROM s3_retention.quarantine") == 1


def test_a_selection_is_no_larger_than_asked_for(parked: World) -> None:
    assert parked.select(max_commands=2).num_selected == 2
    assert parked.select("redrive-2").num_selected == 1


def test_rows_of_two_policies_never_share_a_batch(parked: World) -> None:
    parked.root.execute("UPDATE s3_retention.quarantine SET policy = 'another' WHERE key = %s", [B])
    batches_made = parked.select().batches
    assert sorted(batch.num_commands for batch in batches_made) == [1, 2]
    assert [batches.get_policy(parked.conn, batch.batch_id) for batch in batches_made] == [
        "another",
        "weekly_digests",
    ]


def test_what_goes_beyond_the_batches_of_a_run_waits(parked: World) -> None:
    parked.root.execute("UPDATE s3_retention.quarantine SET policy = 'another' WHERE key = %s", [B])
    assert parked.select(max_batches=1).num_selected == 1
    assert parked.select("redrive-2").num_selected == 2


def test_two_redrives_at_once_never_take_the_same_row(parked: World, ledger: Ledger) -> None:
    barrier = threading.Barrier(4)

    def work(number: int) -> int:
        with closing(connect(ledger.writer_conninfo)) as own:
            barrier.wait(timeout=30)
            selected: RedriveResult = replace(parked, conn=own).select(f"redrive-{number}")
            return selected.num_selected

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == 3
    assert parked.value("SELECT sum(num_redrives) FROM s3_retention.quarantine") == 3
    assert parked.value("SELECT count(*) FROM s3_retention.quarantine_events WHERE event = 'redriven'") == 3


def test_a_row_that_may_not_go_yet_is_passed_over(parked: World) -> None:
    parked.root.execute(
        "UPDATE s3_retention.quarantine SET not_before = now() + interval '1 hour' WHERE key = %s", [A]
    )
    assert parked.select().num_selected == 2


def test_what_fails_again_returns_with_its_new_cause_and_keeps_its_first_failure(parked: World) -> None:
    before = parked.rows(
        "SELECT first_failed_at, num_attempts FROM s3_retention.quarantine WHERE key = %(key)s", key=A
    )
    slow = faulty_gateway(parked.gateway, delete_objects=lambda **_: deleted(errors=[(A, "InternalError")]))
    report = parked.through(slow).redrive(operation_ids=ids(parked, A))
    assert report.num_by_outcome == {"quarantined": 1}
    assert report.num_by_detail == {"quarantined:transient": 1}
    assert report.is_balanced
    (row,) = parked.rows("SELECT * FROM s3_retention.quarantine WHERE key = %(key)s", key=A)
    assert (row["failure_class"], row["code"], row["num_attempts"]) == ("transient", "InternalError", 6)
    assert row["first_failed_at"] == before[0]["first_failed_at"] < row["last_failed_at"]
    assert (row["dag_id"], row["run_id"], row["map_index"]) == (REDRIVE, "redrive-1", 0)
    assert (row["redrive_batch_id"], row["num_redrives"], row["resolved_at"]) == (None, 1, None)
    events = parked.rows(
        "SELECT event, detail, acted_by FROM s3_retention.quarantine_events WHERE quarantine_id = %(id)s "
        "ORDER BY event_id",
        id=row["quarantine_id"],
    )
    assert [tuple(event.values()) for event in events] == [
        ("quarantined", "permission", None),
        ("redriven", "permission", "ann"),
        ("returned", "transient", None),
    ]
    # And it can be redriven again.
    lift(parked)
    assert parked.redrive("redrive-2", operation_ids=ids(parked, A)).num_by_outcome == {"deleted": 1}


def test_the_final_entry_of_a_redrive_stands_under_the_original_interval(parked: World) -> None:
    lift(parked)
    parked.clean("run-2")
    parked.redrive()
    rows = parked.rows("SELECT interval_id, outcome, batch_id FROM s3_retention.ledger_entries ORDER BY key")
    assert [row["interval_id"] for row in rows] == [1, 1, 1]
    assert parked.value("SELECT count(*) FROM s3_retention.batches WHERE kind = 'redrive'") == 1
    assert parked.rows("SELECT DISTINCT resolution FROM s3_retention.quarantine") == [
        {"resolution": "deleted"}
    ]


def test_a_redrive_that_is_delivered_twice_is_done_once(parked: World) -> None:
    lift(parked)
    (batch,) = parked.select().batches
    assert parked.delete(batch, "redrive-1", dag=REDRIVE).num_by_outcome == {"deleted": 3}
    assert parked.delete(batch, "redrive-1", dag=REDRIVE, try_number=2).was_closed
    assert parked.report_redrive().num_by_outcome == {"deleted": 3}
    assert parked.value("SELECT count(*) FROM s3_retention.ledger_entries") == 3


def test_an_object_that_is_gone_by_now_is_resolved_as_such(parked: World) -> None:
    parked.admin.delete_object(Bucket=parked.bucket, Key=A)
    assert parked.redrive(operation_ids=ids(parked, A)).num_by_outcome == {"already_absent": 1}
    assert parked.waiting() == {B: "permission", C: "malformed"}


def test_an_object_that_was_written_again_survives_its_redrive(parked: World) -> None:
    lift(parked)
    parked.put(A, body=b"new")
    assert parked.redrive(operation_ids=ids(parked, A)).num_by_outcome == {"changed": 1}
    assert parked.keys() == {A, B, C}


def test_an_object_that_was_uploaded_again_with_the_same_content_survives_its_redrive(parked: World) -> None:
    lift(parked)
    real = parked.gateway.client.head_object

    def a_second_later(**arguments: Any) -> Any:
        answer = real(**arguments)
        return {**answer, "LastModified": answer["LastModified"] + timedelta(seconds=1)}

    # Its ETag is that of the plan, so the store's own condition would let it go.
    later = parked.through(faulty_gateway(parked.gateway, head_object=a_second_later))
    assert later.redrive().num_by_outcome == {"changed": 3}
    assert parked.keys() == {A, B, C}


def test_a_redrive_under_a_newer_version_keeps_and_the_next_interval_decides(parked: World) -> None:
    lift(parked)
    newer = parked.under(version="v2")
    report = newer.redrive()
    assert (report.num_by_outcome, report.num_by_detail) == ({"kept": 3}, {"kept:policy_changed": 3})
    assert parked.keys() == {A, B, C}
    assert parked.waiting() == {}
    assert newer.clean("run-2").num_by_outcome == {"deleted": 3}


def test_what_the_policy_would_not_delete_any_more_is_kept(parked: World) -> None:
    lift(parked)
    # The clock says that it is not due: as after a correction of a clock that ran ahead.
    parked.set_clock("'2020-02-15T00:00:00Z'::timestamptz")
    report = parked.redrive()
    assert report.num_by_outcome == {"kept": 3}
    assert set(report.num_by_detail) <= {"kept:not_due", "kept:date_in_future"}
    assert parked.keys() == {A, B, C}


def test_rules_that_were_edited_under_the_same_version_stop_a_redrive(parked: World) -> None:
    lift(parked)
    edited = parked.under(select={"include": ["exports/**"]})
    with pytest.raises(BatchStoppedError, match="stopped by policy_changed"):
        edited.redrive()
    assert parked.keys() == {A, B, C}
    assert len(parked.waiting()) == 3


def test_a_policy_in_mode_simulate_is_not_redriven(parked: World) -> None:
    lift(parked)
    with pytest.raises(
        BatchStoppedError, match=r"waits in quarantine for another one: .* stopped by simulate"
    ):
        parked.under(mode="simulate").redrive()
    # No attempt was made, so the causes stand; the events say what stopped it.
    assert parked.waiting() == {A: "permission", B: "permission", C: "malformed"}
    returned = "SELECT DISTINCT detail FROM s3_retention.quarantine_events WHERE event = 'returned'"
    assert parked.value(returned) == "simulate"
    assert parked.keys() == {A, B, C}
    assert parked.redrive("redrive-2").num_by_outcome == {"deleted": 3}


def test_a_keeper_that_is_gone_keeps_its_group_from_a_redrive(world: World) -> None:
    world = world.under(keep=KEEP_LATEST)
    old, new = "exports/2020-01/a.json", "exports/2020-02/a.json"
    world.put(old, new)
    world.s3.deny(world.bucket, [old])
    world.clean()
    world.s3.allow(world.bucket, [old])
    world.admin.delete_object(Bucket=world.bucket, Key=new)
    report = world.redrive()
    assert (report.num_by_outcome, report.num_by_detail) == ({"kept": 1}, {"kept:keeper_gone": 1})
    assert world.keys() == {old}


def test_a_redrive_that_was_stopped_leaves_its_rows_to_another_one(parked: World) -> None:
    lift(parked)
    no_bucket = faulty_gateway(
        parked.gateway,
        head_object=one_after_another(refusal("404", 404)),
        head_bucket=one_after_another(refusal("404", 404)),
    )
    with pytest.raises(BatchStoppedError, match="stopped by config"):
        parked.through(no_bucket).redrive("redrive-1")
    assert parked.waiting() == {A: "config", B: "config", C: "config"}
    assert (
        parked.value("SELECT count(*) FROM s3_retention.quarantine WHERE redrive_batch_id IS NOT NULL") == 0
    )
    # The report stays what it was, and the next redrive finds all of them.
    with pytest.raises(BatchStoppedError):
        parked.report_redrive("redrive-1")
    assert parked.redrive("redrive-2").num_by_outcome == {"deleted": 3}


def test_a_redrive_whose_looks_fail_returns_what_it_could_not_see(world: World) -> None:
    world.put(A)
    (batch,) = world.planned().batches
    # Quarantined without a single attempt: its worker was lost.
    batches.claim(world.conn, batch.batch_id, holder=holder(), lease=world.policy.window.lease)
    world.sweep()
    denied = faulty_gateway(world.gateway, head_object=one_after_another(refusal("403", 403)))
    assert world.through(denied).redrive().num_by_detail == {"quarantined:permission": 1}
    assert world.rows("SELECT failure_class, num_attempts FROM s3_retention.quarantine") == [
        {"failure_class": "permission", "num_attempts": 1}
    ]


@pytest.mark.parametrize(("status", "kind"), [(500, "transient"), (400, "malformed")])
def test_one_object_that_the_store_never_shows_does_not_hold_up_the_redrive_of_others(
    parked: World, status: int, kind: str
) -> None:
    lift(parked)
    first = parked.value("SELECT key FROM s3_retention.quarantine ORDER BY quarantine_id LIMIT 1")
    real = parked.gateway.client.head_object

    def damaged(**arguments: Any) -> Any:
        if arguments["Key"] == first:
            raise refusal(str(status), status)
        return real(**arguments)

    there = parked.through(faulty_gateway(parked.gateway, head_object=damaged))
    assert there.redrive().num_by_detail == {f"quarantined:{kind}": 1}
    assert parked.waiting() == {first: kind}
    assert parked.keys() == {first}


@pytest.mark.parametrize("claimed", [True, False])
def test_a_redrive_whose_worker_was_lost_returns_its_rows_with_the_cause_before(
    parked: World, *, claimed: bool
) -> None:
    (batch,) = parked.select().batches
    if claimed:
        worker = Holder(REDRIVE, "redrive-1", "delete", 0)
        batches.claim(parked.conn, batch.batch_id, holder=worker, lease=parked.policy.window.lease)
    assert parked.sweep("redrive-1", dag=REDRIVE).num_by_class == {"worker_lost": 3}
    assert parked.waiting() == {A: "permission", B: "permission", C: "malformed"}
    assert parked.report_redrive().num_by_detail == {"quarantined:worker_lost": 3}
    assert parked.select("redrive-2").num_selected == 3


def test_a_redrive_of_more_rows_than_a_request_takes_goes_in_parts(world: World) -> None:
    keys = [f"exports/2020-01/{number:04d}.json" for number in range(3)]
    world.put(*keys)
    world.s3.deny(world.bucket, keys)
    world.clean()
    world.s3.allow(world.bucket, keys)
    # Rows of objects that were never there: 1,200 in all, in batches of 1,000.
    world.root.execute(
        """
        INSERT INTO s3_retention.quarantine (
            policy, policy_version, interval_id, generation, command_id, operation_id, bucket, key, etag, size,
            last_modified_at, due_at, failure_class, num_attempts, dag_id, run_id, map_index, first_failed_at,
            last_failed_at
        )
        SELECT policy, policy_version, interval_id, generation, sha256(n::text::bytea), sha256(n::text::bytea),
            bucket, key || n, etag, size, last_modified_at, due_at, failure_class, 1, dag_id, run_id, 0,
            first_failed_at, last_failed_at
        FROM s3_retention.quarantine CROSS JOIN generate_series(1, 399) AS n WHERE key = %s
        UNION ALL
        SELECT policy, policy_version, interval_id, generation, sha256(n::text::bytea), sha256(n::text::bytea),
            bucket, key || n, etag, size, last_modified_at, due_at, failure_class, 1, dag_id, run_id, 0,
            first_failed_at, last_failed_at
        FROM s3_retention.quarantine CROSS JOIN generate_series(400, 1197) AS n WHERE key = %s
        """,
        keys[:2],
    )
    selected = world.select()
    assert [batch.num_commands for batch in selected.batches] == [1000, 200]
    for batch in selected.batches:
        world.delete(batch, "redrive-1", dag=REDRIVE)
    world.sweep("redrive-1", dag=REDRIVE)
    assert world.report_redrive().num_by_outcome == {"already_absent": 1197, "deleted": 3}
    assert world.waiting() == {}


def test_a_limited_redrive_takes_the_oldest_of_all_policies(parked: World) -> None:
    oldest = parked.value("SELECT min(quarantine_id) FROM s3_retention.quarantine")
    parked.root.execute(
        "UPDATE s3_retention.quarantine SET policy = 'zebra' WHERE quarantine_id = %(id)s", {"id": oldest}
    )
    (batch,) = parked.select(max_commands=1).batches
    assert batches.get_policy(parked.conn, batch.batch_id) == "zebra"
