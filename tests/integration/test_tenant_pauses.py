"""A paused tenant: its objects wait, are counted, and go when it goes on; nobody else waits for it."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from s3_retention.core.holder import Holder
from s3_retention.core.lever import PauseTenant, ResumeTenant, StopDeletes
from s3_retention.core.tenant_counts import TenantCounts
from s3_retention.errors import PlanRefusedError
from s3_retention.s3.limits import RetryLimits
from s3_retention.steps import hold, report, simulate
from s3_retention.steps.levers import LOOK_SECONDS
from s3_retention.store import histories, tenant_pauses
from tests import factories
from tests.factories import NAME, REDRIVE, World, holder, source_of
from tests.fakes import asked, faulty_gateway

if TYPE_CHECKING:
    from s3_retention.core.lever import Lever
    from s3_retention.steps.hold import HoldResult

SELECT = {"regex": r"(?s)exports/(?P<month>\d{4}-\d{2})/(?:(?P<customer>[^/]*)/)?(?P<name>[^/]+)\.json"}
BY_TENANT: dict[str, Any] = {"select": SELECT, "tenant": {"group": "customer"}}


def key_of(tenant: str, name: str = "x") -> str:
    return f"exports/2020-01/{tenant}/{name}.json"


A, B, C = (key_of(tenant) for tenant in "abc")


@pytest.fixture
def shared(world: World) -> World:
    """A policy that reads the tenant from the key."""
    return world.under(**BY_TENANT)


def do(world: World, lever: Lever, run: str, *, by: str | None = "ann") -> HoldResult:
    return hold.run(world.conn, lever, Holder("s3_retention_hold", run, "pull_lever"), acted_by=by)


def pause(world: World, tenant: str = "a", policy: str | None = None, run: str = "pause-1") -> int:
    done = do(world, PauseTenant(policy, tenant, "they move out"), run)
    assert done.acted_id is not None
    return done.acted_id


def resume(world: World, tenant: str = "a", policy: str | None = None, run: str = "resume-1") -> HoldResult:
    return do(world, ResumeTenant(policy, tenant, "they have moved"), run, by="bob")


def seen(world: World, *keys: str) -> Any:
    """A source that shows these objects of the bucket."""
    return source_of(*(factories.facts(key, bucket=world.bucket) for key in keys))


def pause_from_outside(world: World, tenant: str) -> None:
    """Do it in another session, as a person at a prompt does."""
    world.root.execute(
        "INSERT INTO s3_retention.tenant_pauses (tenant, reason) VALUES (%s, 'by hand')", [tenant]
    )


# At the plan ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("policy", [None, NAME])
def test_what_is_due_of_a_paused_tenant_waits_and_goes_when_the_pause_is_lifted(
    shared: World, policy: str | None
) -> None:
    shared.put(A, key_of("a", "y"), B, C)
    pause(shared, policy=policy)
    planned = shared.planned()
    assert (planned.num_discovered, planned.num_kept_by_reason) == (2, {"tenant_paused": 2})
    for batch in planned.batches:
        shared.delete(batch)
    assert shared.report().is_balanced
    assert shared.keys() == {A, key_of("a", "y")}
    resume(shared, policy=policy)
    planned = shared.planned("run-2")
    assert (planned.num_discovered, planned.num_stragglers) == (2, 2)
    for batch in planned.batches:
        shared.delete(batch, "run-2")
    shared.report("run-2")
    assert shared.keys() == set()


def test_only_the_tenant_that_is_named_waits_byte_for_byte(shared: World) -> None:
    tenants = ["a", "A", "ab", "a ", "é", "e\u0301", "%"]
    shared.put(*map(key_of, tenants))
    for number, tenant in enumerate(["a", "é", "_", "a%", "é "]):
        pause(shared, tenant, run=f"pause-{number}")
    assert shared.planned().num_kept_by_reason == {"tenant_paused": 2}
    (batch,) = shared.deal()
    shared.delete(batch)
    shared.report()
    assert shared.keys() == {key_of("a"), key_of("é")}


def test_a_pause_in_another_policy_and_one_that_was_lifted_stop_nothing(shared: World) -> None:
    shared.put(A, B)
    pause(shared, policy="another")
    pause(shared, "b")
    resume(shared, "b")
    assert shared.clean().num_by_outcome == {"deleted": 2}


def test_a_policy_that_tells_no_tenants_knows_no_pause(world: World) -> None:
    world.put(A)
    pause(world)
    assert world.clean().num_by_outcome == {"deleted": 1}


def test_what_is_kept_anyway_is_not_said_to_wait_for_the_pause(shared: World) -> None:
    shared = shared.under(keep={"latest": 1, "group_by": ["customer"]})
    for key in (A, key_of("a", "y"), key_of("a", "z"), B):
        shared.put(key)
    shared.s3.deny(shared.bucket, [A])
    shared.clean()
    shared.put(key_of("a", "w"))
    pause(shared)
    assert shared.planned("run-2").num_kept_by_reason == {
        "kept_latest": 2,
        "in_quarantine": 1,
        "tenant_paused": 1,
    }


def test_a_pause_does_not_hide_that_everything_would_go(shared: World) -> None:
    shared = shared.under(limits={})
    pause(shared)
    shared.claim()
    with pytest.raises(PlanRefusedError, match="would be deleted"):
        shared.plan(source=seen(shared, A, B))
    # Where nothing is due, nothing is refused.
    assert shared.plan(source=seen(shared, A)).num_kept_by_reason == {"tenant_paused": 1}


def test_a_cap_counts_nothing_of_a_paused_tenant(shared: World) -> None:
    shared = shared.under(limits={"max_commands_per_tenant": 1, "allow_expire_everything": True})
    pause(shared)
    shared.claim()
    planned = shared.plan(source=seen(shared, *(key_of(who, str(n)) for who in "ab" for n in range(3))))
    assert planned.num_kept_by_reason == {"tenant_paused": 3, "over_tenant_cap": 2}


def test_a_simulation_shows_what_waits_for_a_pause(shared: World) -> None:
    pause(shared)
    source = seen(shared, A, B)
    shown = simulate.run(shared.conn, source, shared.policy, holder("plan", "sim-1"))[1]
    assert {one.reason: one.num_objects for one in shown.reasons} == {"tenant_paused": 1, "due": 1}


# At the delete --------------------------------------------------------------------------------------------
def test_a_pause_after_the_plan_keeps_its_objects_alone_and_is_no_failure(shared: World) -> None:
    shared.put(A, key_of("a", "y"), B, C)
    (batch,) = shared.planned().batches
    pause(shared)
    result = shared.delete(batch)
    assert (result.num_by_outcome, result.num_failed) == ({"kept": 2, "deleted": 2}, 0)
    done = shared.report()
    assert done.is_balanced
    assert done.num_by_detail == {"kept:tenant_paused": 2}
    assert shared.outcomes()[A] == "kept:tenant_paused"
    assert shared.waiting() == {}
    assert shared.planned("run-2").num_kept_by_reason["tenant_paused"] == 2
    shared.report("run-2")
    resume(shared)
    assert shared.clean("run-3").num_by_outcome == {"deleted": 2}


@pytest.mark.parametrize(("age", "b"), [(0.0, "deleted"), (LOOK_SECONDS, "kept:tenant_paused")])
def test_a_pause_while_the_batch_runs_reaches_what_is_loaded_once_the_last_look_is_old(
    shared: World, age: float, b: str
) -> None:
    shared.put(A, B, C)
    shared = shared.under(batch={"parallel": 1})
    (batch,) = shared.planned().batches
    clock = [0.0]

    def delete_objects(**arguments: Any) -> Any:
        if asked(arguments) == [A]:
            # B is at hand by the time that A is back.
            pause_from_outside(shared, "b")
            pause_from_outside(shared, "c")
            clock[0] += age
        return shared.gateway.client.delete_objects(**arguments)

    faulty = shared.through(faulty_gateway(shared.gateway, delete_objects=delete_objects))
    faulty.delete(batch, limits=RetryLimits(clock=lambda: clock[0]))
    assert shared.outcomes() == {A: "deleted", B: b, C: "kept:tenant_paused"}


@pytest.mark.parametrize(("age", "b"), [(0.0, "kept:tenant_paused"), (LOOK_SECONDS, "deleted")])
def test_a_pause_that_is_lifted_while_the_batch_runs_lets_go_once_the_last_look_is_old(
    shared: World, monkeypatch: pytest.MonkeyPatch, age: float, b: str
) -> None:
    shared.put(A, B, C)
    shared = shared.under(batch={"parallel": 1})
    (batch,) = shared.planned().batches
    for number, tenant in enumerate("bc"):
        pause(shared, tenant, run=f"pause-{number}")
    clock, is_loaded = [0.0], Event()
    find_paused = tenant_pauses.find_paused

    def find(*args: Any, **kwargs: Any) -> frozenset[str]:
        found = find_paused(*args, **kwargs)
        if found == {"b"}:
            is_loaded.set()
        return found

    def delete_objects(**arguments: Any) -> Any:
        if asked(arguments) == [A]:
            assert is_loaded.wait(60)
            shared.root.execute(
                "UPDATE s3_retention.tenant_pauses SET lifted_by = 'bob', lifted_at = now(), lift_reason = 'over'"
            )
            clock[0] += age
        return shared.gateway.client.delete_objects(**arguments)

    monkeypatch.setattr(tenant_pauses, "find_paused", find)
    faulty = shared.through(faulty_gateway(shared.gateway, delete_objects=delete_objects))
    faulty.delete(batch, limits=RetryLimits(clock=lambda: clock[0]))
    assert shared.outcomes() == {A: "deleted", B: b, C: "deleted"}


def test_a_kill_switch_stops_a_batch_that_a_pause_would_let_go_on(shared: World) -> None:
    shared.put(A, B)
    (batch,) = shared.planned().batches
    pause(shared)
    do(shared, StopDeletes(None, "look first"), "stop-1")
    assert shared.delete(batch).stopped_class == "kill_switch"
    assert shared.keys() == {A, B}


def test_a_redrive_leaves_what_is_of_a_paused_tenant(shared: World) -> None:
    shared.put(A, B)
    shared.s3.deny(shared.bucket, [A, B])
    shared.clean()
    shared.s3.allow(shared.bucket, [A, B])
    (batch,) = shared.select().batches
    pause(shared)
    shared.delete(batch, "redrive-1", dag=REDRIVE)
    shared.sweep("redrive-1", dag=REDRIVE)
    assert shared.report_redrive().num_by_outcome == {"kept": 1, "deleted": 1}
    assert shared.outcomes() == {A: "kept:tenant_paused", B: "deleted"}
    resume(shared)
    # Its row is closed, as that of a held object: it is due again.
    assert shared.clean("run-2").num_by_outcome == {"deleted": 1}


def test_a_replay_leaves_what_is_of_a_paused_tenant(shared: World) -> None:
    shared.put(A)
    shared.clean()
    shared.put(key_of("a", "y"), key_of("b", "y"))
    pause(shared)
    assert shared.replan().num_kept_by_reason == {"tenant_paused": 1}
    (batch,) = shared.rows("SELECT batch_id, map_index FROM s3_retention.batches WHERE generation = 1")
    assert batch["map_index"] is not None
    assert shared.replay(run="replay-1").num_by_outcome == {"deleted": 1}
    assert shared.keys() == {key_of("a", "y")}


# The row --------------------------------------------------------------------------------------------------
def test_a_run_pauses_once_however_often_it_is_cleared_and_a_second_run_is_told(shared: World) -> None:
    assert pause(shared) == pause(shared)
    again = do(shared, PauseTenant(None, "a", "me too"), "pause-2", by="eve")
    assert (again.acted_id, again.said) == (
        None,
        "tenant 'a' of every policy had been paused before, by ann",
    )
    assert shared.rows(
        "SELECT policy, tenant, reason, paused_by, run_id FROM s3_retention.tenant_pauses"
    ) == [{"policy": None, "tenant": "a", "reason": "they move out", "paused_by": "ann", "run_id": "pause-1"}]


def test_a_pause_is_lifted_as_it_was_placed_and_once(shared: World) -> None:
    shared.put(A)
    pause(shared)
    pause(shared, policy=NAME, run="pause-2")
    said = f"tenant 'a' of policy {NAME} goes on: what waited is due again in the next interval"
    assert resume(shared, policy=NAME).said == said
    # The one of all policies stands.
    assert shared.planned().num_kept_by_reason == {"tenant_paused": 1}
    assert resume(shared, "b", run="resume-2").acted_id is None
    assert resume(shared, run="resume-3").acted_id is not None
    again = resume(shared, run="resume-3")
    assert (again.acted_id, again.said) == (
        None,
        "tenant 'a' of every policy was not paused, or goes on already",
    )
    lifted = shared.rows("SELECT DISTINCT lifted_by, lift_reason FROM s3_retention.tenant_pauses")
    assert lifted == [{"lifted_by": "bob", "lift_reason": "they have moved"}]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE s3_retention.tenant_pauses SET reason = 'another'",
        "UPDATE s3_retention.tenant_pauses SET lifted_at = now(), lifted_by = 'x', lift_reason = 'y', policy = 'z'",
        "DELETE FROM s3_retention.tenant_pauses",
        "TRUNCATE s3_retention.tenant_pauses",
    ],
)
def test_not_even_the_owner_can_rewrite_a_pause(shared: World, statement: str) -> None:
    pause(shared)
    with pytest.raises(psycopg.errors.RestrictViolation):
        shared.root.execute(statement.encode())


def test_who_is_paused_is_a_finding_until_the_last_one_goes_on(shared: World) -> None:
    pause(shared)
    pause(shared, "b", run="pause-2")
    shared.watch()
    (found,) = [detail for (kind, _), detail in shared.open_findings().items() if kind == "tenants_paused"]
    assert found["message"].startswith("every policy deletes nothing of 2 tenants, the longest paused for ")
    assert found["message"].endswith(": 'a' by ann (they move out), 'b' by ann (they move out)")
    assert [(one["tenant"], one["paused_by"]) for one in found["tenants"]] == [("a", "ann"), ("b", "ann")]
    resume(shared)
    shared.watch()
    assert "every policy deletes nothing of 1 tenant," in str(shared.open_findings())
    resume(shared, "b", run="resume-2")
    shared.watch()
    assert not [kind for kind, _ in shared.open_findings() if kind == "tenants_paused"]


def test_a_finding_names_no_more_tenants_than_a_person_reads(shared: World) -> None:
    for number in range(23):
        pause(shared, f"t{number:02}", NAME, f"pause-{number}")
    shared.watch()
    (found,) = [detail for (kind, _), detail in shared.open_findings().items() if kind == "tenants_paused"]
    assert found["message"].startswith(f"policy {NAME} deletes nothing of 23 tenants")
    assert found["message"].endswith("'t19' by ann (they move out), and 3 more")
    assert len(found["tenants"]) == 20


# What is told ---------------------------------------------------------------------------------------------
def test_a_report_names_paused_tenants_first_and_how_much_of_each_waits(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MAX_TENANTS", 2)
    shared = shared.under(limits={"max_commands_per_tenant": 2, "allow_expire_everything": True})
    sizes = {"a": 3, "b": 5, "c": 1, "d": 1}
    shared.put(*(key_of(who, str(n)) for who, num in sizes.items() for n in range(num)))
    pause(shared)
    (batch,) = shared.planned().batches
    pause(shared, "c", run="pause-2")
    shared.delete(batch)
    shared.sweep()
    done = shared.report()
    assert done.tenants == (
        TenantCounts("a", num_paused=3),
        TenantCounts("c", num_paused=1),
        TenantCounts(None, num_tenants=2, num_deleted=3, num_over_cap=3),
    )
    said = str(done).splitlines()
    at = said.index("  tenant 'a': 3 waiting while paused")
    assert said[at + 2] == "  2 other tenants: 3 deleted, 3 waiting over the cap"


def test_a_run_with_nothing_to_delete_tells_what_waits(shared: World) -> None:
    shared.put(A)
    pause(shared)
    assert shared.clean().tenants == (TenantCounts("a", num_paused=1),)
    resume(shared)
    assert shared.clean("run-2").tenants == (TenantCounts("a", num_deleted=1),)


def test_a_replay_tells_what_waits_of_its_own_plan(shared: World) -> None:
    shared.put(A)
    pause(shared, "b")
    shared.clean()
    shared.put(key_of("a", "y"), key_of("b", "y"))
    assert shared.replay().tenants == (TenantCounts("b", num_paused=1), TenantCounts("a", num_deleted=1))
    stored = shared.rows("SELECT generation, tenant, num_paused, num_over_cap FROM s3_retention.tenant_waits")
    assert [tuple(row.values()) for row in stored] == [(1, "b", 1, 0)]


def test_a_policy_that_tells_no_tenants_reports_none(world: World) -> None:
    world.put(A)
    assert world.clean().tenants == ()


def test_a_pause_is_an_act_of_who_placed_it_and_of_who_lifted_it(shared: World) -> None:
    pause(shared)
    pause(shared, "b", NAME, "pause-2")
    resume(shared)
    assert shared.rows("SELECT act, subject, acted_by, reason FROM s3_retention.acts ORDER BY acted_at") == [
        {
            "act": "paused a tenant",
            "subject": "a of every policy",
            "acted_by": "ann",
            "reason": "they move out",
        },
        {"act": "paused a tenant", "subject": f"b of {NAME}", "acted_by": "ann", "reason": "they move out"},
        {
            "act": "resumed a tenant",
            "subject": "a of every policy",
            "acted_by": "bob",
            "reason": "they have moved",
        },
    ]


def test_the_status_of_a_policy_names_who_is_paused_since_when_and_by_whom(shared: World) -> None:
    shared.put(A)
    shared.clean()
    (row,) = histories.list_status(shared.conn)
    assert row["paused_tenants"] is None
    pause(shared, policy="another")
    shared.set_clock("timestamptz '2026-12-01 10:20Z'")
    for number in range(7):
        pause(shared, f"t{number}", None if number else NAME, f"pause-{number + 2}")
    (row,) = histories.list_status(shared.conn)
    said = row["paused_tenants"].split(", ")
    assert said[0] == "t0 since 2026-12-01 10:20 by ann (they move out)"
    assert [one[:2] for one in said] == ["t0", "t1", "t2", "t3", "t4", "an"]
    assert said[-1] == "and 2 more"


def test_the_history_of_a_key_shows_the_pauses_of_its_tenant(shared: World) -> None:
    shared.put(A, B)
    (batch,) = shared.planned().batches
    pause(shared)
    pause(shared, "b", run="pause-2")
    pause(shared, policy="another", run="pause-3")
    shared.delete(batch)
    resume(shared)
    told = [
        (row["event"], row["detail"], row["acted_by"])
        for row in histories.list_history(shared.conn, bucket=shared.bucket, key=A)
    ]
    assert [event for event, _, _ in told] == ["planned", "tenant paused", "kept", "tenant resumed"]
    assert told[1][1:] == ("tenant a, they move out", "ann")
    assert told[3][1:] == ("tenant a, they have moved", "bob")
