"""The keep rules of a plan, in SQL, keep what the model in Python keeps; and a cleanup leaves just that."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.keep import kept_by
from s3_retention.core.policy_keep import Keep
from s3_retention.steps import plan
from s3_retention.store import plan_candidates, plan_keeps
from s3_retention.store.connection import transaction
from tests.factories import MAX_BATCHES, Pages, facts, holder
from tests.keep_examples import BERLIN, UTC, members, some_rules

if TYPE_CHECKING:
    from s3_retention.core.verdict import Candidate
    from s3_retention.store.connection import Connection
    from tests.factories import World

DAYS = [f"exports/2020-{month:02d}-{day:02d}/a.json" for month in (1, 2, 3) for day in (1, 15, 28)]
ALL = {"include": ["exports/**"]}
BY_DAY = {
    "from": "key_date",
    "regex": r"exports/(?P<date>\d{4}-\d{2}-\d{2})/",
    "format": "%Y-%m-%d",
    "retain": "30d",
}


def decided(
    conn: Connection, candidates: list[Candidate], keep: Keep, *, zone: str, are_periods: bool
) -> dict[str, str]:
    with transaction(conn):
        plan_candidates.begin(conn)
        plan_candidates.copy(conn, candidates)
        plan_keeps.mark(conn, keep, timezone=zone, are_periods=are_periods)
        plan_candidates.decide(
            conn,
            policy="p",
            policy_version="v1",
            keep_latest=keep.latest or 1,
            due_from=None,
            ends_at=datetime(2036, 1, 1, tzinfo=UTC),
            are_distinct=True,
        )
        rows = conn.execute("SELECT key, reason FROM plan_decisions").fetchall()
    return {row["key"]: row["reason"] for row in rows}


@given(
    candidates=members(),
    rules=some_rules,
    zone=st.sampled_from(["UTC", BERLIN, "America/New_York", "Asia/Kolkata", "Pacific/Auckland"]),
    are_periods=st.booleans(),
)
def test_sql_keeps_what_the_model_keeps_and_names_the_same_rule(
    conn: Connection, candidates: list[Candidate], rules: dict[str, Any], zone: str, are_periods: bool
) -> None:
    keep = Keep(**rules)
    expected = kept_by(candidates, keep, timezone=zone, are_periods=are_periods)
    found = decided(conn, candidates, keep, zone=zone, are_periods=are_periods)
    assert len(found) == len(candidates)
    assert {key: reason for key, reason in found.items() if reason != "due"} == {
        one.facts.ref.key: reason for one, reason in expected.items()
    }


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ({"latest": 2}, DAYS[-2:]),
        ({"monthly": 2}, [DAYS[5], DAYS[8]]),
        ({"yearly": 5}, DAYS[-1:]),
        ({"within": "14d"}, DAYS[-2:]),
        ({"min_bytes": 3}, DAYS[-3:]),
        ({"latest": 1, "monthly": 3}, [DAYS[2], DAYS[5], DAYS[8]]),
    ],
)
def test_a_cleanup_leaves_what_a_rule_keeps(world: World, rules: dict[str, Any], left: list[str]) -> None:
    world = world.under(select=ALL, age=BY_DAY, keep=rules)
    world.put(*DAYS)
    report = world.clean()
    assert world.keys() == set(left)
    assert report.num_by_outcome == {"deleted": len(DAYS) - len(left)}


def test_what_a_rule_keeps_is_counted_by_the_rule(world: World) -> None:
    world = world.under(select=ALL, age=BY_DAY, keep={"latest": 1, "monthly": 3})
    world.put(*DAYS)
    assert world.planned().num_kept_by_reason == {"kept_latest": 1, "kept_monthly": 2}


def test_a_key_that_a_listing_names_twice_takes_one_place_among_those_that_are_kept(world: World) -> None:
    world = world.under(select=ALL, age=BY_DAY, keep={"daily": 2})
    pages = Pages([[facts(key, bucket=world.bucket) for key in (DAYS[8], DAYS[7], DAYS[7], DAYS[6])]])
    world.claim()
    planned = plan.run(
        world.conn, pages, world.policy, world.interval_id(), holder("plan"), max_batches=MAX_BATCHES
    )
    assert planned.num_kept_by_reason == {"kept_latest": 1, "kept_daily": 1}
    assert planned.num_discovered == 1


def test_a_keeper_of_a_calendar_rule_that_is_gone_before_the_delete_keeps_its_group(world: World) -> None:
    world = world.under(select=ALL, age=BY_DAY, keep={"monthly": 2})
    world.put(*DAYS)
    planned = world.planned()
    world.admin.delete_object(Bucket=world.bucket, Key=DAYS[5])
    (batch,) = planned.batches
    assert world.delete(batch).num_by_outcome == {"kept": 7}
    assert world.keys() == set(DAYS) - {DAYS[5]}


def test_what_is_kept_within_a_span_may_go_before_the_delete_while_the_newest_is_there(world: World) -> None:
    world = world.under(select=ALL, age=BY_DAY, keep={"within": "14d"})
    world.put(*DAYS)
    planned = world.planned()
    world.admin.delete_object(Bucket=world.bucket, Key=DAYS[7])
    (batch,) = planned.batches
    assert world.delete(batch).num_by_outcome == {"deleted": 7}
    assert world.keys() == {DAYS[8]}
