"""The keep rules of a plan, in SQL, keep what the model in Python keeps; and a cleanup leaves just that."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.keep import kept_by
from s3_retention.core.policy_keep import Keep
from s3_retention.steps import decide, plan, scan
from s3_retention.steps.decide import Bounds
from s3_retention.store import plan_candidates, plan_keeps
from s3_retention.store.connection import transaction
from tests.factories import MAX_BATCHES, Pages, a_policy, facts, holder
from tests.keep_examples import BERLIN, UTC, members, some_rules, validity

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
    valid_if=validity,
    zone=st.sampled_from(["UTC", BERLIN, "America/New_York", "Asia/Kolkata", "Pacific/Auckland"]),
    are_periods=st.booleans(),
)
def test_sql_keeps_what_the_model_keeps_and_names_the_same_rule(
    conn: Connection,
    candidates: list[Candidate],
    rules: dict[str, Any],
    valid_if: dict[str, int] | None,
    zone: str,
    are_periods: bool,
) -> None:
    keep = Keep(**rules, valid_if=valid_if)
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


def test_the_newest_valid_objects_stay_below_newer_ones_that_are_not(world: World) -> None:
    world = world.under(select=ALL, age=BY_DAY, keep={"latest": 2, "valid_if": {"min_size": 100}})
    world.put(*DAYS)
    for key in DAYS[2:5]:
        world.admin.put_object(Bucket=world.bucket, Key=key, Body=b"x" * 100)
    report = world.clean()
    assert world.keys() == {*DAYS[3:5], *DAYS[-2:]}
    assert report.num_by_outcome == {"deleted": 5}
    (kept,) = world.rows("SELECT num_kept_by_reason FROM s3_retention.intervals")
    assert kept["num_kept_by_reason"] == {"kept_latest": 2, "kept_valid": 2}


def test_a_valid_keeper_that_is_gone_before_the_delete_keeps_its_group(world: World) -> None:
    world = world.under(select=ALL, age=BY_DAY, keep={"latest": 1, "valid_if": {"min_size": 100}})
    world.put(*DAYS)
    world.admin.put_object(Bucket=world.bucket, Key=DAYS[3], Body=b"x" * 100)
    (batch,) = world.planned().batches
    world.admin.delete_object(Bucket=world.bucket, Key=DAYS[3])
    assert world.delete(batch).num_by_outcome == {"kept": 7}
    assert world.keys() == set(DAYS) - {DAYS[3]}


def test_a_valid_keeper_within_the_span_of_the_newest_is_looked_for_before_the_delete(world: World) -> None:
    keep = {"within": "20d", "valid_if": {"min_size": 100}}
    world = world.under(select=ALL, age=BY_DAY, keep=keep)
    world.put(*DAYS)
    world.admin.put_object(Bucket=world.bucket, Key=DAYS[7], Body=b"x" * 100)
    planned = world.planned()
    assert planned.num_kept_by_reason == {"kept_latest": 1, "kept_valid": 1}
    (batch,) = planned.batches
    world.admin.delete_object(Bucket=world.bucket, Key=DAYS[7])
    assert world.delete(batch).num_by_outcome == {"kept": 7}
    assert world.keys() == set(DAYS) - {DAYS[7]}


def test_each_slice_of_a_scan_keeps_the_valid_objects_that_the_one_before_kept(world: World) -> None:
    sliced = world.under(
        select=ALL,
        age=BY_DAY,
        keep={"latest": 1, "valid_if": {"min_size": 100}},
        window={"width": "20d"},
        start_at="2020-01-01T00:00:00Z",
    )
    old = [facts(key, bucket=world.bucket, size=100 if key == DAYS[4] else 1) for key in DAYS]
    planned: set[str] = set()
    for run in range(1, 12):
        sliced.claim(f"run-{run}")
        result = sliced.plan(f"run-{run}", source=Pages([old]))
        planned |= {row["key"] for row in world.rows("SELECT key FROM s3_retention.commands")}
        for batch in result.batches:
            sliced.delete(batch, f"run-{run}")
        sliced.report(f"run-{run}")
    assert planned == set(DAYS) - {DAYS[4], DAYS[-1]}


def test_what_is_kept_within_a_span_may_go_before_the_delete_while_the_newest_is_there(world: World) -> None:
    world = world.under(select=ALL, age=BY_DAY, keep={"within": "14d"})
    world.put(*DAYS)
    planned = world.planned()
    world.admin.delete_object(Bucket=world.bucket, Key=DAYS[7])
    (batch,) = planned.batches
    assert world.delete(batch).num_by_outcome == {"deleted": 7}
    assert world.keys() == {DAYS[8]}


def of_whole_days(world: World, **changes: Any) -> World:
    """A policy by which the files of a day go together, each by the date in its own name."""
    return world.under(
        select={"regex": r"exports/(?P<day>\d{4}-\d{2}-\d{2})/until=.*"},
        age={
            "from": "key_date",
            "regex": r"/until=(?P<date>\d{4}-\d{2}-\d{2})",
            "format": "%Y-%m-%d",
            "retain": "30d",
            "whole_groups": ["day"],
        },
        **changes,
    )


def test_a_group_goes_whole_or_not_at_all(world: World) -> None:
    whole = [f"exports/2020-01-01/until=2020-01-0{number}" for number in range(1, 4)]
    half = ["exports/2020-01-02/until=2020-01-02", "exports/2020-01-02/until=2999-01-02"]
    half += ["exports/2020-01-03/until=2020-01-02", "exports/2020-01-03/until=unknown"]
    world.put(*whole, *half)
    report = of_whole_days(world).clean()
    assert report.num_by_outcome == {"deleted": 3}
    assert world.keys() == set(half)
    (kept,) = world.rows("SELECT num_kept_by_reason FROM s3_retention.intervals")
    assert kept["num_kept_by_reason"] == {"date_in_future": 1, "no_date_in_key": 1, "group_not_whole": 2}


def test_each_slice_of_a_scan_looks_at_its_groups_anew(world: World) -> None:
    days = [facts(f"exports/2020-01-01/until=2020-0{month}-01", bucket=world.bucket) for month in (1, 2, 3)]
    sliced = of_whole_days(world, window={"width": "40d"}, start_at="2020-01-01T00:00:00Z")
    found = []
    for run in range(1, 5):
        sliced.claim(f"run-{run}")
        planned = sliced.plan(f"run-{run}", source=Pages([days]))
        found.append((planned.num_discovered, planned.num_kept_by_reason.get("group_not_whole", 0)))
        for batch in planned.batches:
            sliced.delete(batch, f"run-{run}")
        sliced.report(f"run-{run}")
    assert (3, 0) in found
    assert {due for due, _ in found} <= {0, 3}, "never a part of the group"


@given(dates=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 28), st.integers(1, 12)), max_size=12))
def test_whatever_the_dates_are_no_group_is_ever_left_half(
    conn: Connection, dates: list[tuple[int, int, int]]
) -> None:
    policy = a_policy(
        select={"regex": r"exports/(?P<day>\d)/until=.*"},
        age={
            "from": "key_date",
            "regex": r"/until=(?P<date>\d{4}-\d{2}-\d{2})",
            "format": "%Y-%m-%d",
            "retain": "30d",
            "whole_groups": ["day"],
        },
    )
    keys = dict.fromkeys(f"exports/{group}/until=2020-{month:02d}-{day:02d}" for group, day, month in dates)
    scanned = scan.run(conn, Pages([[facts(key) for key in keys]]), policy, lambda: None)
    ends_at = datetime(2020, 7, 1, tzinfo=UTC)
    with transaction(conn):
        decide.run(conn, policy, scanned, Bounds(ends_at, ends_at))
        rows = conn.execute("SELECT key, reason, group_key FROM plan_decisions").fetchall()
    due = {row["key"] for row in rows if row["reason"] == "due"}
    for group in {key.split("/")[1] for key in keys}:
        members_of = {key for key in keys if key.split("/")[1] == group}
        assert due & members_of in (set(), members_of)
        is_old = all(key[-10:] < "2020-05-31" for key in members_of)
        assert (due & members_of == members_of) == is_old
    assert {row["group_key"] for row in rows} <= {None}, "no keeper is looked for"
