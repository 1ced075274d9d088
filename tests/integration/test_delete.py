"""The delete step between a real ledger and a real store."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.errors import BatchStoppedError, ClaimLostError
from s3_retention.steps import delete
from s3_retention.steps.delete import DeleteResult
from s3_retention.store import batches
from s3_retention.store.connection import connect
from tests.factories import BY_LAST_MODIFIED, CLEANUP, KEEP_LATEST, ODD_KEYS, World, holder
from tests.fakes import NO_WAIT, AroundGateway, asked, deleted, faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.outcome import Outcome
    from sandbox.ledger import Ledger

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")


def test_what_is_due_is_deleted_and_recorded(world: World) -> None:
    world.put(A, B)
    report = world.clean()
    assert world.keys() == set()
    assert world.outcomes() == {A: "deleted", B: "deleted"}
    assert report.num_by_outcome == {"deleted": 2}
    assert report.is_balanced
    assert world.balance() == (2, 2, 0, 0, 0, 0, 0)


def test_every_odd_key_is_deleted_under_its_own_name(world: World) -> None:
    world.put(*ODD_KEYS)
    assert world.keys() == set(ODD_KEYS)
    assert world.clean().num_by_outcome == {"deleted": len(ODD_KEYS)}
    assert world.keys() == set()
    assert world.outcomes() == dict.fromkeys(ODD_KEYS, "deleted")


def test_the_same_batch_twice_by_one_worker_is_done_once(world: World) -> None:
    world.put(A, B)
    (batch,) = world.planned().batches
    assert world.delete(batch) == DeleteResult(batch.batch_id, num_by_outcome={"deleted": 2})
    assert world.delete(batch, try_number=2) == DeleteResult(batch.batch_id, was_closed=True)
    assert world.balance() == (2, 2, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Meeting(AroundGateway):
    """A gateway at which several workers wait for each other before each delete."""

    barrier: threading.Barrier
    has_arrived: threading.Event

    def delete_chunk(self, targets: Sequence[ObjectFacts], **how: Any) -> list[Outcome]:
        self.has_arrived.set()
        self.barrier.wait(timeout=60)
        return self.real.delete_chunk(targets, **how)


def test_two_workers_at_once_record_one_delete(world: World, ledger: Ledger) -> None:
    world.put(A, B)
    (batch,) = world.planned().batches
    first_has_arrived = threading.Event()
    meeting: Any = Meeting(world.gateway, threading.Barrier(2), first_has_arrived)

    def work(try_number: int) -> str:
        # A new try claims after the old one: the other way round, the old one would get no claim at all.
        assert try_number == 1 or first_has_arrived.wait(timeout=60)
        with closing(connect(ledger.writer_conninfo)) as own:
            here = replace(world, conn=own, gateway=meeting)
            try:
                return f"recorded {sum(here.delete(batch, try_number=try_number).num_by_outcome.values())}"
            except ClaimLostError:
                return "claim lost"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(work, (1, 2))) == ["claim lost", "recorded 2"]
    assert set(world.outcomes().values()) <= {"deleted", "already_absent"}
    assert world.value("SELECT count(*) FROM s3_retention.ledger_entries") == 2
    assert world.balance()[0] == 2
    assert world.keys() == set()
    world.sweep()
    assert world.report().is_balanced


def test_a_key_that_is_written_again_is_deleted_again_as_a_new_incarnation(world: World) -> None:
    world.put(A)
    world.clean("run-1")
    world.put(A, body=b"second life")
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}
    rows = world.rows("SELECT * FROM s3_retention.ledger_entries ORDER BY interval_id")
    assert [row["outcome"] for row in rows] == ["deleted", "deleted"]
    assert rows[0]["operation_id"] == rows[1]["operation_id"]
    assert rows[0]["command_id"] != rows[1]["command_id"]
    assert world.keys() == set()


def test_an_object_that_is_already_gone_is_a_success_counted_apart(world: World) -> None:
    world.put(A, B)
    (batch,) = world.planned().batches
    world.admin.delete_object(Bucket=world.bucket, Key=A)
    assert world.delete(batch).num_by_outcome == {"already_absent": 1, "deleted": 1}
    assert world.outcomes() == {A: "already_absent", B: "deleted"}
    assert world.report().num_by_outcome == {"already_absent": 1, "deleted": 1}


def test_an_object_that_is_already_gone_and_that_goes_alone_is_a_success_too(world: World) -> None:
    odd = "exports/2020-01/\x01.json"
    world.put(odd)
    (batch,) = world.planned().batches
    world.admin.delete_object(Bucket=world.bucket, Key=odd)
    assert world.delete(batch).num_by_outcome == {"already_absent": 1}


def test_an_object_that_is_overwritten_after_the_plan_survives(world: World) -> None:
    odd = "exports/2020-01/\x01.json"
    world.put(A, B, odd)
    (batch,) = world.planned().batches
    world.put(A, odd, body=b"new")
    assert world.delete(batch).num_by_outcome == {"changed": 2, "deleted": 1}
    assert world.keys() == {A, odd}
    assert world.outcomes() == {A: "changed", B: "deleted", odd: "changed"}
    # Its new life is a command of its own, of the next interval.
    assert world.report().is_balanced
    assert world.clean("run-2").num_by_outcome == {"deleted": 2}
    assert world.keys() == set()


def test_a_bucket_that_is_missing_stops_the_batch_and_is_never_already_gone(world: World) -> None:
    world.put(A, B)
    (batch,) = world.planned().batches
    for key in (A, B):
        world.admin.delete_object(Bucket=world.bucket, Key=key)
    world.admin.delete_bucket(Bucket=world.bucket)
    result = world.delete(batch)
    assert (result.stopped_class, result.num_by_outcome) == ("config", {})
    assert result.stopped_message == "NoSuchBucket The specified bucket does not exist"
    assert world.sweep().num_batches == 0
    with pytest.raises(BatchStoppedError, match=r"2 commands stay pending for the next run: .* by config"):
        world.report()
    assert world.outcomes() == {}
    assert world.balance() == (2, 0, 0, 0, 0, 0, 2)


def test_a_bucket_that_is_missing_when_keepers_are_looked_at_stops_the_batch(world: World) -> None:
    old, new = "exports/2020-01/a.json", "exports/2020-02/a.json"
    world = world.under(keep=KEEP_LATEST)
    world.put(old, new)
    (batch,) = world.planned().batches
    for key in (old, new):
        world.admin.delete_object(Bucket=world.bucket, Key=key)
    world.admin.delete_bucket(Bucket=world.bucket)
    result = world.delete(batch)
    assert (result.stopped_class, result.num_by_outcome) == ("config", {})
    assert world.outcomes() == {}
    assert world.balance() == (1, 0, 0, 0, 0, 0, 1)


def test_a_run_that_was_stopped_is_resumed_by_the_next_one(world: World) -> None:
    world.put(A, B)
    broken = world.through(
        faulty_gateway(world.gateway, delete_objects=one_after_another(refusal("SlowDown")))
    )
    (batch,) = broken.planned().batches
    assert broken.delete(batch).stopped_class == "throttled"
    with pytest.raises(BatchStoppedError):
        broken.report()
    assert world.keys() == {A, B}
    report = world.clean("run-2")
    assert report.num_by_outcome == {"deleted": 2}
    assert world.value("SELECT count(*) FROM s3_retention.intervals") == 1
    assert world.keys() == set()


def test_what_is_not_due_and_what_lies_beside_the_prefix_survives(world: World) -> None:
    beside = ("exports-archive/2020-01/a.json", "exports/notes.txt", "exports/2020-01/readme.md", "export")
    world.put(A, *beside)
    world.clean()
    assert world.keys() == set(beside)


def test_what_was_uploaded_just_now_is_not_due_by_its_age(world: World) -> None:
    world.put(A)
    report = world.under(age=BY_LAST_MODIFIED).clean()
    assert (report.num_discovered, world.keys()) == (0, {A})
    kept = world.value("SELECT num_kept_by_reason FROM s3_retention.intervals")
    assert kept == {"not_due": 1}


def test_the_newest_of_a_group_survives_though_due_and_goes_when_a_newer_one_exists(world: World) -> None:
    world = world.under(keep=KEEP_LATEST)
    months = [f"exports/2020-0{month}/a.json" for month in (1, 2, 3)]
    world.put(*months[:2], "exports/2019-05/b.json")
    world.clean("run-1")
    assert world.keys() == {months[1], "exports/2019-05/b.json"}
    # Due since March 2020, long before the watermark: it goes as soon as it is not the newest any more.
    world.put(months[2])
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}
    assert world.keys() == {months[2], "exports/2019-05/b.json"}
    assert world.value("SELECT num_stragglers FROM s3_retention.intervals ORDER BY 1 DESC LIMIT 1") == 1


def test_the_newest_that_is_gone_before_the_delete_keeps_its_group(world: World) -> None:
    world = world.under(keep=KEEP_LATEST)
    old, new = "exports/2020-01/a.json", "exports/2020-02/a.json"
    others = ("exports/2020-01/b.json", "exports/2020-02/b.json")
    world.put(old, new, *others)
    (batch,) = world.planned().batches
    world.admin.delete_object(Bucket=world.bucket, Key=new)
    world.delete(batch)
    assert world.outcomes() == {old: "kept:keeper_gone", others[0]: "deleted"}
    assert world.keys() == {old, others[1]}


def test_a_keeper_that_the_store_would_not_show_fails_its_group_with_the_cause(world: World) -> None:
    world = world.under(keep=KEEP_LATEST)
    old, new = "exports/2020-01/a.json", "exports/2020-02/a.json"
    world.put(old, new)
    (batch,) = world.planned().batches
    blind = faulty_gateway(world.gateway, head_object=one_after_another(refusal("503", 503)))
    world.through(blind).delete(batch)
    assert world.outcomes() == {}
    world.sweep()
    assert world.waiting() == {old: "throttled"}
    assert world.keys() == {old, new}


def test_a_keeper_that_the_store_never_shows_fails_its_own_group_alone(world: World) -> None:
    world = world.under(keep=KEEP_LATEST)
    old = {f"exports/2020-0{month}/{name}.json" for month in range(1, 6) for name in "abc"}
    kept = {f"exports/2020-06/{name}.json" for name in "abc"}
    world.put(*old, *kept)
    (batch,) = world.planned().batches
    real = world.gateway.client.head_object

    def damaged(**arguments: Any) -> Any:
        if arguments["Key"] == "exports/2020-06/b.json":
            raise refusal("500", 500)
        return real(**arguments)

    result = world.through(faulty_gateway(world.gateway, head_object=damaged)).delete(batch)
    assert (result.num_by_outcome, result.num_failed, result.stopped_class) == ({"deleted": 10}, 5, None)
    assert world.keys() == kept | {key for key in old if key.endswith("b.json")}


def test_one_denied_object_of_1000_costs_one_object(world: World) -> None:
    keys = [f"exports/2020-01/customer-{number:04d}.json" for number in range(1000)]
    denied = keys[417]
    world.put(*keys)
    world.s3.deny(world.bucket, [denied])
    report = world.clean()
    assert report.num_by_outcome == {"deleted": 999, "quarantined": 1}
    assert report.num_by_detail == {"quarantined:permission": 1}
    assert world.keys() == {denied}
    (row,) = world.rows("SELECT * FROM s3_retention.quarantine")
    assert (row["key"], row["failure_class"], row["code"]) == (denied, "permission", "AccessDenied")
    assert row["message"] == "Access Denied."
    assert len(row["request_id"]) == 24
    assert (row["dag_id"], row["run_id"], row["map_index"]) == (
        "s3_retention_cleanup__weekly_digests",
        "run-1",
        0,
    )
    assert row["num_attempts"] == 1
    assert world.balance() == (1000, 999, 0, 0, 0, 1, 0)
    # After the fix the redrive deletes that one, and touches nothing that was written since.
    world.s3.allow(world.bucket, [denied])
    world.put(keys[0])
    assert world.redrive().num_by_outcome == {"deleted": 1}
    assert world.keys() == {keys[0]}
    assert world.balance() == (1000, 1000, 0, 0, 0, 0, 0)


def test_open_commands_of_an_older_version_are_kept(world: World) -> None:
    world.put(A)
    (batch,) = world.planned().batches
    changed = world.under(version="v2")
    assert changed.delete(batch).num_by_outcome == {"kept": 1}
    assert world.outcomes() == {A: "kept:policy_changed"}
    assert changed.report().is_balanced
    assert world.keys() == {A}
    # The next interval decides by the rules of today.
    assert changed.clean("run-2").num_by_outcome == {"deleted": 1}


def test_rules_that_changed_under_the_same_version_stop_the_batch(world: World) -> None:
    world.put(A)
    (batch,) = world.planned().batches
    edited = world.under(select={"include": ["exports/**"]})
    result = edited.delete(batch)
    assert (result.stopped_class, result.num_by_outcome) == ("policy_changed", {})
    assert world.sweep().num_batches == 0
    assert world.keys() == {A}
    assert world.balance() == (1, 0, 0, 0, 0, 0, 1)


def test_a_policy_that_went_back_to_simulate_deletes_nothing_more(world: World) -> None:
    world.put(A)
    (batch,) = world.planned().batches
    result = world.under(mode="simulate").delete(batch)
    assert result.stopped_class == "simulate"
    assert world.keys() == {A}
    with pytest.raises(BatchStoppedError, match="mode simulate, which deletes nothing"):
        world.report()
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}


def test_a_worker_whose_batch_was_taken_over_settles_nothing(world: World, ledger: Ledger) -> None:
    world.put(A, B)
    (batch,) = world.planned().batches

    class Stalled(AroundGateway):
        """Its worker stalls between the delete and the settle, and another one does it all meanwhile."""

        def delete_chunk(self, targets: Sequence[ObjectFacts], **how: Any) -> list[Outcome]:
            outcomes = self.real.delete_chunk(targets, **how)
            with closing(connect(ledger.writer_conninfo)) as own:
                other = replace(world, conn=own)
                assert other.delete(batch, try_number=2).num_by_outcome == {"already_absent": 2}
            return outcomes

    stalled: Any = Stalled(world.gateway)
    with pytest.raises(ClaimLostError):
        world.through(stalled).delete(batch)
    assert world.outcomes() == {A: "already_absent", B: "already_absent"}
    assert {row["fence"] for row in world.rows("SELECT fence FROM s3_retention.ledger_entries")} == {2}
    assert world.balance() == (2, 0, 2, 0, 0, 0, 0)


def test_a_new_try_touches_nothing_that_is_settled_already(world: World) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [B])
    (batch,) = world.planned().batches
    assert world.delete(batch).num_by_outcome == {"deleted": 1}
    # Uploaded again with the same content, so the ETag of the command would fit it.
    world.put(A)
    world.s3.allow(world.bucket, [B])
    assert world.delete(batch, try_number=2).num_by_outcome == {"deleted": 1}
    assert world.keys() == {A}
    assert world.balance() == (2, 2, 0, 0, 0, 0, 0)


def test_a_worker_whose_batch_another_one_has_just_claimed_settles_nothing(
    world: World, ledger: Ledger
) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [B])
    (batch,) = world.planned().batches

    class Overtaken(AroundGateway):
        """Its worker is overtaken after the delete by one that has not done anything yet."""

        def delete_chunk(self, targets: Sequence[ObjectFacts], **how: Any) -> list[Outcome]:
            outcomes = self.real.delete_chunk(targets, **how)
            with closing(connect(ledger.writer_conninfo)) as own:
                who = holder(map_index=0, try_number=2)
                assert batches.claim(own, batch.batch_id, holder=who, lease=timedelta(minutes=1))
            return outcomes

    overtaken: Any = Overtaken(world.gateway)
    with pytest.raises(ClaimLostError):
        world.through(overtaken).delete(batch)
    # Neither what ended nor what failed is written: the batch is another's now.
    assert world.outcomes() == {}
    assert world.value("SELECT count(*) FROM s3_retention.failures") == 0
    assert world.delete(batch, try_number=3).num_by_outcome == {"already_absent": 1}
    world.sweep()
    assert world.balance() == (2, 0, 1, 0, 0, 1, 0)


@pytest.mark.parametrize("moment", ["stop", "close"])
def test_a_worker_that_is_overtaken_at_its_end_neither_stops_nor_closes_the_batch(
    world: World, moment: str
) -> None:
    world.put(A)
    (batch,) = world.planned().batches
    lease = timedelta(minutes=1)
    old, new = (
        batches.claim(world.conn, batch.batch_id, holder=holder(try_number=number), lease=lease)
        for number in (1, 2)
    )
    assert old is not None
    assert new is not None
    if moment == "stop":
        with pytest.raises(ClaimLostError):
            batches.stop(world.conn, old, stopped_class="config", stopped_message="m")
    else:
        world.root.execute("UPDATE s3_retention.chunks SET closed_at = now()")
        assert not batches.close(world.conn, old.batch_id, fence=old.fence)
        batches.release(world.conn, old)
    state = world.rows(
        "SELECT closed_at, stopped_class, claimed_until IS NULL AS free FROM s3_retention.batches"
    )
    assert state == [{"closed_at": None, "stopped_class": None, "free": False}]


def test_a_batch_of_many_chunks_is_settled_chunk_by_chunk(world: World) -> None:
    keys = [f"exports/2020-01/{number:02d}.json" for number in range(25)]
    world = world.under(batch={"size": 25, "parallel": 4})
    world.put(*keys)
    world.claim()
    (batch,) = world.plan().batches
    world.cut_chunks(5)
    assert world.delete(batch).num_by_outcome == {"deleted": 25}
    assert world.keys() == set()
    assert world.value("SELECT count(*) FROM s3_retention.chunks WHERE closed_at IS NOT NULL") == 5


def test_what_fails_for_a_while_is_tried_again_in_the_task(world: World) -> None:
    world.put(A, B)
    real = world.gateway.client.delete_objects

    answers = iter([deleted(errors=[(A, "SlowDown"), (B, "InternalError")])])

    def first_slow(**arguments: Any) -> Any:
        return next(answers, None) or real(**arguments)

    report = world.through(faulty_gateway(world.gateway, delete_objects=first_slow)).clean()
    assert report.num_by_outcome == {"deleted": 2}
    rows = world.rows("SELECT num_attempts FROM s3_retention.ledger_entries")
    assert [row["num_attempts"] for row in rows] == [2, 2]


def test_what_fails_to_the_end_is_retryable_and_its_last_cause_is_kept(world: World) -> None:
    world.put(A, B)
    slow = faulty_gateway(
        world.gateway, delete_objects=lambda **_: deleted(errors=[(A, "SlowDown"), (B, "Odd")])
    )
    (batch,) = world.planned().batches
    # `Odd` is nobody's code: unknown, so a look decides, and the object is still there.
    result = world.through(slow).delete(batch)
    assert (result.num_failed, result.num_retryable, result.stopped_class) == (2, 2, None)
    rows = world.rows("SELECT failure_class, code, num_attempts FROM s3_retention.failures ORDER BY code")
    assert rows == [
        {"failure_class": "unknown", "code": "Odd", "num_attempts": 5},
        {"failure_class": "throttled", "code": "SlowDown", "num_attempts": 5},
    ]
    assert world.sweep().num_by_class == {"throttled": 1, "unknown": 1}
    assert world.report().num_by_outcome == {"quarantined": 2}
    assert world.keys() == {A, B}
    assert world.value("SELECT count(*) FROM s3_retention.failures") == 0


def test_one_key_that_spoils_every_request_is_quarantined_alone(world: World) -> None:
    world.put(A, B, C)
    real = world.gateway.client.delete_objects

    def spoiled(**arguments: Any) -> Any:
        if any(one["Key"] == B for one in arguments["Delete"]["Objects"]):
            raise refusal("MalformedXML")
        return real(**arguments)

    report = world.through(faulty_gateway(world.gateway, delete_objects=spoiled)).clean()
    assert report.num_by_outcome == {"deleted": 2, "quarantined": 1}
    assert world.waiting() == {B: "malformed"}
    assert world.keys() == {B}


def test_a_failure_is_recorded_where_nothing_of_the_batch_ended(world: World) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    (batch,) = world.planned().batches
    assert world.delete(batch).num_failed == 1
    assert world.delete(batch, try_number=2).num_failed == 1
    assert world.value("SELECT num_attempts FROM s3_retention.failures") == 2


def test_sizes_of_any_magnitude_are_settled_together(world: World) -> None:
    world.put(A, B, C)
    (batch,) = world.planned().batches
    world.root.execute("UPDATE s3_retention.chunks SET sizes = '{0,1,5497558138880}'")
    assert world.delete(batch).num_by_outcome == {"deleted": 3}
    assert world.value("SELECT sum(size)::text FROM s3_retention.ledger_entries") == "5497558138881"


# Found by review ------------------------------------------------------------------------------------------
def test_a_late_worker_cannot_take_a_batch_that_is_dealt_to_another_run(world: World) -> None:
    world.put(A, "exports/2020-01/stays.txt")
    (batch,) = world.planned("run-1").batches
    world.expire_leases()
    (again,) = world.planned("run-2").batches
    with pytest.raises(ClaimLostError):
        world.delete(batch, "run-1")
    assert world.delete(again, "run-2").num_by_outcome == {"deleted": 1}


def test_an_older_try_cannot_take_a_batch_after_a_newer_one(world: World) -> None:
    world.put(A, "exports/2020-01/stays.txt")
    (batch,) = world.planned().batches
    blind = faulty_gateway(world.gateway, delete_objects=one_after_another(refusal("SlowDown", 503)))
    assert world.through(blind).delete(batch, try_number=2).may_pass
    with pytest.raises(ClaimLostError):
        world.delete(batch, try_number=1)
    assert world.delete(batch, try_number=2).num_by_outcome == {"deleted": 1}


def test_what_other_threads_deleted_is_settled_before_a_broken_one_is_raised(world: World) -> None:
    world = world.under(batch={"size": 4, "parallel": 2})
    world.put(*(f"exports/2020-01/{number}.json" for number in range(4)), "exports/2020-01/stays.txt")
    world.planned()
    world.root.execute(
        "UPDATE s3_retention.chunks SET keys = keys[1:2], version_ids = version_ids[1:2], etags = etags[1:2], "
        "sizes = sizes[1:2], last_modified_ats = last_modified_ats[1:2], due_ats = due_ats[1:2], "
        "group_keys = group_keys[1:2], num_commands = 2"
    )
    world.root.execute(
        "INSERT INTO s3_retention.chunks (batch_id, interval_id, generation, chunk_number, bucket, keys, "
        "version_ids, etags, sizes, last_modified_ats, due_ats, group_keys, num_commands) "
        "SELECT batch_id, interval_id, generation, 2, bucket, ARRAY['exports/2020-01/x.json'], ARRAY[NULL::text], "
        "etags[1:1], sizes[1:1], last_modified_ats[1:1], due_ats[1:1], group_keys[1:1], 1 FROM s3_retention.chunks"
    )

    def breaks(**arguments: Any) -> Any:
        if asked(arguments) == ["exports/2020-01/x.json"]:
            raise LookupError("a fault of ours")
        return world.gateway.client.delete_objects(**arguments)

    (batch,) = batches.list_of_run(world.conn, holder=Holder(CLEANUP, "run-1", "delete"))
    with pytest.raises(LookupError):
        world.through(faulty_gateway(world.gateway, delete_objects=breaks)).delete(batch)
    assert set(world.outcomes().values()) == {"deleted"}
    assert len(world.outcomes()) == 2


def test_credentials_that_are_expired_after_their_refresh_stop_the_batch_and_another_try_may_get_on(
    world: World,
) -> None:
    world.put("exports/2020-01/a.json")
    (batch,) = world.planned().batches
    expired = RuntimeError("Credentials were refreshed, but the refreshed credentials are still expired.")
    there = world.through(faulty_gateway(world.gateway, delete_objects=one_after_another(expired)))
    result = there.delete(batch)
    assert (result.stopped_class, result.may_pass) == ("auth", True)
    world.sweep()
    assert world.waiting() == {}
    assert world.delete(batch, try_number=2).num_by_outcome == {"deleted": 1}


def test_a_store_that_does_not_answer_looks_is_not_asked_for_every_group(world: World) -> None:
    world = world.under(keep=KEEP_LATEST)
    world.put(*(f"exports/2020-0{month}/{group}.json" for month in (1, 2) for group in "abcdefgh"))
    (batch,) = world.planned().batches
    looks: list[Any] = []

    def silent(**arguments: Any) -> Any:
        looks.append(arguments)
        raise refusal("503", 503)

    result = world.through(faulty_gateway(world.gateway, head_object=silent)).delete(batch)
    assert len(looks) == NO_WAIT.max_attempts
    assert (result.stopped_class, result.may_pass) == ("throttled", True)
    assert world.delete(batch, try_number=2).num_by_outcome == {"deleted": 8}


def test_a_policy_with_keep_rules_is_stopped_by_a_revoked_key_like_any_other(world: World) -> None:
    world = world.under(keep=KEEP_LATEST)
    world.put("exports/2020-01/a.json", "exports/2020-02/a.json")
    (batch,) = world.planned().batches
    revoked = {
        "head_object": one_after_another(refusal("403", 403)),
        "list_objects_v2": one_after_another(refusal("InvalidAccessKeyId", 403)),
    }
    result = world.through(faulty_gateway(world.gateway, **revoked)).delete(batch)
    assert (result.stopped_class, result.may_pass) == ("auth", False)
    assert world.sweep().num_by_class == {}


def test_a_batch_whose_policy_or_store_cannot_be_used_is_stopped_and_nothing_is_quarantined(
    world: World,
) -> None:
    world.put(A, "exports/2020-01/stays.txt")
    (batch,) = world.planned().batches
    delete.stop(
        world.conn,
        batch.batch_id,
        Holder(CLEANUP, "run-1", "delete", 0),
        lease=timedelta(0),
        stopped_class="config",
        stopped_message="the Airflow connection was not found",
    )
    assert world.sweep(failed=[0]).num_by_class == {}
    with pytest.raises(BatchStoppedError, match="1 commands stay pending for the next run"):
        world.report()
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_worker_that_waits_for_a_slow_store_renews_its_lease_or_notices_that_it_lost_its_claim(
    world: World, monkeypatch: pytest.MonkeyPatch, is_lost: bool
) -> None:
    monkeypatch.setattr(delete, "HEARTBEATS_PER_LEASE", 60_000)  # one each hundredth of a second
    world.put(A)
    (batch,) = world.planned().batches
    has_tried = threading.Event()
    real = batches.renew

    def renew(*arguments: Any, **more: Any) -> None:
        try:
            real(*arguments, **more)
        finally:
            has_tried.set()

    def slow(**arguments: Any) -> Any:
        if is_lost:
            world.root.execute("UPDATE s3_retention.batches SET fence = fence + 1")
        has_tried.clear()
        assert has_tried.wait(10)
        return world.gateway.client.delete_objects(**arguments)

    monkeypatch.setattr(batches, "renew", renew)
    slowly = world.through(faulty_gateway(world.gateway, delete_objects=slow))
    if is_lost:
        with pytest.raises(ClaimLostError):
            slowly.delete(batch)
        assert world.outcomes() == {}
    else:
        assert slowly.delete(batch).num_by_outcome == {"deleted": 1}
