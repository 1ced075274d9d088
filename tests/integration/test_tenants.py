"""Tenants: read from the key, never mixed in a chunk, and served by turns."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.report import RunReport
from s3_retention.core.tenant_counts import TenantCounts
from s3_retention.errors import PlanRefusedError
from s3_retention.steps import decide, report, simulate
from tests.factories import KEEP_LATEST, UTC, World, facts, holder, source_of

if TYPE_CHECKING:
    from s3_retention.core.objects import ObjectFacts
    from s3_retention.steps.decide import PlanResult

SELECT = {"regex": r"(?s)exports/(?P<month>\d{4}-\d{2})/(?:(?P<customer>[^/]*)/)?(?P<name>[^/]+)\.json"}
BY_TENANT: dict[str, Any] = {"select": SELECT, "tenant": {"group": "customer"}}


@pytest.fixture
def shared(world: World) -> World:
    """A policy that reads the tenant from the key, over a listing that is given."""
    source = {"type": "s3_listing", "bucket": "t-fake", "prefix": "exports/", "aws_conn_id": "c"}
    return world.under(source=source, **BY_TENANT)


def objects_of(**num_by_tenant: int) -> list[ObjectFacts]:
    return [
        facts(f"exports/2020-01/{tenant}/{number:06}.json")
        for tenant, num in num_by_tenant.items()
        for number in range(num)
    ]


def plan_of(world: World, objects: list[ObjectFacts], run: str = "run-1", **more: Any) -> PlanResult:
    world.claim(run)
    return world.plan(run, source=source_of(*objects), **more)


def chunks_of(world: World) -> list[tuple[int, str | None, list[str]]]:
    """The number of the batch, the tenant and the keys of each chunk of the newest plan, in order."""
    rows = world.rows(
        "SELECT batch_number, tenant, keys FROM s3_retention.chunks JOIN s3_retention.batches USING (batch_id) "
        "WHERE chunks.interval_id = %(id)s ORDER BY chunk_number",
        id=world.interval_id(),
    )
    return [(row["batch_number"], row["tenant"], row["keys"]) for row in rows]


def plan_hash(world: World) -> bytes:
    found: bytes = world.value("SELECT s3_retention.plan_hash(%(id)s, 0)", id=world.interval_id())
    return found


def owner(key: str) -> str:
    return key.split("/")[2]


# The tenant of an object ----------------------------------------------------------------------------------
def test_an_object_whose_tenant_cannot_be_read_is_kept_and_counted(shared: World) -> None:
    objects = [*objects_of(a=2), facts("exports/2020-01/nobody.json"), facts("exports/2020-01//x.json")]
    planned = plan_of(shared, objects)
    assert (planned.num_discovered, planned.num_kept_by_reason) == (2, {"tenant_not_readable": 2})


def test_the_tenant_travels_from_the_key_to_ledger_and_quarantine(world: World) -> None:
    world = world.under(**BY_TENANT)
    world.put(*(f"exports/2020-01/{tenant}/{name}.json" for tenant in "ab" for name in "xy"))
    world.s3.deny(world.bucket, ["exports/2020-01/b/x.json"])
    report = world.clean()
    assert report.num_by_outcome == {"deleted": 3, "quarantined": 1}
    settled = world.rows("SELECT tenant, key FROM s3_retention.ledger_entries")
    assert {row["key"]: row["tenant"] for row in settled} == {
        f"exports/2020-01/{name}.json": name[0] for name in ("a/x", "a/y", "b/y")
    }
    assert world.rows("SELECT tenant FROM s3_retention.quarantine") == [{"tenant": "b"}]
    world.s3.allow(world.bucket, ["exports/2020-01/b/x.json"])
    assert world.redrive(tenant="a").num_discovered == 0
    assert world.redrive("redrive-2", tenant="b").num_by_outcome == {"deleted": 1}


def test_a_group_of_a_keep_rule_may_reach_over_tenants(shared: World) -> None:
    shared = shared.under(keep={"latest": 1, "group_by": ["name"]})
    planned = plan_of(
        shared, [facts(f"exports/2020-0{month}/{tenant}/x.json") for month in (1, 2) for tenant in "ab"]
    )
    assert planned.num_kept_by_reason == {"kept_latest": 1}
    keys = [key for _, _, keys in chunks_of(shared) for key in keys]
    assert sorted(keys) == [f"exports/2020-0{n}/{who}/x.json" for n, who in ((1, "a"), (1, "b"), (2, "a"))]


def test_a_report_tells_what_became_of_the_largest_tenants_and_of_all_others_together(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MAX_TENANTS", 2)
    world = world.under(**BY_TENANT)
    sizes = {"a": 1, "b": 3, "c": 2, "d": 1}
    world.put(*(f"exports/2020-01/{who}/{n}.json" for who, num in sizes.items() for n in range(num)))
    world.s3.deny(world.bucket, ["exports/2020-01/b/0.json", "exports/2020-01/d/0.json"])
    done = world.clean()
    assert done.tenants == (
        TenantCounts("b", num_deleted=2, num_quarantined=1),
        TenantCounts("c", num_deleted=2),
        TenantCounts(None, num_tenants=2, num_deleted=1, num_quarantined=1),
    )
    said = str(done).splitlines()
    at = said.index("  tenant 'b': 2 deleted, 1 quarantined")
    assert said[at + 1 : at + 3] == ["  tenant 'c': 2 deleted", "  2 other tenants: 1 deleted, 1 quarantined"]
    counts = world.value("SELECT counts FROM s3_retention.run_reports")
    assert str(RunReport.from_counts(done.policy, done.interval_key, counts)) == str(done).replace(
        f"  {done.capacity}\n", ""
    )


# The cap of each tenant -----------------------------------------------------------------------------------
def capped(world: World, cap: int, **limits: Any) -> World:
    allowed = {"max_commands_per_tenant": cap, "allow_expire_everything": True}
    return world.under(**BY_TENANT, limits=allowed | limits)


def planned_by_tenant(world: World) -> dict[str | None, int]:
    rows = world.rows(
        "SELECT tenant, count(*) AS num FROM s3_retention.commands WHERE interval_id = %(id)s GROUP BY tenant",
        id=world.interval_id(),
    )
    return {row["tenant"]: row["num"] for row in rows}


@pytest.mark.parametrize("cap", [1, 3, 4, 9])
def test_a_cap_holds_exactly_and_what_is_over_it_is_kept(shared: World, cap: int) -> None:
    shared = capped(shared, cap)
    sizes = {"a": 9, "b": 4, "c": 1}
    planned = plan_of(shared, objects_of(**sizes))
    assert planned_by_tenant(shared) == {tenant: min(num, cap) for tenant, num in sizes.items()}
    num_over = sum(max(0, num - cap) for num in sizes.values())
    assert planned.num_kept_by_reason == ({"over_tenant_cap": num_over} if num_over else {})
    assert planned.num_discovered + num_over == 14


def test_under_a_cap_the_longest_due_go_first(shared: World) -> None:
    shared = capped(shared, 2)
    plan_of(shared, [facts(f"exports/2020-0{month}/a/{9 - month}.json") for month in (4, 1, 3, 2)])
    assert [key for _, _, keys in chunks_of(shared) for key in keys] == [
        "exports/2020-01/a/8.json",
        "exports/2020-02/a/7.json",
    ]


def test_what_is_over_a_cap_is_a_straggler_of_the_next_interval(world: World) -> None:
    world = capped(world, 2)
    world.put(*(f"exports/2020-01/{name}.json" for name in ("a/1", "a/2", "a/3", "a/4", "a/5", "b/1")))
    assert world.clean("run-1").num_by_outcome == {"deleted": 3}
    planned = world.planned("run-2")
    assert (planned.num_discovered, planned.num_stragglers) == (2, 2)
    assert planned.num_kept_by_reason == {"over_tenant_cap": 1}


def test_a_replay_goes_by_what_its_interval_has_planned_of_each_tenant(world: World) -> None:
    world = capped(world, 2)
    world.put(*(f"exports/2020-01/{name}.json" for name in ("a/1", "a/2", "a/3", "b/1")))
    world.clean()
    world.put("exports/2020-01/b/2.json", "exports/2020-01/b/3.json", "exports/2020-01/c/1.json")
    assert world.replay().num_by_outcome == {"deleted": 2}
    assert world.keys() == {"exports/2020-01/a/3.json", "exports/2020-01/b/3.json"}
    assert planned_by_tenant(world) == {"a": 2, "b": 2, "c": 1}


def test_a_simulation_under_a_cap_has_the_hash_of_the_enforced_plan(shared: World) -> None:
    shared = capped(shared, 3)
    objects = objects_of(a=7, b=2, c=10)
    shown = simulate.run(shared.conn, source_of(*objects), shared.policy, holder("plan", "sim-1"))[1]
    assert (shown.num_due, plan_of(shared, objects).num_discovered) == (8, 8)
    assert plan_hash(shared) == shown.plan_hash


def test_a_cap_does_not_hide_that_everything_would_go(shared: World) -> None:
    shared = capped(shared, 1, allow_expire_everything=False)
    with pytest.raises(PlanRefusedError, match="would be deleted"):
        plan_of(shared, objects_of(a=3))


@pytest.mark.parametrize(("bound", "is_waiting"), [(0.75, False), (0.7, True), (None, False)])
def test_a_plan_that_takes_too_much_of_one_small_tenant_waits_for_a_person(
    shared: World, bound: float | None, is_waiting: bool
) -> None:
    shared = shared.under(limits={"max_tenant_share": bound})
    this_month = f"{datetime.now(UTC):%Y-%m}"
    young = [
        facts(f"exports/{this_month}/{who}/{n}.json")
        for who, num in (("a", 1), ("b", 400))
        for n in range(num)
    ]
    planned = plan_of(shared, [*objects_of(a=3, b=40), *young])
    assert planned.is_waiting is is_waiting
    stored = shared.value("SELECT largest_tenant_share FROM s3_retention.intervals")
    assert stored == pytest.approx(0.75)


def test_a_policy_without_tenants_has_no_share_of_one(world: World) -> None:
    world.clean()
    assert world.value("SELECT largest_tenant_share FROM s3_retention.intervals") is None


def test_a_simulation_tells_the_largest_tenants_and_what_is_over_the_cap(shared: World) -> None:
    shared = capped(shared, 3)
    objects = objects_of(a=5, b=2)
    shown = simulate.run(shared.conn, source_of(*objects), shared.policy, holder("plan", "sim-1"))[1]
    assert [(one.tenant, one.num_objects, one.num_bytes, one.num_over_cap) for one in shown.tenants] == [
        ("a", 3, 3, 2),
        ("b", 2, 2, 0),
    ]
    (line,) = [one for one in str(shown).splitlines() if one.startswith("  'a'")]
    assert line.endswith("and 2 over the cap")
    plan_of(shared, objects)
    assert plan_hash(shared) == shown.plan_hash


# Chunks and batches ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("canary", [None, 1, 2, 5])
def test_no_chunk_mixes_tenants_and_nothing_is_lost_or_doubled(shared: World, canary: int | None) -> None:
    limits = {"canary": canary, "allow_expire_everything": True}
    shared = shared.under(batch={"size": 4}, limits=limits)
    objects = objects_of(a=9, b=1, c=2, d=4, é=3)
    planned = plan_of(shared, objects)
    chunks = chunks_of(shared)
    assert all({owner(key) for key in keys} == {tenant} for _, tenant, keys in chunks)
    assert sorted(key for _, _, keys in chunks for key in keys) == sorted(one.ref.key for one in objects)
    sizes: Counter[int] = Counter()
    for number, _, keys in chunks:
        sizes[number] += len(keys)
    assert max(sizes.values()) <= 4
    stored = shared.rows("SELECT batch_number, num_commands FROM s3_retention.batches")
    assert {row["batch_number"]: row["num_commands"] for row in stored} == sizes
    assert planned.num_discovered == sum(sizes.values())


@pytest.mark.parametrize("canary", [None, 1, 2, 1000])
def test_a_simulation_of_many_tenants_has_the_hash_of_the_enforced_plan(
    shared: World, canary: int | None
) -> None:
    limits = {"canary": canary, "allow_expire_everything": True}
    shared = shared.under(batch={"size": 3}, limits=limits)
    objects = objects_of(b=7, a=2, c=10)
    shown = simulate.run(shared.conn, source_of(*objects), shared.policy, holder("plan", "sim-1"))[1]
    plan_of(shared, objects)
    assert plan_hash(shared) == shown.plan_hash


def test_the_canary_is_of_one_tenant_and_goes_alone(shared: World) -> None:
    shared = shared.under(limits={"canary": 3, "allow_expire_everything": True})
    planned = plan_of(shared, objects_of(a=5, b=5))
    assert [batch.num_commands for batch in planned.batches] == [3]
    first, *others = chunks_of(shared)
    assert (first[0], first[1], len(first[2])) == (0, "a", 3)
    assert [(number, tenant, len(keys)) for number, tenant, keys in others] == [(1, "a", 2), (1, "b", 5)]


def test_many_small_tenants_share_batches(shared: World) -> None:
    num_tenants, batch_size = 3000, 500
    shared = shared.under(batch={"size": batch_size})
    planned = plan_of(shared, objects_of(**{f"t{number}": 3 for number in range(num_tenants)}))
    assert len(chunks_of(shared)) == num_tenants
    assert len(planned.batches) <= 1 + 3 * num_tenants / (batch_size - 2)
    assert max(batch.num_commands for batch in planned.batches) <= batch_size


def test_a_batch_of_tenants_is_never_over_the_limit_of_a_run(shared: World) -> None:
    shared = shared.under(limits={"max_commands_per_run": 7, "allow_expire_everything": True})
    planned = plan_of(shared, objects_of(**{f"t{number}": 3 + number % 3 for number in range(20)}))
    assert [batch.num_commands for batch in planned.batches] == [7]


# Turns ----------------------------------------------------------------------------------------------------
def test_small_tenants_are_done_in_the_first_batches_beside_a_large_one(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "MAX_CHUNK", 10)
    shared = shared.under(batch={"size": 50})
    # The large one comes first by its name, and its keys before those of the others.
    planned = plan_of(shared, objects_of(a=2000, y=2, z=2))
    batches_of = {tenant: {n for n, whose, _ in chunks_of(shared) if whose == tenant} for tenant in "ayz"}
    assert batches_of["y"] | batches_of["z"] <= {1, 2}
    assert len(planned.batches) <= 2 + 2000 / 50


def test_tenants_of_one_size_come_equally_far_in_each_batch(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "MAX_CHUNK", 2)
    shared = shared.under(batch={"size": 12})
    plan_of(shared, objects_of(a=40, b=40, c=40))
    done: Counter[tuple[int, str | None]] = Counter()
    for number, tenant, keys in chunks_of(shared):
        done[number, tenant] += len(keys)
    assert set(done.values()) == {4}
    assert len(done) == 30


def test_a_large_tenant_spreads_over_its_keys_in_each_batch(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "MAX_CHUNK", 1)
    shared = shared.under(batch={"size": 10})
    plan_of(shared, objects_of(a=100, b=1))
    second = [int(keys[0][-11:-5]) for number, tenant, keys in chunks_of(shared) if number == 2]
    assert len(second) == 10
    assert max(second) - min(second) > 80


# Weights --------------------------------------------------------------------------------------------------
def weighted(world: World, weights: dict[str, int], **more: Any) -> World:
    return world.under(tenant={"group": "customer", "weights": weights}, **more)


def test_a_tenant_of_weight_3_lays_three_chunks_for_each_one_of_another(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "MAX_CHUNK", 2)
    shared = weighted(shared, {"a": 3, "nobody": 9}, batch={"size": 10})
    plan_of(shared, objects_of(a=60, b=40, c=40))
    done: Counter[tuple[int, str | None]] = Counter()
    for number, tenant, keys in chunks_of(shared):
        done[number, tenant] += len(keys)
    # While all three have some left.
    for number in range(1, 11):
        assert [done[number, tenant] for tenant in "abc"] == [6, 2, 2]


def test_the_first_chunk_of_each_tenant_comes_before_the_second_of_the_heaviest(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "MAX_CHUNK", 1)
    shared = weighted(shared, {"a": 100}, batch={"size": 5})
    plan_of(shared, objects_of(a=300, b=1, c=1, d=1, e=1))
    assert {tenant for number, tenant, _ in chunks_of(shared) if number == 1} == set("abcde")


@pytest.mark.parametrize("weight", [1, 2, 3, 7, 100])
def test_equal_weights_give_the_plan_of_none(
    shared: World, monkeypatch: pytest.MonkeyPatch, weight: int
) -> None:
    monkeypatch.setattr(decide, "MAX_CHUNK", 3)
    shared = shared.under(batch={"size": 20})
    objects = objects_of(a=71, b=33, c=140, d=2)
    plan_of(shared, objects)
    laid, old_hash = chunks_of(shared), plan_hash(shared)
    heavy = weighted(shared.under(name="another_policy"), dict.fromkeys("abcd", weight))
    plan_of(heavy, objects, "run-2")
    assert shared.interval_id() == 2
    assert (chunks_of(shared), plan_hash(shared)) == (laid, old_hash)


def test_weights_lose_and_double_nothing_and_fill_no_batch_over_its_size(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "MAX_CHUNK", 3)
    shared = weighted(shared, {"b": 5, "d": 2, "é": 100}, batch={"size": 10})
    objects = objects_of(a=19, b=23, c=2, d=44, é=31)
    plan_of(shared, objects)
    chunks = chunks_of(shared)
    assert sorted(key for _, _, keys in chunks for key in keys) == sorted(one.ref.key for one in objects)
    sizes: Counter[int] = Counter()
    for number, tenant, keys in chunks:
        assert {owner(key) for key in keys} == {tenant}
        sizes[number] += len(keys)
    assert max(sizes.values()) <= 10


def test_weights_may_change_under_the_same_version(world: World) -> None:
    world = world.under(**BY_TENANT)
    for run, weights in (("run-1", {}), ("run-2", {"a": 9}), ("run-3", {"b": 2})):
        world.put("exports/2020-01/a/1.json", "exports/2020-01/b/1.json")
        assert weighted(world, weights).clean(run).num_by_outcome == {"deleted": 2}


@pytest.mark.parametrize("canary", [None, 4, 10])
@pytest.mark.parametrize("rules", [{}, {"keep": KEEP_LATEST}])
def test_one_tenant_alone_has_the_plan_of_a_policy_without_tenants(
    world: World, monkeypatch: pytest.MonkeyPatch, rules: dict[str, Any], canary: int | None
) -> None:
    monkeypatch.setattr(decide, "MAX_CHUNK", 10)
    source = {"type": "s3_listing", "bucket": "t-fake", "prefix": "exports/", "aws_conn_id": "c"}
    limits = {"canary": canary, "allow_expire_everything": True}
    world = world.under(source=source, select=SELECT, batch={"size": 45}, limits=limits, **rules)
    objects = [*objects_of(a=333), facts("exports/2020-02/a/x.json")]
    plan_of(world, objects)
    chunks, old_hash = chunks_of(world), plan_hash(world)
    plan_of(world.under(name="another_policy", **BY_TENANT), objects, "run-2")
    assert world.interval_id() == 2
    assert plan_hash(world) == old_hash
    assert [(n, keys) for n, _, keys in chunks_of(world)] == [(n, keys) for n, _, keys in chunks]
    assert {tenant for _, tenant, _ in chunks_of(world)} == {"a"}
