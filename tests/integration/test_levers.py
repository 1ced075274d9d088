"""What a person does to the deletes: legal holds keep their objects, and the kill switch stops everything."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from s3_retention.core.holder import Holder
from s3_retention.core.lever import LiftHold, PlaceHold, ResumeDeletes, Scope, StopDeletes
from s3_retention.core.objects import ObjectRef
from s3_retention.errors import BatchStoppedError, LeverError
from s3_retention.s3.limits import RetryLimits
from s3_retention.steps import delete, hold
from s3_retention.steps.levers import LOOK_SECONDS
from s3_retention.store import legal_holds
from tests.factories import CLEANUP, NAME, ODD_KEYS, REDRIVE, Pages, facts
from tests.fakes import asked, deleted, faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from s3_retention.core.lever import Lever
    from s3_retention.steps.hold import HoldResult
    from tests.factories import World

HOLD = "s3_retention_hold"
A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")


def do(world: World, lever: Lever, run: str = "act-1", *, by: str | None = "ann") -> HoldResult:
    return hold.run(world.conn, lever, Holder(HOLD, run, "pull_lever"), acted_by=by)


def place(
    world: World, scope: Scope, name: str = "", run: str = "act-1", *, ends_at: datetime | None = None
) -> int:
    done = do(world, PlaceHold(world.bucket, scope, name, "a court order", ends_at), run)
    assert done.acted_id is not None
    return done.acted_id


def stop(world: World, policy: str | None = None, run: str = "stop-1") -> None:
    assert do(world, StopDeletes(policy, "look first"), run).acted_id is not None


# Legal holds ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("scope", "name", "kept"),
    [
        (Scope.KEY, A, {A}),
        (Scope.KEY, "exports/2020-01/a", set()),
        (Scope.PREFIX, "exports/2020-01/a", {A}),
        (Scope.PREFIX, "exports/2020-01/", {A, B, C}),
        (Scope.PREFIX, "exports/2020-01/%", set()),
        (Scope.BUCKET, "", {A, B, C}),
    ],
)
def test_what_is_held_gets_no_command_and_is_planned_when_the_hold_is_lifted(
    world: World, scope: Scope, name: str, kept: set[str]
) -> None:
    world.put(A, B, C)
    hold_id = place(world, scope, name)
    planned = world.planned()
    assert planned.num_discovered == 3 - len(kept)
    assert planned.num_kept_by_reason.get("held", 0) == len(kept)
    for batch in planned.batches:
        world.delete(batch)
    world.report()
    assert world.keys() == kept
    do(world, LiftHold(hold_id, "settled"), "act-2")
    world.clean("run-2")
    assert world.keys() == set()


def test_a_hold_that_is_placed_after_the_plan_keeps_its_object_and_is_no_failure(world: World) -> None:
    world.put(A, B)
    (batch,) = world.planned().batches
    place(world, Scope.KEY, A)
    result = world.delete(batch)
    assert (result.num_by_outcome, result.num_failed) == ({"kept": 1, "deleted": 1}, 0)
    assert world.report().is_balanced
    assert world.outcomes() == {A: "kept:held", B: "deleted"}
    assert world.waiting() == {}
    assert world.planned("run-2").num_kept_by_reason["held"] == 1


@pytest.mark.parametrize(("age", "b"), [(0.0, "deleted"), (LOOK_SECONDS, "kept:held")])
def test_a_hold_that_is_placed_while_the_batch_runs_reaches_what_is_loaded_once_the_last_look_is_old(
    world: World, age: float, b: str
) -> None:
    world.put(A, B, C)
    world = world.under(batch={"parallel": 1})
    (batch,) = world.planned().batches
    world.cut_chunks(1)
    clock = [0.0]

    def delete_objects(**arguments: Any) -> Any:
        if asked(arguments) == [A]:
            # B is at hand by the time that A is back.
            for key in (B, C):
                outside(
                    world,
                    "INSERT INTO s3_retention.legal_holds (bucket, scope, name, reason) "
                    "VALUES (%s, 'key', %s, 'now')",
                    world.bucket,
                    key,
                )
            clock[0] += age
        return world.gateway.client.delete_objects(**arguments)

    faulty = world.through(faulty_gateway(world.gateway, delete_objects=delete_objects))
    faulty.delete(batch, limits=RetryLimits(clock=lambda: clock[0]))
    assert world.outcomes() == {A: "deleted", B: b, C: "kept:held"}


def test_a_redrive_leaves_what_is_held(world: World) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [A, B])
    world.clean()
    world.s3.allow(world.bucket, [A, B])
    place(world, Scope.KEY, A)
    assert world.redrive().num_by_outcome == {"kept": 1, "deleted": 1}
    assert world.keys() == {A}
    assert world.outcomes() == {A: "kept:held", B: "deleted"}


def test_a_replay_leaves_what_is_held(world: World) -> None:
    world.put(A)
    world.clean()
    world.put(B)
    place(world, Scope.PREFIX, "exports/")
    assert world.replan().num_kept_by_reason == {"held": 1}
    assert world.keys() == {B}


def test_odd_keys_are_held_byte_for_byte(world: World) -> None:
    world.put(*ODD_KEYS)
    for number, key in enumerate(ODD_KEYS[::2]):
        place(world, Scope.KEY, key, f"act-{number}")
    world.clean()
    assert world.keys() == set(ODD_KEYS[::2])


def test_a_hold_ends_by_the_clock_of_the_ledger(world: World) -> None:
    world.put(A)
    place(world, Scope.KEY, A, ends_at=datetime.now(timezone.utc) + timedelta(days=1))
    assert world.planned().num_kept_by_reason == {"held": 1}
    world.report()
    world.set_clock("clock_timestamp() + interval '2 days'")
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}


def test_a_hold_that_begins_later_holds_from_then_on(world: World) -> None:
    world.put(A)
    outside(
        world,
        "INSERT INTO s3_retention.legal_holds (bucket, scope, name, reason, starts_at) "
        "VALUES (%s, 'key', %s, 'later', now() + interval '1 day')",
        world.bucket,
        A,
    )
    (batch,) = world.planned().batches
    world.set_clock("clock_timestamp() + interval '2 days'")
    assert world.delete(batch).num_by_outcome == {"kept": 1}


def test_prefixes_of_every_length_hold_what_begins_so_at_the_plan_and_at_the_delete(world: World) -> None:
    keys = [f"exports/2020-01/{name}.json" for name in ("a", "é", "éa", "e\u0301", "😀", "😀😀", "b")]
    prefixes = ["exports/2020-01/é", "exports/2020-01/😀😀", f"{keys[-1]}.bak", "exports/2020-02/", "a"]
    world.put(*keys)
    for number, prefix in enumerate(prefixes):
        place(world, Scope.PREFIX, prefix, f"act-{number}")
    held = {key for key in keys if key.startswith(tuple(prefixes))}
    assert 0 < len(held) < len(keys)
    planned = world.planned()
    assert planned.num_kept_by_reason == {"held": len(held)}
    for batch in planned.batches:
        world.delete(batch)
    world.report()
    assert world.keys() == held
    # The same keys, looked up as a delivery looks them up.
    places = legal_holds.find_held(world.conn, [ObjectRef(world.bucket, key) for key in keys])
    assert {keys[place] for place in places} == held


@pytest.mark.parametrize("scope", ["key", "prefix"])
def test_10_000_holds_cost_a_plan_of_100_000_objects_seconds_and_not_minutes(
    world: World, scope: str
) -> None:
    outside(
        world,
        "INSERT INTO s3_retention.legal_holds (bucket, scope, name, reason) SELECT %s, %s, "
        "format('exports/2020-01/%%s-000.json', lpad(number::text, 3, '0')), 'many' "
        "FROM generate_series(0, 9999) AS number",
        world.bucket,
        scope,
    )
    # Row by row, keys took 55 s, and prefixes longer.
    world.conn.execute("SET statement_timeout = '20s'")
    world.claim()
    pages = [
        [facts(f"exports/2020-01/{page:03d}-{at:03d}.json", bucket=world.bucket) for at in range(1000)]
        for page in range(100)
    ]
    planned = world.plan(source=Pages(pages))
    assert (planned.num_discovered, planned.num_kept_by_reason) == (99_900, {"held": 100})


def test_holds_of_another_bucket_hold_nothing_here(world: World) -> None:
    world.put(A)
    do(world, PlaceHold("another-bucket", Scope.BUCKET, "", "a court order", None))
    assert world.clean().num_by_outcome == {"deleted": 1}


def test_a_run_places_one_hold_however_often_it_is_cleared(world: World) -> None:
    assert place(world, Scope.KEY, A) == place(world, Scope.KEY, A)
    assert world.rows(
        "SELECT placed_by, reason, run_id FROM s3_retention.active_holds JOIN "
        "s3_retention.legal_holds USING (hold_id, placed_by, reason)"
    ) == [{"placed_by": "ann", "reason": "a court order", "run_id": "act-1"}]


def test_a_hold_is_lifted_once_and_stays_on_record(world: World) -> None:
    hold_id = place(world, Scope.KEY, A)
    assert do(world, LiftHold(hold_id, "settled"), "act-2", by="bob").acted_id == hold_id
    again = do(world, LiftHold(hold_id, "again"), "act-3", by="eve")
    assert (again.acted_id, again.said) == (None, f"hold {hold_id} had been lifted by bob before")
    assert world.rows("SELECT lifted_by, lift_reason FROM s3_retention.legal_holds") == [
        {"lifted_by": "bob", "lift_reason": "settled"}
    ]


def test_a_hold_that_is_not_there_or_would_be_over_is_refused(world: World) -> None:
    with pytest.raises(LeverError, match="hold_id = 41: there is no such hold"):
        do(world, LiftHold(41, "settled"))
    past = datetime(2020, 1, 1, tzinfo=timezone.utc)
    with pytest.raises(LeverError, match="ends_at = '2020-01-01T00:00:00\\+00:00' has passed"):
        place(world, Scope.KEY, A, ends_at=past)
    assert world.value("SELECT count(*) FROM s3_retention.legal_holds") == 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE s3_retention.legal_holds SET reason = 'another'",
        "UPDATE s3_retention.legal_holds SET lifted_at = now(), lifted_by = 'x', lift_reason = 'y', name = 'z'",
        "DELETE FROM s3_retention.legal_holds",
        "TRUNCATE s3_retention.legal_holds",
    ],
)
def test_not_even_the_owner_can_rewrite_a_hold(world: World, statement: str) -> None:
    place(world, Scope.KEY, A)
    with pytest.raises(psycopg.errors.RestrictViolation):
        outside(world, statement)


# The kill switch ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("policy", [None, NAME])
def test_a_batch_is_stopped_before_its_first_delete_and_resumed_when_the_switch_is_lifted(
    world: World, policy: str | None
) -> None:
    world.put(A, B)
    (batch,) = world.planned().batches
    stop(world, policy)
    result = world.delete(batch)
    assert (result.stopped_class, result.stopped_message) == ("kill_switch", "set by ann: look first")
    assert not result.may_pass
    world.sweep()
    with pytest.raises(BatchStoppedError, match="look first"):
        world.report()
    assert world.balance() == (2, 0, 0, 0, 0, 0, 2)
    assert world.keys() == {A, B}
    do(world, ResumeDeletes(policy, "looked"), "resume-1")
    assert world.clean("run-2").num_by_outcome == {"deleted": 2}


def test_a_switch_of_another_policy_stops_nothing_here(world: World) -> None:
    world.put(A)
    stop(world, "another")
    assert world.clean().num_by_outcome == {"deleted": 1}


def test_a_running_delete_of_100_000_objects_stops_within_one_request_a_thread(world: World) -> None:
    num, parallel, before = 100_000, 8, 20
    world = world.under(batch={"size": num, "parallel": parallel})
    world.claim()
    (batch,) = world.plan(
        source=Pages(
            [
                [
                    facts(f"exports/2020-01/{page:03d}-{at:03d}.json", bucket=world.bucket)
                    for at in range(1000)
                ]
                for page in range(num // 1000)
            ]
        )
    ).batches
    lock, is_set = threading.Lock(), threading.Event()
    num_sent = num_late = 0

    def delete_objects(**arguments: Any) -> Any:
        nonlocal num_sent, num_late
        with lock:
            num_late += is_set.is_set()
            num_sent += 1
            if num_sent == before:
                stop_from_outside(world)
                is_set.set()
        return deleted(*asked(arguments))

    around = world.through(faulty_gateway(world.gateway, delete_objects=delete_objects))
    result = around.delete(batch)
    assert result.stopped_class == "kill_switch"
    assert num_late <= parallel
    world.sweep()
    with pytest.raises(BatchStoppedError):
        world.report()
    counts = world.balance()
    assert counts[0] == num
    assert counts[1] == 1000 * num_sent
    assert counts[-1] == num - counts[1]
    do(world, ResumeDeletes(None, "looked"), "resume-1")
    assert around.clean("run-2").num_by_outcome == {"deleted": num}
    assert world.balance() == (num, num, 0, 0, 0, 0, 0)


def test_a_switch_ends_the_retries_of_what_is_at_the_store(world: World) -> None:
    world.put(A)
    (batch,) = world.planned().batches
    num_sent = 0

    def slow_down(**arguments: Any) -> Any:
        nonlocal num_sent
        num_sent += 1
        if num_sent == 1:
            stop_from_outside(world)
        return deleted(errors=[(asked(arguments)[0], "SlowDown")])

    world.know_store()
    gateway = faulty_gateway(world.gateway, delete_objects=slow_down)
    # Waits that only the end of the batch cuts short: the test would time out.
    limits = RetryLimits(max_attempts=5, first_wait=10_000.0, longest_wait=10_000.0, deadline=1e9)
    result = delete.run(
        world.conn,
        gateway,
        world.policy,
        batch.batch_id,
        Holder(CLEANUP, "run-1", "delete", 0, 1),
        limits=limits,
    )
    assert result.stopped_class == "kill_switch"
    assert num_sent == 1


def test_what_a_redrive_could_not_end_for_a_switch_waits_again(world: World) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    world.clean()
    world.s3.allow(world.bucket, [A])
    (batch,) = world.select().batches
    stop(world)
    world.delete(batch, "redrive-1", dag=REDRIVE)
    world.sweep("redrive-1", dag=REDRIVE)
    assert world.waiting() == {A: "permission"}
    assert world.keys() == {A}
    do(world, ResumeDeletes(None, "looked"), "resume-1")
    assert world.redrive("redrive-2").num_by_outcome == {"deleted": 1}


def test_a_switch_is_set_once_and_lifted_as_it_was_set(world: World) -> None:
    stop(world)
    assert do(world, StopDeletes(None, "me too"), "stop-2", by="bob").said == (
        "every policy had been stopped before, by ann"
    )
    # Cleared: the same act of the same run.
    assert do(world, StopDeletes(None, "look first"), "stop-1").acted_id is not None
    # One of all is not lifted by lifting that of one policy.
    assert do(world, ResumeDeletes(NAME, "looked"), "resume-1").acted_id is None
    assert do(world, ResumeDeletes(None, "looked"), "resume-2").acted_id is not None
    assert do(world, ResumeDeletes(None, "looked"), "resume-2").acted_id is None
    assert world.value("SELECT count(*) FROM s3_retention.kill_switches WHERE lifted_at IS NULL") == 0


def test_a_switch_that_is_set_is_a_finding_until_it_is_lifted(world: World) -> None:
    stop(world)
    world.watch()
    (found,) = [detail for (kind, _), detail in world.open_findings().items() if kind == "kill_switch"]
    assert found["message"].startswith("every policy deletes nothing: stopped ")
    assert found["message"].endswith("by ann (look first)")
    do(world, ResumeDeletes(None, "looked"), "resume-1")
    world.watch()
    assert not [kind for kind, _ in world.open_findings() if kind == "kill_switch"]


def test_a_denied_object_under_a_hold_is_kept_and_not_quarantined(world: World) -> None:
    world.put(A)
    (batch,) = world.planned().batches
    place(world, Scope.BUCKET)
    refuses = faulty_gateway(world.gateway, delete_objects=one_after_another(refusal("AccessDenied", 403)))
    assert world.through(refuses).delete(batch).num_by_outcome == {"kept": 1}


def outside(world: World, statement: str, *values: object) -> None:
    """Do it in another session, as a person at a prompt does."""
    world.root.execute(statement.encode(), values or None)


def stop_from_outside(world: World) -> None:
    outside(world, "INSERT INTO s3_retention.kill_switches (reason) VALUES ('by hand')")
