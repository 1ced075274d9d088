"""Plans over a limit: nothing goes before an answer, nothing after a no, and after a yes what is still as planned."""

from __future__ import annotations

import json
import struct
import threading
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from s3_retention.core.lever import PlaceHold, Scope
from s3_retention.errors import ClaimLostError, LedgerUnavailableError, NotApprovedError, ReplayRefusedError
from s3_retention.steps import approve, hold
from s3_retention.store import batches, ledger_entries
from s3_retention.store.connection import connect
from tests.factories import ODD_KEYS, facts, holder, source_of

if TYPE_CHECKING:
    from sandbox.ledger import Ledger
    from tests.factories import World

KEYS = tuple(f"exports/2020-01/{number}.json" for number in range(7))
FUTURE = "exports/2999-01/later.json"
LIMITS: dict[str, Any] = {"allow_expire_everything": True, "max_objects": 3}
EPOCH = datetime(2000, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def limited(world: World) -> World:
    """A policy that may delete three objects unasked, and seven that are due."""
    world.put(*KEYS, FUTURE)
    return world.under(limits=LIMITS, batch={"size": 2})


def deal_and_delete(world: World, run: str = "run-1") -> Any:
    """What the tasks behind an answer do."""
    for batch in world.deal(run):
        world.delete(batch, run)
    world.sweep(run)
    return world.report(run)


def approvals(world: World) -> list[dict[str, Any]]:
    return world.rows("SELECT * FROM s3_retention.approvals ORDER BY interval_id")


def test_a_plan_over_a_limit_is_stored_whole_and_nothing_of_it_is_dealt(limited: World) -> None:
    planned = limited.planned()
    assert planned.is_waiting
    assert planned.batches == ()
    assert planned.num_discovered == len(KEYS)
    (asked,) = approvals(limited)
    assert asked["over_limits"] == [{"limit": "max_objects", "value": 7, "bound": 3}]
    assert (asked["decision"], asked["run_id"]) == (None, "run-1")
    assert asked["plan_hash"] == limited.value(
        "SELECT s3_retention.plan_hash(%(id)s, 0)", id=limited.interval_id()
    )
    assert limited.keys() == {*KEYS, FUTURE}
    # It waits without a lease.
    assert limited.value("SELECT claimed_until FROM s3_retention.intervals") is None


def test_a_small_plan_passes_without_asking(world: World) -> None:
    world.put(*KEYS[:3], FUTURE)
    limited = world.under(limits=LIMITS)
    assert limited.clean().num_by_outcome == {"deleted": 3}
    assert approvals(limited) == []


@pytest.mark.parametrize(
    ("limits", "is_waiting"),
    [
        ({"max_bytes": 7}, False),
        ({"max_bytes": 6}, True),
        ({"max_share": 0.9}, False),
        ({"max_share": 0.8}, True),
    ],
)
def test_bytes_and_the_share_of_a_complete_scan_are_limits_too(
    limited: World, limits: dict[str, Any], is_waiting: bool
) -> None:
    world = limited.under(limits={"allow_expire_everything": True, **limits})
    assert world.planned().is_waiting is is_waiting


@pytest.mark.parametrize("task", ["deal_batches", "plan_commands", "another run"])
def test_before_an_answer_nothing_is_dealt_whatever_airflow_shows(limited: World, task: str) -> None:
    limited.planned()
    if task == "deal_batches":
        with pytest.raises(NotApprovedError, match="clear approve_plan"):
            limited.deal()
    elif task == "plan_commands":
        assert limited.plan().is_waiting
    else:
        assert limited.planned("run-2").is_waiting
    assert len(approvals(limited)) == 1
    assert limited.keys() == {*KEYS, FUTURE}
    assert limited.value("SELECT count(*) FROM s3_retention.batches WHERE dealt_at IS NOT NULL") == 0


def test_the_ledger_itself_deals_nothing_of_a_plan_that_waits(limited: World) -> None:
    limited.planned()
    interval_id = limited.interval_id()
    dealt = batches.deal(
        limited.conn,
        interval_id=interval_id,
        generation=0,
        holder=holder("deal_batches"),
        max_batches=100,
        max_commands=1_000,
    )
    assert dealt == []


def test_after_approval_the_plan_is_deleted_and_the_ledger_names_who_and_when(limited: World) -> None:
    limited.planned()
    limited.answer("approved", by="ann")
    report = deal_and_delete(limited)
    assert report.num_by_outcome == {"deleted": 7}
    assert limited.keys() == {FUTURE}
    (asked,) = approvals(limited)
    assert (asked["decision"], asked["decided_by"], asked["decided_in_run"]) == ("approved", "ann", "run-1")
    assert asked["decided_at"] >= asked["asked_at"]
    assert limited.value("SELECT state FROM s3_retention.intervals") == "completed"


def test_after_approval_nothing_goes_that_changed_vanished_was_held_or_created_meanwhile(
    limited: World,
) -> None:
    limited.planned()
    limited.put(KEYS[0], body=b"another")
    limited.admin.delete_object(Bucket=limited.bucket, Key=KEYS[1])
    limited.put("exports/2020-01/new.json")
    held = PlaceHold(limited.bucket, Scope.KEY, KEYS[2], "a court order", None)
    hold.run(limited.conn, held, holder("pull_lever"), acted_by="ann")
    limited.answer("approved")
    report = deal_and_delete(limited)
    assert report.num_by_outcome == {"deleted": 4, "changed": 1, "already_absent": 1, "kept": 1}
    assert limited.outcomes()[KEYS[2]] == "kept:held"
    assert limited.keys() == {KEYS[0], KEYS[2], "exports/2020-01/new.json", FUTURE}


@pytest.mark.parametrize("decision", ["rejected", "timed_out"])
def test_after_a_no_nothing_is_deleted_and_the_interval_is_closed_in_balance(
    limited: World, decision: str
) -> None:
    limited.planned()
    limited.answer(decision, by="ann" if decision == "rejected" else None)
    report = deal_and_delete(limited)
    assert report.num_by_outcome == {"kept": 7}
    assert report.num_by_detail == {"kept:rejected": 7}
    assert report.is_balanced
    assert limited.keys() == {*KEYS, FUTURE}
    assert limited.outcomes() == dict.fromkeys(KEYS, "kept:rejected")
    assert limited.balance() == (7, 0, 0, 0, 7, 0, 0)
    assert limited.value("SELECT state FROM s3_retention.intervals") == "completed"
    assert limited.value("SELECT completed_through = position FROM s3_retention.watermarks")


def test_what_was_rejected_is_a_straggler_of_the_next_interval_which_asks_anew(limited: World) -> None:
    limited.planned()
    limited.answer("rejected")
    deal_and_delete(limited)
    again = limited.planned("run-2")
    assert (again.num_discovered, again.num_stragglers, again.is_waiting) == (7, 7, True)
    assert [one["decision"] for one in approvals(limited)] == ["rejected", None]
    limited.answer("approved", "run-2")
    assert deal_and_delete(limited, "run-2").num_by_outcome == {"deleted": 7}


def test_the_first_answer_stands(limited: World) -> None:
    limited.planned()
    assert limited.answer("rejected", by="ann").decision == "rejected"
    again = limited.answer("approved", by="bob")
    assert (again.decision, again.decided_by) == ("rejected", "ann")
    assert limited.deal() == ()


def test_the_next_run_takes_a_waiting_interval_over_and_asks_about_the_same_plan(limited: World) -> None:
    limited.planned()
    plan_hash = approvals(limited)[0]["plan_hash"]
    # The first run is lost with its scheduler.
    assert limited.planned("run-2").is_waiting
    assert approve.find_question(limited.conn, limited.policy, holder("deal_batches")) is not None
    (asked,) = approvals(limited)
    assert (asked["plan_hash"], asked["run_id"]) == (plan_hash, "run-1")
    limited.answer("approved", "run-2")
    assert deal_and_delete(limited, "run-2").num_by_outcome == {"deleted": 7}
    (asked,) = approvals(limited)
    assert asked["decided_in_run"] == "run-2"


def test_the_first_run_may_be_answered_after_the_second_has_asked_too(limited: World) -> None:
    limited.planned()
    limited.planned("run-2")
    limited.answer("approved", "run-1")
    dealt = limited.deal("run-1")
    # Its lease is alive now: the other run, answered as well, takes nothing of it.
    with pytest.raises(ClaimLostError):
        limited.deal("run-2")
    for batch in dealt:
        limited.delete(batch)
    assert limited.report().num_by_outcome == {"deleted": 7}
    assert limited.deal("run-2") == ()


def test_two_runs_that_are_answered_at_once_record_one_answer_and_delete_once(
    limited: World, ledger: Ledger
) -> None:
    limited.planned()
    limited.planned("run-2")
    results: list[Any] = []
    barrier = threading.Barrier(2)

    def answer(run: str, decision: str) -> None:
        with closing(connect(ledger.writer_conninfo)) as conn:
            world = replace(limited, conn=conn)
            barrier.wait()
            results.append(world.answer(decision, run))
            try:
                results.append(world.deal(run))
            except ClaimLostError:
                results.append(None)

    threads = [
        threading.Thread(target=answer, args=one) for one in (("run-1", "approved"), ("run-2", "rejected"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (asked,) = approvals(limited)
    dealt = limited.value("SELECT count(*) FROM s3_retention.ledger_entries")
    assert dealt == (7 if asked["decision"] == "rejected" else 0)
    assert limited.keys() == {*KEYS, FUTURE}


def test_killed_between_the_answer_and_the_deal_the_next_run_goes_on_by_the_answer(limited: World) -> None:
    limited.planned()
    limited.answer("approved")
    assert not limited.planned("run-2").is_waiting
    assert deal_and_delete(limited, "run-2").num_by_outcome == {"deleted": 7}


def test_killed_while_a_rejected_plan_is_closed_the_next_try_closes_the_rest_and_nothing_twice(
    limited: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited.planned()
    limited.answer("rejected")
    settle, calls = ledger_entries.settle_rejected, []

    def die_at_the_second(*given: Any, **named: Any) -> int:
        calls.append(given)
        done = settle(*given, **named)
        if len(calls) == 2:
            raise LedgerUnavailableError
        return done

    monkeypatch.setattr(ledger_entries, "settle_rejected", die_at_the_second)
    with pytest.raises(LedgerUnavailableError):
        limited.deal()
    assert len(limited.outcomes()) == 2  # what was not committed is rolled back
    # The run is lost. Another one closes the rest when it plans, and deletes nothing.
    limited.expire_leases()
    assert limited.planned("run-2").batches == ()
    limited.report("run-2")
    assert limited.outcomes() == dict.fromkeys(KEYS, "kept:rejected")
    assert limited.value("SELECT state FROM s3_retention.intervals") == "completed"
    assert limited.keys() == {*KEYS, FUTURE}


def test_tasks_that_are_cleared_after_a_no_change_nothing(limited: World) -> None:
    limited.planned()
    limited.answer("rejected")
    deal_and_delete(limited)
    before = limited.rows("SELECT * FROM s3_retention.ledger_entries ORDER BY command_id")
    assert limited.claim().status.value == "claimed"
    assert limited.plan().batches == ()
    assert limited.deal() == ()
    assert limited.report().num_by_outcome == {"kept": 7}
    assert limited.rows("SELECT * FROM s3_retention.ledger_entries ORDER BY command_id") == before


def test_tasks_that_are_cleared_after_a_yes_get_the_same_batches(limited: World) -> None:
    limited.planned()
    limited.answer("approved")
    dealt = limited.deal()
    assert limited.deal() == dealt
    assert limited.plan().batches == dealt


def test_an_approved_plan_that_takes_several_runs_is_asked_about_once(limited: World) -> None:
    world = limited.under(limits=LIMITS | {"max_commands_per_run": 2})
    world.planned()
    world.answer("approved")
    assert deal_and_delete(world).num_by_outcome == {"deleted": 2}
    planned = world.planned("run-2")
    assert not planned.is_waiting
    for batch in planned.batches:
        world.delete(batch, "run-2")
    assert world.report("run-2").num_by_outcome == {"deleted": 2}
    assert len(approvals(world)) == 1


def test_a_limit_that_was_lowered_holds_from_the_next_plan_on(limited: World) -> None:
    free = limited.under(limits={"allow_expire_everything": True, "max_commands_per_run": 2})
    for batch in free.planned().batches:
        free.delete(batch)
    free.report()
    # A worker may have had any of it: nobody could say that what is left was kept.
    lowered = limited.under(limits=LIMITS | {"max_objects": 0})
    assert not lowered.planned("run-2").is_waiting
    assert lowered.clean("run-2").num_by_outcome == {"deleted": 5}
    lowered.put(KEYS[0])
    assert lowered.planned("run-3").is_waiting


def test_a_limit_that_was_raised_answers_no_question(limited: World) -> None:
    limited.planned()
    free = limited.under(limits={"allow_expire_everything": True})
    assert free.planned("run-2").is_waiting
    free.answer("rejected", "run-2")
    assert deal_and_delete(free, "run-2").num_by_outcome == {"kept": 7}


def test_the_watch_finds_a_plan_that_waits_and_does_not_take_it_for_stuck(limited: World) -> None:
    limited.planned()
    limited.watch()
    found = limited.open_findings()
    assert ("plan_waits", "") in found
    assert "7 objects" in found["plan_waits", ""]["message"]
    assert not {"interval_stuck", "plan_rejected"} & {kind for kind, _ in found}
    limited.answer("approved")
    limited.watch()
    assert ("plan_waits", "") not in limited.open_findings()


def test_a_rejected_plan_is_a_finding_until_a_later_one_is_approved_or_small(limited: World) -> None:
    limited.planned()
    limited.answer("rejected", by="ann")
    deal_and_delete(limited)
    limited.watch()
    assert "rejected by ann" in limited.open_findings()["plan_rejected", ""]["message"]
    limited.planned("run-2")
    limited.watch()
    assert {kind for kind, _ in limited.open_findings()} >= {"plan_rejected", "plan_waits"}
    limited.answer("approved", "run-2")
    limited.watch()
    assert ("plan_rejected", "") not in limited.open_findings()


def test_a_replay_over_a_limit_is_refused_with_what_to_do(world: World) -> None:
    world.put(FUTURE)
    world.clean()
    world.put(*KEYS)
    limited = world.under(limits=LIMITS)
    with pytest.raises(
        ReplayRefusedError, match=r"7 objects, over limits\.max_objects = 3: nothing was planned"
    ):
        limited.replan()
    assert world.value("SELECT count(*) FROM s3_retention.batches") == 0
    world.expire_leases()
    assert world.replay(run="replay-2").num_by_outcome == {"deleted": 7}


# The row itself -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "statement",
    [
        (
            "UPDATE s3_retention.approvals SET decision = 'approved', decided_at = s3_retention.clock(), "
            "decided_in_run = 'x', decided_by = 'eve'"
        ),
        (
            "UPDATE s3_retention.approvals SET decision = NULL, decided_at = NULL, decided_in_run = NULL, "
            "decided_by = NULL"
        ),
        "DELETE FROM s3_retention.approvals",
        "TRUNCATE s3_retention.approvals",
    ],
)
def test_not_even_the_owner_of_the_schema_changes_an_answer(limited: World, statement: str) -> None:
    limited.planned()
    limited.answer("rejected")
    with pytest.raises(psycopg.errors.RestrictViolation):
        limited.root.execute(statement.encode())


# The hash -------------------------------------------------------------------------------------------------
def json_of(values: Any) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def times_of(values: list[datetime]) -> bytes:
    head = struct.pack(">iiIii", 1, 0, 1184, len(values), 1)
    return head + b"".join(struct.pack(">iq", 8, (at - EPOCH) // timedelta(microseconds=1)) for at in values)


def hash_of(chunk: dict[str, Any]) -> bytes:
    """As docs/state_machine.md defines it, byte by byte."""
    names = ("keys", "version_ids", "etags", "sizes")
    text = json_of([chunk["bucket"]]) + b"".join(json_of(chunk[name]) for name in names)
    return sha256(text + times_of(chunk["last_modified_ats"]) + times_of(chunk["due_ats"])).digest()


def test_the_hash_of_a_plan_is_what_its_definition_says_whatever_the_keys_and_the_session(
    world: World,
) -> None:
    world.claim()
    odd = [
        facts(key, bucket=world.bucket, version_id=None if place % 2 else f"v{place}")
        for place, key in enumerate(ODD_KEYS)
    ]
    assert world.plan(source=source_of(*odd)).num_discovered == len(ODD_KEYS)
    world.cut_chunks(7)
    chunks = world.rows("SELECT * FROM s3_retention.chunks ORDER BY chunk_number")
    assert len(chunks) > 3
    made = sha256(b"".join(hash_of(chunk) for chunk in chunks)).digest()
    world.root.execute("SET client_encoding = 'UTF8'; SET TIME ZONE 'Asia/Tokyo'")
    interval_id = world.interval_id()
    assert world.value("SELECT s3_retention.plan_hash(%(id)s, 0)", id=interval_id) == made


def test_a_plan_without_commands_has_a_hash_too(world: World) -> None:
    assert world.value("SELECT s3_retention.plan_hash(0, 0)") == sha256(b"").digest()


# The canary -----------------------------------------------------------------------------------------------
def canary(world: World, num_commands: int, **more: Any) -> World:
    limits = {"allow_expire_everything": True, "canary": num_commands, **more}
    return world.under(limits=limits, batch={"size": 3})


def clean(world: World, run: str) -> Any:
    return dict(world.clean(run).num_by_outcome)


def test_the_first_run_of_a_version_deletes_the_canary_alone_and_the_next_the_rest(world: World) -> None:
    world.put(*KEYS)
    wary = canary(world, 2)
    assert clean(wary, "run-1") == {"deleted": 2}
    assert len(wary.keys()) == 5
    assert wary.value("SELECT state FROM s3_retention.intervals") == "planned"
    assert clean(wary, "run-2") == {"deleted": 5}
    wary.put(*KEYS)
    assert clean(wary, "run-3") == {"deleted": 7}
    assert wary.under(version="v2").planned("run-4").batches == ()
    wary.report("run-4")
    wary.put(*KEYS)
    assert clean(wary.under(version="v2"), "run-5") == {"deleted": 2}


@pytest.mark.parametrize("num_commands", [1, 3, 7, 1_000])
def test_a_canary_of_any_size_loses_and_doubles_no_command(world: World, num_commands: int) -> None:
    world.put(*KEYS)
    wary = canary(world, num_commands)
    first = clean(wary, "run-1")["deleted"]
    assert first <= num_commands
    assert first == min(num_commands, 3)  # a chunk is no larger than a batch
    if first < 7:
        assert clean(wary, "run-2") == {"deleted": 7 - first}
    assert wary.balance() == (7, 7, 0, 0, 0, 0, 0)
    assert wary.value("SELECT sum(num_bytes) FROM s3_retention.batches") == 7


def test_a_canary_that_no_worker_had_goes_alone_again(world: World) -> None:
    world.put(*KEYS)
    wary = canary(world, 2)
    wary.planned()
    wary.expire_leases()  # the run is lost before its first delete
    assert clean(wary, "run-2") == {"deleted": 2}


def test_after_a_rejected_plan_the_canary_of_the_version_is_still_to_come(world: World) -> None:
    world.put(*KEYS, FUTURE)
    wary = canary(world, 2, max_objects=3)
    wary.planned()
    wary.answer("rejected")
    deal_and_delete(wary)
    assert len(wary.outcomes()) == 7
    wary.planned("run-2")
    wary.answer("approved", "run-2")
    assert deal_and_delete(wary, "run-2").num_by_outcome == {"deleted": 2}
