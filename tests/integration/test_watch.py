"""The watch: expired claims, runs that are over, and findings. It opens no store and deletes nothing."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from s3_retention.errors import ClaimLostError, LedgerError
from s3_retention.steps import flag_missed, quarantine
from s3_retention.store import batches, findings, intervals, late_runs, ledger_entries
from s3_retention.store.connection import connect, transaction
from tests.factories import CLEANUP, REDRIVE, World, a_policy, holder
from tests.fakes import faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from s3_retention.store.batches import DealtBatch
    from sandbox.ledger import Ledger

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")
NOW = datetime(2026, 6, 10, 12, tzinfo=timezone.utc)
LEASE = timedelta(minutes=10)
LATER = "clock_timestamp() + interval '25 minutes'"


def one_batch(world: World, *keys: str) -> DealtBatch:
    world.put(*keys)
    (batch,) = world.planned().batches
    return batch


def vanish(world: World, batch: DealtBatch, run: str = "run-1", dag: str = CLEANUP) -> batches.ClaimedBatch:
    """A worker that claims its batch and is heard of no more."""
    who = holder(run=run, map_index=batch.map_index)
    if dag != CLEANUP:
        who = type(who)(dag, run, "delete", batch.map_index)
    claimed = batches.claim(world.conn, batch.batch_id, holder=who, lease=LEASE)
    assert claimed is not None
    return claimed


def pass_by(world: World) -> None:
    """Passes of the watch from 3:00 to 5:30, as a scheduler that lives makes them."""
    world.root.execute(
        "INSERT INTO s3_retention.watch_passes (run_id, did, passed_at) SELECT 'w', '{}', passed_at FROM "
        "generate_series('2026-06-10T03:00Z'::timestamptz, '2026-06-10T05:30Z', '5 minutes') AS passed_at"
    )


def leases(world: World) -> list[bool]:
    """Whether the newest interval, and then each batch, has a lease."""
    rows = world.rows(
        "SELECT claimed_until FROM s3_retention.intervals UNION ALL "
        "SELECT claimed_until FROM s3_retention.batches"
    )
    return [row["claimed_until"] is not None for row in rows]


# Claims ---------------------------------------------------------------------------------------------------
def test_a_live_claim_is_never_touched(world: World) -> None:
    vanish(world, one_batch(world, A))
    before = world.rows("SELECT claimed_until, fence FROM s3_retention.batches")
    result = world.watch()
    assert (result.released_intervals, result.released_batches, result.num_swept_batches) == ([], [], 0)
    assert world.rows("SELECT claimed_until, fence FROM s3_retention.batches") == before
    assert leases(world) == [True, True]


def test_expired_claims_are_released_and_recorded_and_not_yet_swept(world: World) -> None:
    batch = one_batch(world, A)
    vanish(world, batch)
    world.set_clock("clock_timestamp() + interval '11 minutes'")
    result = world.watch()
    assert result.released_intervals == [world.interval_id()]
    assert result.released_batches == [batch.batch_id]
    assert result.num_swept_batches == 0
    assert leases(world) == [False, False]
    did = world.value("SELECT did FROM s3_retention.watch_passes")
    assert did["released_batches"] == [batch.batch_id]
    assert world.watch().released_batches == []


def test_an_interval_whose_batch_is_held_keeps_its_lease(world: World) -> None:
    vanish(world, one_batch(world, A))
    world.root.execute("UPDATE s3_retention.intervals SET claimed_until = '2000-01-01'")
    assert world.watch().released_intervals == []


def test_a_slow_worker_whose_lease_was_released_may_still_settle(world: World) -> None:
    claimed = vanish(world, one_batch(world, A))
    world.set_clock("clock_timestamp() + interval '11 minutes'")
    world.watch()
    assert ledger_entries.settle(world.conn, claimed, [], chunk_id=None, lease=LEASE) == 0
    assert world.watch().num_swept_batches == 0


# Runs that are over ---------------------------------------------------------------------------------------
def test_a_run_that_died_is_swept_to_quarantine_as_worker_lost(world: World) -> None:
    batch = one_batch(world, A, B)
    claimed = vanish(world, batch)
    world.set_clock(LATER)
    result = world.watch()
    assert (result.num_swept_batches, result.num_swept) == (1, {"worker_lost": 2})
    assert world.waiting() == {A: "worker_lost", B: "worker_lost"}
    (row, _) = world.rows("SELECT dag_id, run_id, map_index FROM s3_retention.quarantine")
    assert row == {"dag_id": CLEANUP, "run_id": "run-1", "map_index": 0}
    rescuer = world.value("SELECT task_id FROM s3_retention.claims ORDER BY claim_id DESC LIMIT 1")
    assert rescuer == "s3_retention_watch.watch_policies"
    with pytest.raises(ClaimLostError):
        ledger_entries.settle(world.conn, claimed, [], chunk_id=None, lease=LEASE)
    assert world.keys() == {A, B}
    assert world.balance() == (2, 0, 0, 0, 0, 2, 0)
    # The next run closes the interval, and the dead one may still be cleared.
    assert world.delete(batch, try_number=2).was_closed
    assert world.report().num_by_outcome == {"quarantined": 2}


def test_a_batch_that_nobody_claimed_stays_pending_for_the_next_run(world: World) -> None:
    one_batch(world, A)
    world.set_clock(LATER)
    assert world.watch().num_swept_batches == 0
    assert world.waiting() == {}
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}


def test_a_stopped_batch_is_left_to_the_next_run_and_found(world: World) -> None:
    batch = one_batch(world, A)
    gateway = faulty_gateway(world.gateway, delete_objects=one_after_another(refusal("ExpiredToken", 400)))
    assert world.through(gateway).delete(batch).stopped_class == "auth"
    world.set_clock(LATER)
    assert world.watch().num_swept_batches == 0
    found = world.open_findings()[("batches_stopped", "auth")]
    assert (found["num_batches"], found["num_commands"]) == (1, 1)
    world.clean("run-2")
    world.watch()
    assert ("batches_stopped", "auth") not in world.open_findings()


def test_a_run_of_which_one_batch_lives_is_not_over(world: World) -> None:
    world = world.under(batch={"size": 1})
    world.put(A, B)
    first, second = world.planned().batches
    vanish(world, first)
    world.set_clock(LATER)
    vanish(world, second)
    assert world.watch().num_swept_batches == 0
    world.set_clock("clock_timestamp() + interval '60 minutes'")
    assert world.watch().num_swept_batches == 2


def test_a_try_that_gave_its_lease_back_has_the_lease_of_the_policy_to_be_tried_again(world: World) -> None:
    world.s3.deny(world.bucket, [A])
    world.delete(one_batch(world, A, B))
    assert world.watch().num_swept_batches == 0
    world.set_clock("clock_timestamp() + interval '9 minutes'")
    assert world.watch().num_swept_batches == 0
    world.set_clock("clock_timestamp() + interval '11 minutes'")
    assert world.watch().num_swept == {"permission": 1}


def test_a_worker_that_is_heard_of_after_all_is_not_taken_from(world: World) -> None:
    claimed = vanish(world, one_batch(world, A))
    world.set_clock(LATER)
    (abandoned,) = batches.list_abandoned(world.conn, policy=world.policy.name, rescue_after=LEASE)
    ledger_entries.settle(world.conn, claimed, [], chunk_id=None, lease=LEASE)
    assert batches.take_abandoned(world.conn, abandoned, holder=holder()) is None
    world.expire_leases()
    batches.claim(world.conn, abandoned.batch_id, holder=holder(try_number=2), lease=timedelta(0))
    assert batches.take_abandoned(world.conn, abandoned, holder=holder()) is None


def test_a_run_whose_interval_another_run_has_just_taken_is_left_to_that_run(world: World) -> None:
    vanish(world, one_batch(world, A))
    world.set_clock(LATER)
    world.claim("run-2")
    assert world.watch().num_swept_batches == 0


@pytest.mark.parametrize("claimed", [False, True])
def test_a_redrive_that_is_lost_entirely_gives_its_rows_back(world: World, claimed: bool) -> None:
    world.s3.deny(world.bucket, [A])
    world.put(A)
    world.clean()
    (batch,) = world.select().batches
    if claimed:
        vanish(world, batch, "redrive-1", REDRIVE)
    assert world.watch().num_swept_batches == 0
    assert world.select("redrive-2").num_selected == 0
    world.set_clock(LATER)
    assert world.watch().num_swept == {"worker_lost": 1}
    assert world.waiting() == {A: "permission"}
    # The lost run balances, should it ever report.
    assert world.report_redrive().num_by_outcome == {"quarantined": 1}
    world.s3.allow(world.bucket, [A])
    assert world.redrive("redrive-2").num_by_outcome == {"deleted": 1}


def test_one_policy_that_cannot_be_watched_does_not_stand_in_the_way_of_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    vanish(world, one_batch(world, A))
    world.set_clock(LATER)
    real = quarantine.run_lost

    def fail_first(conn: object, *, policy: str, **arguments: object) -> object:
        if policy == "a_bad_one":
            raise LedgerError("refused")
        return real(conn, policy=policy, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(quarantine, "run_lost", fail_first)
    result = world.watch(a_policy(name="a_bad_one"), world.policy)
    assert result.errors == ["a_bad_one: refused"]
    assert result.num_swept == {"worker_lost": 1}
    assert world.value("SELECT did -> 'errors' ->> 0 FROM s3_retention.watch_passes") == "a_bad_one: refused"


# Missed ticks of every policy -----------------------------------------------------------------------------
def test_a_policy_whose_file_is_gone_is_watched_by_what_the_ledger_knows(world: World) -> None:
    scheduled = world.under(schedule="0 * * * *")
    world.set_clock("'2026-06-10T03:30:00Z'::timestamptz")
    scheduled.watch()
    world.set_clock("'2026-06-10T05:30:00Z'::timestamptz")
    pass_by(world)
    result = world.watch(a_policy(name="another"))
    assert result.num_flagged == {"no_policy_file": 2}
    assert world.missed() == [(4, "no_policy_file", False), (5, "no_policy_file", False)]
    found = world.open_findings()[("missed_intervals", "")]
    assert (found["num_missed"], found["causes"]) == (2, ["no_policy_file"])


def test_a_paused_dag_is_flagged_and_found_once_and_heals_when_a_run_has_covered_it(world: World) -> None:
    scheduled = world.under(schedule="0 * * * *")
    paused = flag_missed.Hints(is_paused=lambda: True)
    world.set_clock("'2026-06-10T03:30:00Z'::timestamptz")
    scheduled.watch(hints=paused)
    world.set_clock("'2026-06-10T05:30:00Z'::timestamptz")
    pass_by(world)
    for _ in range(2):
        scheduled.watch(hints=paused)
    assert world.missed() == [(4, "paused", False), (5, "paused", False)]
    opened = world.rows("SELECT * FROM s3_retention.findings WHERE kind = 'missed_intervals'")
    assert [(row["closed_at"], row["detail"]["num_missed"]) for row in opened] == [(None, 2)]
    scheduled.clean()
    scheduled.watch()
    assert [resolved for *_, resolved in world.missed()] == [True, True]
    assert world.open_findings() == {}


def test_ticks_that_cannot_be_told_are_a_finding(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduled = world.under(schedule="0 * * * *")
    scheduled.watch()
    world.set_clock("clock_timestamp() + interval '3 hours'")
    monkeypatch.setattr("tests.factories.hourly", lambda *_: None)
    scheduled.watch()
    assert ("ticks_unknown", "") in world.open_findings()
    monkeypatch.undo()
    scheduled.watch()
    assert ("ticks_unknown", "") not in world.open_findings()


# Findings -------------------------------------------------------------------------------------------------
def test_a_finding_is_opened_once_freshened_and_closed_when_it_heals_and_opened_anew(world: World) -> None:
    world.s3.deny(world.bucket, [A, B])
    world.put(A)
    world.clean()
    assert world.watch().num_opened == 1
    assert world.open_findings()[("quarantine_open", "permission")]["num_commands"] == 1
    world.put(B)
    world.clean("run-2")
    result = world.watch()
    assert (result.num_opened, result.num_closed) == (1, 0)  # the straggler B
    assert world.open_findings()[("quarantine_open", "permission")]["num_commands"] == 2
    world.s3.allow(world.bucket, [A, B])
    world.redrive()
    world.clean("run-3")
    assert world.watch().num_closed == 2
    assert world.open_findings() == {}
    world.s3.deny(world.bucket, [C])
    world.put(C)
    world.clean("run-4")
    world.watch()
    assert world.value("SELECT count(*) FROM s3_retention.findings WHERE kind = 'quarantine_open'") == 2


def test_stragglers_of_the_last_interval_are_found_until_an_interval_has_none(world: World) -> None:
    world.clean()
    world.put(A)
    world.clean("run-2")
    world.watch()
    assert world.open_findings()[("stragglers", "")]["num_stragglers"] == 1
    world.clean("run-3")
    world.watch()
    assert world.open_findings() == {}


def test_an_interval_whose_scan_nobody_holds_is_found_until_a_run_takes_it(world: World) -> None:
    world.claim()
    world.watch()
    assert world.open_findings() == {}
    world.set_clock("clock_timestamp() + interval '11 minutes'")
    world.watch()
    assert world.open_findings()[("interval_stuck", "")]["claimed_by"] == f"{CLEANUP}/run-1"
    world.claim("run-2")
    world.watch()
    assert world.open_findings() == {}


def test_a_watermark_that_stands_still_is_found_after_two_periods(world: World) -> None:
    scheduled = world.under(schedule="0 3 * * *")
    scheduled.clean()
    for hours, found in ((47, False), (49, True)):
        world.set_clock(f"clock_timestamp() + interval '{hours} hours'")
        world.watch(scheduled.policy)
        assert (("watermark_age", "") in world.open_findings()) is found
    world.watch(scheduled.under(window={"max_age": "4d"}).policy)
    assert ("watermark_age", "") not in world.open_findings()


def test_what_waits_too_long_is_warned_of_at_four_fifths_of_its_limit_and_never_dropped(world: World) -> None:
    short = world.under(limits={"allow_expire_everything": True, "max_command_age": "10h"}, batch={"size": 1})
    world.s3.deny(world.bucket, [A])
    world.put(A, B)
    first, _ = short.planned().batches
    short.delete(first)
    short.sweep()
    for hours, is_found in ((7, False), (9, True), (11, True)):
        world.set_clock(f"clock_timestamp() + interval '{hours} hours'")
        short.watch()
        found = {subject for kind, subject in world.open_findings() if kind == "age_limit"}
        assert found == ({"commands", "quarantine"} if is_found else set())
    limits = {subject: one for (kind, subject), one in world.open_findings().items() if kind == "age_limit"}
    assert {subject: one["num_commands"] for subject, one in limits.items()} == {
        "commands": 1,
        "quarantine": 1,
    }
    assert all("over the limit of 10h; nothing is dropped" in one["message"] for one in limits.values())
    assert world.balance() == (2, 0, 0, 0, 0, 1, 1)
    world.under(limits={"max_command_age": None}).watch()
    assert "age_limit" not in {kind for kind, _ in world.open_findings()}


def test_commands_of_a_policy_whose_file_is_gone_are_found_until_it_is_back(world: World) -> None:
    one_batch(world, A, B)
    world.watch()
    assert world.open_findings() == {}
    world.watch(a_policy(name="another"))
    found = world.open_findings()[("no_policy_file", "")]
    assert (found["num_batches"], found["num_commands"]) == (1, 2)
    world.watch()
    assert world.open_findings() == {}


def test_a_late_run_is_found_once_and_until_it_has_reported(world: World) -> None:
    world.watch()
    flag: dict[str, Any] = {
        "policy": world.policy.name,
        "dag_id": CLEANUP,
        "due_at": NOW,
        "deadline_at": NOW,
        "state": "failed",
    }
    assert late_runs.insert(world.conn, run_id="run-1", **flag)
    assert not late_runs.insert(world.conn, run_id="run-1", **flag)
    assert late_runs.insert(world.conn, run_id="run-2", **flag)
    assert world.watch().num_opened == 2
    assert world.watch().num_opened == 0
    world.clean("run-1")
    world.watch()
    # The first has reported. The second died, and the first has covered its time.
    assert world.open_findings() == {}


def test_a_late_run_that_has_reported_before_any_pass_is_told_all_the_same(world: World) -> None:
    world.clean("run-1")
    late_runs.insert(
        world.conn,
        policy=world.policy.name,
        dag_id=CLEANUP,
        run_id="run-1",
        due_at=NOW,
        deadline_at=NOW,
        state="running",
    )
    # As if it had been written while a pass was under way.
    world.root.execute("INSERT INTO s3_retention.watch_passes (run_id, did) VALUES ('w', '{}')")
    assert world.watch().num_opened == 1
    assert world.watch().num_closed == 1


def test_a_plan_that_is_being_stored_does_not_hold_up_the_watch(world: World, ledger: Ledger) -> None:
    world.claim()
    world.set_clock("clock_timestamp() + interval '11 minutes'")
    with closing(connect(ledger.writer_conninfo)) as own, transaction(own):
        intervals.renew(own, world.interval_id(), fence=1, lease=LEASE)
        world.conn.execute("SET lock_timeout = '1s'")
        assert world.watch().released_intervals == []
    assert world.watch().released_intervals == []


def test_findings_wait_for_their_notifier_while_they_are_open(world: World) -> None:
    world.claim()
    intervals.release(world.conn, world.interval_id(), holder=holder())
    world.watch()
    (row,) = findings.list_unnotified(world.conn)
    assert (row["kind"], row["policy"]) == ("interval_stuck", world.policy.name)
    findings.mark_notified(world.conn, row["finding_id"])
    world.watch()
    assert findings.list_unnotified(world.conn) == []


def test_a_second_open_finding_of_one_kind_and_subject_is_refused(world: World) -> None:
    insert = "INSERT INTO s3_retention.findings (policy, kind, detail) VALUES (%s, 'k', '{}')"
    for policy in ("p", None):
        world.root.execute(insert, [policy])
        with pytest.raises(psycopg.errors.UniqueViolation, match="findings_one_open"):
            world.root.execute(insert, [policy])


def test_the_watch_over_nothing_finds_nothing_and_leaves_its_heartbeat(world: World) -> None:
    result = world.watch()
    assert (result.num_opened, result.errors) == (0, [])
    assert world.value("SELECT count(*) FROM s3_retention.watch_passes") == 1
    assert world.value("SELECT count(*) FROM s3_retention.schedules") == 0
