"""The sweep: the one place where quarantine is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from s3_retention.errors import ClaimLostError, UnbalancedError
from s3_retention.steps.quarantine import QuarantineResult
from s3_retention.store import batches, quarantine
from tests.factories import World, holder
from tests.fakes import deleted, faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from s3_retention.store.batches import DealtBatch

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")


def one_batch(world: World, *keys: str) -> DealtBatch:
    world.put(*keys)
    (batch,) = world.planned().batches
    return batch


def claim_and_vanish(world: World, batch: DealtBatch) -> batches.ClaimedBatch:
    """A worker that claims its batch and is heard of no more."""
    claimed = batches.claim(
        world.conn,
        batch.batch_id,
        holder=holder(map_index=batch.map_index),
        lease=world.policy.window.lease,
    )
    assert claimed is not None
    return claimed


def test_a_batch_that_no_worker_claimed_stays_pending(world: World) -> None:
    one_batch(world, A)
    assert world.sweep() == QuarantineResult(0)
    assert world.sweep(failed={1, 2}) == QuarantineResult(0)
    with pytest.raises(UnbalancedError):
        world.report()
    assert world.waiting() == {}
    # The next run takes it up.
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}


def test_a_batch_whose_task_failed_before_it_could_claim_is_quarantined(world: World) -> None:
    one_batch(world, A)
    assert world.sweep(failed={0}) == QuarantineResult(1, {"worker_lost": 1})
    assert world.waiting() == {A: "worker_lost"}
    assert world.report().num_by_outcome == {"quarantined": 1}


def test_a_batch_whose_worker_vanished_is_quarantined_whatever_airflow_shows(world: World) -> None:
    batch = one_batch(world, A, B)
    claim_and_vanish(world, batch)
    assert world.sweep() == QuarantineResult(1, {"worker_lost": 2})
    (row, _) = world.rows("SELECT * FROM s3_retention.quarantine ORDER BY key")
    assert (row["failure_class"], row["code"], row["num_attempts"]) == ("worker_lost", None, 0)
    assert (
        row["message"]
        == "no word about this object: the task was killed, out of memory, or failed before it; see its log"
    )
    assert world.balance() == (2, 0, 0, 0, 0, 2, 0)


def test_a_worker_that_still_lives_when_it_is_swept_can_settle_nothing(world: World) -> None:
    batch = one_batch(world, A)
    claimed = claim_and_vanish(world, batch)
    world.sweep()
    with pytest.raises(ClaimLostError):
        batches.stop(world.conn, claimed, stopped_class="config", stopped_message="m")
    from s3_retention.store import ledger_entries

    with pytest.raises(ClaimLostError):
        ledger_entries.settle(world.conn, claimed, [], chunk_id=None, lease=world.policy.window.lease)


def test_a_batch_that_an_earlier_run_claimed_and_this_one_never_did_stays_pending(world: World) -> None:
    slow = world.through(
        faulty_gateway(world.gateway, delete_objects=one_after_another(refusal("SlowDown", 503)))
    )
    batch = one_batch(world, A)
    assert slow.delete(batch).stopped_class == "throttled"
    world.expire_leases()
    world.planned("run-2")
    assert world.sweep("run-2") == QuarantineResult(0)
    assert world.waiting() == {}


def test_a_batch_that_was_dealt_to_another_run_meanwhile_is_not_taken(world: World) -> None:
    batch = one_batch(world, A)
    claim_and_vanish(world, batch)
    world.expire_leases()
    world.planned("run-2")
    assert world.sweep("run-1") == QuarantineResult(0)
    assert batches.take_from_worker(world.conn, batch.batch_id, holder=holder(run="run-1")) is None
    assert batches.take_from_worker(world.conn, batch.batch_id, holder=holder(run="run-2")) == 2


def test_a_stopped_batch_is_left_to_the_next_run_even_when_its_task_failed(world: World) -> None:
    batch = one_batch(world, A)
    stopped = world.through(
        faulty_gateway(world.gateway, delete_objects=one_after_another(refusal("InvalidAccessKeyId", 403)))
    )
    assert stopped.delete(batch).stopped_class == "auth"
    assert world.sweep(failed={0}) == QuarantineResult(0)
    assert world.waiting() == {}
    assert world.balance() == (1, 0, 0, 0, 0, 0, 1)


def test_a_sweep_that_is_run_twice_moves_nothing_twice(world: World) -> None:
    world.s3.deny(world.bucket, [A])
    batch = one_batch(world, A, B)
    world.delete(batch)
    assert world.sweep() == QuarantineResult(1, {"permission": 1})
    assert world.sweep(failed={0}) == QuarantineResult(0)
    assert world.value("SELECT count(*) FROM s3_retention.quarantine") == 1
    assert world.value("SELECT count(*) FROM s3_retention.quarantine_events") == 1


def test_a_batch_that_is_done_is_left_even_when_its_task_failed_afterwards(world: World) -> None:
    batch = one_batch(world, A)
    world.delete(batch)
    assert world.sweep(failed={0}) == QuarantineResult(0)
    assert world.report().num_by_outcome == {"deleted": 1}


def test_a_quarantine_row_holds_all_that_a_redrive_needs(world: World) -> None:
    world.s3.deny(world.bucket, [A])
    batch = one_batch(world, A)
    (planned,) = world.rows("SELECT * FROM s3_retention.commands")
    world.delete(batch)
    world.sweep()
    (row,) = world.rows("SELECT * FROM s3_retention.quarantine")
    columns = (
        "policy policy_version interval_id generation command_id operation_id tenant bucket key version_id"
    )
    for column in f"{columns} etag size last_modified_at due_at group_key".split():
        assert row[column] == planned[column], column
    (event,) = world.rows("SELECT event, detail, run_id FROM s3_retention.quarantine_events")
    assert event == {"event": "quarantined", "detail": "permission", "run_id": "run-1"}


def test_attempts_add_up_over_the_tries_of_a_task(world: World) -> None:
    slow = world.through(
        faulty_gateway(world.gateway, delete_objects=lambda **_: deleted(errors=[(A, "InternalError")]))
    )
    batch = one_batch(world, A)
    for try_number in (1, 2, 3):
        slow.delete(batch, try_number=try_number)
    world.sweep()
    assert world.rows("SELECT failure_class, num_attempts FROM s3_retention.quarantine") == [
        {"failure_class": "transient", "num_attempts": 15}
    ]


def test_clearing_a_swept_batch_does_nothing_twice(world: World) -> None:
    batch = one_batch(world, A)
    claim_and_vanish(world, batch)
    world.sweep()
    assert world.delete(batch, try_number=2).was_closed
    assert world.keys() == {A}
    assert world.waiting() == {A: "worker_lost"}


def test_a_sweep_that_dies_half_way_moves_nothing_and_is_done_by_the_next_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = one_batch(world, A)
    claim_and_vanish(world, batch)

    def die(*_: object, **__: object) -> None:
        raise RuntimeError("lost")

    with monkeypatch.context() as patch:
        patch.setattr(batches, "close", die)
        with pytest.raises(RuntimeError):
            world.sweep()
    assert world.waiting() == {}
    assert world.sweep().num_by_class == {"worker_lost": 1}
    assert quarantine.park_unfinished(world.conn, batch_id=batch.batch_id, holder=holder()) == {}
