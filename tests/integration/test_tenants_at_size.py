"""Tenants at their real size: one large beside two small ones, and 50,000 small ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.core.lever import PauseTenant
from s3_retention.core.tenant_counts import TenantCounts
from s3_retention.errors import UnbalancedError
from s3_retention.steps import hold
from tests.factories import MAX_BATCHES, Pages, World, facts
from tests.fakes import asked, deleted, faulty_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_retention.core.objects import ObjectFacts

LARGE, SMALL = 200_000, 200
BY_TENANT: dict[str, Any] = {
    "source": {"type": "s3_listing", "bucket": "t-fake", "prefix": "exports/", "aws_conn_id": "c"},
    "select": {"regex": r"exports/2020-01/(?P<customer>[^/]+)/.*"},
    "tenant": {"group": "customer"},
}


def pages_of(sizes: dict[str, int]) -> Iterator[list[ObjectFacts]]:
    """A listing in the order of its keys."""
    for tenant, num in sorted(sizes.items()):
        for at in range(0, num, 1000):
            yield [
                facts(f"exports/2020-01/{tenant}/{number:06}.json")
                for number in range(at, min(num, at + 1000))
            ]


@pytest.fixture(scope="module")
def three() -> Pages:
    return Pages([*pages_of({"acme": LARGE, "yard": SMALL, "zeta": SMALL})])


def under(world: World, **limits: Any) -> World:
    allowed = {"allow_expire_everything": True, "max_commands_per_run": 1_000_000}
    return world.under(**BY_TENANT, limits=allowed | limits)


def planned_by_tenant(world: World) -> dict[str, int]:
    rows = world.rows(
        "SELECT tenant, sum(num_commands)::bigint AS num FROM s3_retention.chunks "
        "WHERE interval_id = %(id)s GROUP BY tenant",
        id=world.interval_id(),
    )
    return {row["tenant"]: row["num"] for row in rows}


def test_two_small_tenants_are_done_in_the_first_two_batches_beside_one_of_200_000_objects(
    world: World, three: Pages
) -> None:
    world = under(world)
    world.claim()
    planned = world.plan(source=three)
    assert planned.num_discovered == LARGE + 2 * SMALL
    rows = world.rows(
        "SELECT DISTINCT tenant, batch_number FROM s3_retention.chunks JOIN s3_retention.batches USING (batch_id) "
        "WHERE tenant <> 'acme'"
    )
    first = sorted(batch.batch_number for batch in planned.batches)[:2]
    assert {row["tenant"] for row in rows} == {"yard", "zeta"}
    assert {row["batch_number"] for row in rows} <= set(first)
    assert len(planned.batches) <= 2 + LARGE // 5000


def test_a_cap_holds_exactly_and_a_paused_tenant_of_200_000_objects_waits_and_is_reported(
    world: World, three: Pages
) -> None:
    cap = 150
    world = under(world, max_commands_per_tenant=cap)
    who = Holder("s3_retention_hold", "pause-1", "pull_lever")
    hold.run(world.conn, PauseTenant(None, "acme", "they move out"), who, acted_by="ann")
    world.claim()
    planned = world.plan(source=three)
    assert planned.num_kept_by_reason == {"tenant_paused": LARGE, "over_tenant_cap": 2 * (SMALL - cap)}
    assert planned_by_tenant(world) == {"yard": cap, "zeta": cap}
    takes_all = faulty_gateway(world.gateway, delete_objects=lambda **asked_for: deleted(*asked(asked_for)))
    for batch in planned.batches:
        world.through(takes_all).delete(batch)
    done = world.report()
    assert done.num_by_outcome == {"deleted": 2 * cap}
    assert done.tenants == (
        TenantCounts("acme", num_paused=LARGE),
        TenantCounts("yard", num_deleted=cap, num_over_cap=SMALL - cap),
        TenantCounts("zeta", num_deleted=cap, num_over_cap=SMALL - cap),
    )


def test_50_000_tenants_of_3_objects_stay_under_the_limit_of_mapped_tasks(world: World) -> None:
    num = 50_000
    world = under(world)
    world.claim()
    planned = world.plan(source=Pages([[*page] for page in _tenants(num)]))
    assert planned.num_discovered == 3 * num
    # All of them in one run, at the size of a batch that a policy has by itself.
    assert sum(batch.num_commands for batch in planned.batches) == 3 * num
    assert len(planned.batches) <= 32 < MAX_BATCHES
    assert max(batch.num_commands for batch in planned.batches) <= 5000
    (mixed,) = world.rows("SELECT count(*) AS num FROM s3_retention.chunks WHERE num_commands <> 3")
    assert mixed == {"num": 0}


def test_50_000_tenants_over_their_caps_are_told_in_21_lines(world: World) -> None:
    num = 50_000
    world = under(world, max_commands_per_tenant=1)
    world.claim()
    planned = world.plan(source=Pages([[*page] for page in _tenants(num)]))
    assert planned.num_kept_by_reason == {"over_tenant_cap": 2 * num}
    # Nothing was delivered, which the report says first and refuses then.
    with pytest.raises(UnbalancedError):
        world.report()
    told = world.value("SELECT counts -> 'tenants' FROM s3_retention.run_reports")
    assert len(told) == 21
    assert (told[-1]["tenant"], told[-1]["num_tenants"]) == (None, num - 20)
    assert sum(one["num_over_cap"] for one in told) == 2 * num


def _tenants(num: int) -> Iterator[list[ObjectFacts]]:
    names = [f"t{number:05}" for number in range(num)]
    for at in range(0, num, 300):
        yield [facts(f"exports/2020-01/{name}/{n}.json") for name in names[at : at + 300] for n in range(3)]
