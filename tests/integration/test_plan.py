"""The plan: one complete scan, every candidate decided, one command per object that is due."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.command import command_id, operation_id
from s3_retention.core.keep import kept_by
from s3_retention.core.policy_keep import Keep
from s3_retention.core.verdict import Candidate
from s3_retention.errors import (
    ClaimLostError,
    ListingError,
    NotPlannedError,
    PlanRefusedError,
    PolicyChangedError,
)
from s3_retention.sources.s3_listing import S3Listing
from s3_retention.steps import plan, simulate
from s3_retention.steps.claim import ClaimStatus
from s3_retention.steps.decide import PlanResult
from s3_retention.store import chunks, intervals, plan_candidates
from s3_retention.store.connection import connect, transaction
from tests.factories import (
    BY_LAST_MODIFIED,
    KEEP_LATEST,
    ODD_KEYS,
    OLD,
    Pages,
    World,
    facts,
    holder,
    source_of,
)
from tests.fakes import faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from s3_retention.core.objects import ObjectFacts
    from s3_retention.store.batches import DealtBatch
    from s3_retention.store.connection import Connection
    from sandbox.ledger import Ledger

UTC = timezone.utc
JUNE = datetime(2026, 6, 1, 12, tzinfo=UTC)
REFUSING = {"limits": {"allow_expire_everything": False}}


@pytest.fixture
def june(world: World) -> World:
    """1 June 2026, noon: what is of April is due since 31 May, what is of May is not yet."""
    world.set_clock("'2026-06-01T12:00:00Z'::timestamptz")
    return world.under(source=source_section("t-fake"))


def source_section(bucket: str) -> dict[str, str]:
    return {"type": "s3_listing", "bucket": bucket, "prefix": "exports/", "aws_conn_id": "c"}


def plan_of(world: World, *objects: ObjectFacts, run: str = "run-1", **more: Any) -> PlanResult:
    world.claim(run)
    return world.plan(run, source=source_of(*objects), **more)


def planned_keys(world: World) -> list[str]:
    query = """
        SELECT one.key FROM s3_retention.chunks
        CROSS JOIN unnest(chunks.keys) WITH ORDINALITY AS one (key, place)
        ORDER BY chunks.interval_id, chunks.chunk_number, one.place
    """
    return [row["key"] for row in world.rows(query)]


def sizes(batches: tuple[DealtBatch, ...]) -> list[int]:
    return [batch.num_commands for batch in batches]


def test_what_is_due_is_planned_and_the_rest_is_counted_by_reason(june: World) -> None:
    planned = plan_of(
        june,
        facts("exports/2026-04/a.json", size=3),
        facts("exports/2026-03/b.json", size=4),
        facts("exports/2026-05/a.json"),
        facts("exports/notes.txt"),
        facts("exports/2026-13/a.json"),
        facts("exports/2026-04/\ud800.json"),
    )
    assert planned == PlanResult(
        num_scanned=6,
        num_discovered=2,
        num_bytes=7,
        num_stragglers=0,
        num_kept_by_reason={"not_due": 1, "not_selected": 1, "date_not_parsable": 1, "key_not_recordable": 1},
        next_due_at=datetime(2026, 7, 1, tzinfo=UTC),
        batches=planned.batches,
    )
    assert planned_keys(june) == ["exports/2026-03/b.json", "exports/2026-04/a.json"]
    assert str(planned) == (
        "6 scanned, 2 due (7 bytes, 0 stragglers); kept: 1 date_not_parsable, 1 key_not_recordable, 1 not_due, "
        "1 not_selected"
    )


def test_the_end_of_an_interval_is_no_part_of_it(june: World) -> None:
    june = june.under(age=BY_LAST_MODIFIED)
    end = JUNE - timedelta(minutes=2) - timedelta(days=30)
    just_before = facts("exports/2026-04/a.json", at=end - timedelta(microseconds=1))
    planned = plan_of(june, just_before, facts("exports/2026-04/b.json", at=end))
    assert (planned.num_discovered, planned.num_kept_by_reason) == (1, {"not_due": 1})
    assert planned_keys(june) == ["exports/2026-04/a.json"]


def test_an_object_that_is_born_with_an_old_date_is_a_straggler_and_planned(june: World) -> None:
    plan_of(june)
    june.report("run-1")
    june.set_clock("'2026-07-02T12:00:00Z'::timestamptz")
    planned = plan_of(
        june, facts("exports/2019-01/late.json"), facts("exports/2026-05/due-now.json"), run="run-2"
    )
    assert (planned.num_discovered, planned.num_stragglers) == (2, 1)


def test_nothing_due_is_a_success(june: World) -> None:
    assert plan_of(june) == PlanResult(0, 0, 0, 0)
    report = june.report()
    assert (report.num_discovered, report.is_balanced) == (0, True)
    assert june.value("SELECT state FROM s3_retention.intervals") == "completed"


def test_the_command_of_a_plan_has_the_ids_that_python_makes(june: World) -> None:
    one = facts("exports/2026-04/a.json", etag='"x"', size=5, at=OLD + timedelta(microseconds=123456))
    plan_of(june, one)
    (row,) = june.rows("SELECT operation_id, command_id, due_at FROM s3_retention.commands")
    assert row["operation_id"].hex() == operation_id("t-fake", "exports/2026-04/a.json", "v1")
    assert row["command_id"] == command_id(one, "v1")
    assert str(row["due_at"]) == "2026-05-31 00:00:00+00:00"


def test_chunks_bring_every_odd_key_back_as_it_was(june: World) -> None:
    objects = [
        facts(key, etag=None if number % 3 == 0 else f'"{number}"', size=number * 10**11)
        for number, key in enumerate(ODD_KEYS)
    ]
    plan_of(june, *objects)
    (chunk_id,) = chunks.list_open(june.conn, batch_id=1)
    commands = chunks.list_unfinished(june.conn, chunk_id=chunk_id, fence=1)
    assert {command.facts for command in commands} == set(objects)
    assert all(command.command_id == command_id(command.facts, "v1") for command in commands)


def test_keys_are_planned_in_the_order_of_their_bytes(june: World) -> None:
    names = ["a/b", "a b", "a-b", "a.b", "é", "😀", "Z", "\uffff"]
    plan_of(june, *(facts(f"exports/2026-04/{name}.json") for name in names))
    assert planned_keys(june) == sorted(
        (f"exports/2026-04/{name}.json" for name in names), key=lambda key: key.encode()
    )


def test_a_key_that_is_listed_twice_is_planned_once_by_its_newest_incarnation(june: World) -> None:
    older, newer = (
        facts("exports/2026-04/a.json", etag=f'"{name}"', at=OLD + timedelta(days=day))
        for name, day in (("old", 0), ("new", 1))
    )
    planned = plan_of(june, newer, older, newer)
    assert (planned.num_scanned, planned.num_discovered) == (3, 1)
    assert june.value("SELECT etag FROM s3_retention.commands") == '"new"'


# The future -----------------------------------------------------------------------------------------------
def test_a_date_of_the_future_never_takes_the_place_of_the_newest(june: World) -> None:
    june = june.under(keep=KEEP_LATEST)
    planned = plan_of(
        june,
        facts("exports/2026-03/a.json"),
        facts("exports/2026-04/a.json"),
        facts("exports/2062-04/a.json"),
    )
    assert planned.num_kept_by_reason == {"kept_latest": 1, "date_in_future": 1}
    assert planned_keys(june) == ["exports/2026-03/a.json"]
    assert june.rows("SELECT key FROM s3_retention.keepers") == [{"key": "exports/2026-04/a.json"}]


def test_an_object_that_was_modified_in_the_future_never_takes_the_place_of_the_newest(june: World) -> None:
    june = june.under(keep=KEEP_LATEST)
    planned = plan_of(
        june,
        facts("exports/2026-03/a.json"),
        facts("exports/2026-04/a.json"),
        facts("exports/2026-05/a.json", at=JUNE + timedelta(microseconds=1)),
    )
    assert planned.num_kept_by_reason == {"kept_latest": 1, "date_in_future": 1}
    assert planned_keys(june) == ["exports/2026-03/a.json"]


def test_what_is_modified_right_now_and_the_month_that_runs_are_not_the_future(june: World) -> None:
    june = june.under(keep=KEEP_LATEST)
    planned = plan_of(june, facts("exports/2026-04/a.json"), facts("exports/2026-06/a.json", at=JUNE))
    assert planned.num_kept_by_reason == {"kept_latest": 1}
    assert planned_keys(june) == ["exports/2026-04/a.json"]


def test_the_future_begins_at_the_clock_of_the_scans_start(june: World) -> None:
    june = june.under(keep=KEEP_LATEST)
    june.claim()

    class Slow:
        """A scan during which the clock goes on, past the upload of its second page."""

        def pages(self) -> Any:
            yield [facts("exports/2026-04/a.json")]
            june.set_clock("'2026-06-01T13:00:00Z'::timestamptz")
            yield [facts("exports/2026-05/a.json", at=JUNE + timedelta(minutes=1))]

        def read_clock(self) -> None:
            """Tell no time."""

    assert june.plan(source=Slow()).num_kept_by_reason == {
        "kept_latest": 1,
        "date_in_future": 1,
    }


def test_a_simulation_knows_the_future_too(june: World) -> None:
    source = source_of(facts("exports/2026-04/a.json"), facts("exports/2062-04/a.json"))
    simulated = simulate.run(june.conn, source, june.under(keep=KEEP_LATEST).policy, holder("plan"))[0]
    assert simulated.num_kept_by_reason == {"kept_latest": 1, "date_in_future": 1}


# Keep rules -----------------------------------------------------------------------------------------------
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)
moments = st.integers(0, 3).map(lambda days: OLD + timedelta(days=days))


@st.composite
def groups(draw: st.DrawFn) -> list[Candidate]:
    keys = draw(st.lists(names, unique=True, max_size=14))
    return [
        Candidate(
            facts(key, at=draw(moments)), draw(moments), OLD, draw(st.sampled_from(['["a"]', '["b"]', "[]"]))
        )
        for key in keys
    ]


@given(candidates=groups(), n=st.integers(1, 4), are_distinct=st.booleans())
def test_sql_keeps_the_same_newest_of_each_group_as_python(
    conn: Connection, candidates: list[Candidate], n: int, are_distinct: bool
) -> None:
    with transaction(conn):
        plan_candidates.begin(conn)
        plan_candidates.copy(conn, candidates)
        plan_candidates.decide(
            conn,
            policy="p",
            policy_version="v1",
            keep_latest=n,
            due_from=None,
            ends_at=JUNE,
            are_distinct=are_distinct,
        )
        rows = conn.execute("SELECT key, reason FROM plan_decisions").fetchall()
    assert {row["key"] for row in rows if row["reason"] == "kept_latest"} == {
        one.facts.ref.key for one in kept_by(candidates, Keep(latest=n), timezone="UTC", are_periods=False)
    }
    assert len(rows) == len(candidates)


def test_keepers_are_stored_for_groups_with_a_planned_delete_and_for_no_other(june: World) -> None:
    june = june.under(keep={"latest": 2, "group_by": ["customer"]})
    plan_of(
        june,
        *(facts(f"exports/2026-0{month}/a.json") for month in (1, 2, 3)),
        *(facts(f"exports/2026-0{month}/b.json") for month in (1, 2)),
    )
    rows = june.rows("SELECT group_key, key FROM s3_retention.keepers ORDER BY key")
    assert rows == [
        {"group_key": '["a"]', "key": "exports/2026-02/a.json"},
        {"group_key": '["a"]', "key": "exports/2026-03/a.json"},
    ]


# Quarantine -----------------------------------------------------------------------------------------------
def test_what_waits_in_quarantine_is_not_planned_again_but_a_new_incarnation_is(world: World) -> None:
    a, b = "exports/2020-01/a.json", "exports/2020-01/b.json"
    world.put(a, b)
    world.s3.deny(world.bucket, [a, b])
    world.clean("run-1")
    world.put(b, body=b"new")
    planned = world.planned("run-2")
    assert (planned.num_discovered, planned.num_kept_by_reason) == (1, {"in_quarantine": 1})
    assert world.rows("SELECT key FROM s3_retention.commands WHERE interval_id = 2") == [{"key": b}]


@pytest.mark.parametrize("part", ["etag", "size", "last_modified_at", "none"])
def test_each_part_of_an_incarnation_frees_an_object_from_quarantine(june: World, part: str) -> None:
    one = facts("exports/2026-04/a.json", etag='"e"', size=1, at=OLD)
    plan_of(june, one)
    june.sweep("run-1", failed={0})
    june.report("run-1")
    june.set_clock("'2026-06-02T12:00:00Z'::timestamptz")
    other = {
        "etag": replace(one, etag='"f"'),
        "size": replace(one, size=2),
        "last_modified_at": replace(one, last_modified_at=OLD + timedelta(milliseconds=1)),
        "none": one,
    }[part]
    planned = plan_of(june, other, run="run-2")
    assert planned.num_discovered == (0 if part == "none" else 1)
    assert planned.num_kept_by_reason == ({"in_quarantine": 1} if part == "none" else {})


# What is refused ------------------------------------------------------------------------------------------
def test_a_plan_that_would_delete_all_that_there_is_is_refused_and_plans_nothing(june: World) -> None:
    june = june.under(**REFUSING)
    june.claim()
    with pytest.raises(PlanRefusedError, match="policy weekly_digests: all 2 objects that the scan saw"):
        june.plan(source=source_of(facts("exports/2026-04/a.json"), facts("exports/2026-04/b.json")))
    assert planned_keys(june) == []
    assert june.value("SELECT state FROM s3_retention.intervals") == "claimed"
    with pytest.raises(NotPlannedError):
        june.report()
    assert june.value("SELECT completed_through FROM s3_retention.watermarks").year == 1970


def test_a_key_that_is_listed_twice_does_not_hide_that_everything_would_go(june: World) -> None:
    june = june.under(**REFUSING)
    june.claim()
    with pytest.raises(PlanRefusedError):
        june.plan(source=source_of(facts("exports/2026-04/a.json"), facts("exports/2026-04/a.json")))


def test_one_object_that_stays_is_enough(june: World) -> None:
    june = june.under(**REFUSING)
    assert plan_of(june, facts("exports/2026-04/a.json"), facts("exports/notes.txt")).num_discovered == 1


def test_a_simulation_refuses_the_same_and_writes_nothing(june: World) -> None:
    everything = source_of(facts("exports/2026-04/a.json"))
    with pytest.raises(PlanRefusedError):
        simulate.run(june.conn, everything, june.under(**REFUSING).policy, holder("plan"))
    assert simulate.run(june.conn, everything, june.policy, holder("plan"))[0].num_discovered == 1
    for table in ("intervals", "watermarks", "policy_versions", "chunks", "batches"):
        assert june.value(f"SELECT count(*) FROM s3_retention.{table}") == 0  # noqa: S608


def test_rules_that_were_edited_after_the_claim_plan_nothing(june: World) -> None:
    june.claim()
    with pytest.raises(PolicyChangedError):
        june.under(select={"include": ["exports/**"]}).plan(source=source_of(facts("exports/2026-04/a.json")))
    assert planned_keys(june) == []


def test_a_version_that_was_raised_after_the_claim_is_the_version_of_the_plan(june: World) -> None:
    june.claim()
    newer = june.under(version="v2", select={"include": ["exports/**"]})
    newer.plan(source=source_of(facts("exports/2026-04/a.txt")))
    assert june.value("SELECT policy_version FROM s3_retention.commands") == "v2"


# Scans that are not complete ------------------------------------------------------------------------------
def test_a_listing_that_breaks_off_plans_nothing_and_the_next_try_plans_all(june: World) -> None:
    june.claim()
    broken: Any = Pages([[facts("exports/2026-04/a.json")]], error=ListingError("the listing broke off"))
    with pytest.raises(ListingError):
        june.plan(source=broken)
    assert planned_keys(june) == []
    assert june.value("SELECT position FROM s3_retention.watermarks").year == 1970
    june.plan(source=source_of(facts("exports/2026-04/b.json")))
    assert planned_keys(june) == ["exports/2026-04/b.json"]


@pytest.mark.parametrize("second", [{}, refusal("SlowDown", 503), refusal("AccessDenied", 403)])
def test_a_listing_whose_second_page_is_no_answer_plans_nothing(world: World, second: Any) -> None:
    first = {
        "IsTruncated": True,
        "NextContinuationToken": "t",
        "Contents": [{"Key": "exports/2020-01/a.json", "ETag": '"e"', "Size": 1, "LastModified": OLD}],
    }
    world.claim()
    with pytest.raises(ListingError):
        world.through(faulty_gateway(world.gateway, list_objects_v2=one_after_another(first, second))).plan()
    assert world.value("SELECT count(*) FROM s3_retention.chunks") == 0


def test_a_plan_that_dies_before_its_end_leaves_no_chunk(
    june: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(facts("exports/2026-04/a.json"))
    june.claim()

    def die(*_: object, **__: object) -> None:
        assert june.conn.execute("SELECT count(*) AS n FROM s3_retention.chunks").fetchone() == {"n": 1}
        june.root.execute("SELECT pg_terminate_backend(%s)", [june.conn.info.backend_pid])
        june.conn.execute("SELECT 1")

    with monkeypatch.context() as patch:
        patch.setattr(intervals, "mark_planned", die)
        with pytest.raises(Exception, match="the ledger database went away"):
            june.plan(source=source)
    for table in ("chunks", "batches", "keepers"):
        assert june.value(f"SELECT count(*) FROM s3_retention.{table}") == 0  # noqa: S608
    assert june.value("SELECT state FROM s3_retention.intervals") == "claimed"
    assert june.value("SELECT position FROM s3_retention.watermarks").year == 1970


def test_a_scan_whose_interval_is_taken_over_stops_at_the_next_page(june: World, ledger: Ledger) -> None:
    june.claim("run-1")
    asked = []
    with closing(connect(ledger.writer_conninfo)) as own:
        other = replace(june, conn=own)

        class TakenOver:
            def pages(self) -> Any:
                yield [facts("exports/2026-04/a.json")]
                # The scan may renew its lease in between, as it does for each page.
                while other.claim("run-2").status is not ClaimStatus.CLAIMED:
                    other.expire_leases()
                # One page may be on its way when the scan stops.
                for name in "bcd":
                    asked.append(name)
                    yield [facts(f"exports/2026-04/{name}.json")]

            def read_clock(self) -> None:
                """Tell no time."""

        with pytest.raises(ClaimLostError):
            june.plan("run-1", source=TakenOver())
    assert len(asked) < 3
    assert planned_keys(june) == []


# Batches, limits and retries ------------------------------------------------------------------------------
def test_a_plan_that_is_tried_again_is_not_scanned_again_and_deals_the_same_batches(june: World) -> None:
    objects = [facts(f"exports/2026-04/{number}.json") for number in range(5)]
    june = june.under(batch={"size": 2})
    first = plan_of(june, *objects)
    never: Any = Pages([], error=AssertionError("it is planned already"))
    assert june.plan(source=never) == first
    assert sizes(first.batches) == [2, 2, 1]
    assert [batch.map_index for batch in first.batches] == [0, 1, 2]
    assert june.value("SELECT count(*) FROM s3_retention.commands") == 5


def test_a_plan_of_a_completed_interval_deals_nothing(june: World) -> None:
    planned = plan_of(june)
    june.report()
    assert june.plan(source=source_of(facts("exports/2026-04/a.json"))) == planned
    assert planned_keys(june) == []


def test_no_more_batches_are_dealt_than_a_mapped_task_may_have(june: World) -> None:
    june = june.under(batch={"size": 1})
    planned = plan_of(june, *(facts(f"exports/2026-04/{number}.json") for number in range(5)), max_batches=3)
    assert [batch.batch_number for batch in planned.batches] == [1, 2, 3]
    assert june.value("SELECT count(*) FROM s3_retention.batches WHERE run_id IS NULL") == 2


def test_the_largest_batch_that_a_policy_may_have_can_be_planned(june: World) -> None:
    # 50 chunks of 1,000: more than a smallint holds, and the driver sends both factors as smallint.
    june = june.under(batch={"size": 50_000})
    assert sizes(plan_of(june, facts("exports/2026-04/a.json")).batches) == [1]


def test_batches_hold_as_many_as_the_policy_says_and_take_the_chunks_in_turn(june: World) -> None:
    june = june.under(batch={"size": 2000})
    objects = [facts(f"exports/2026-04/{number:04d}.json") for number in range(3500)]
    assert sizes(plan_of(june, *objects).batches) == [2000, 1500]
    rows = june.rows("SELECT batch_id, num_commands FROM s3_retention.chunks ORDER BY chunk_number")
    assert [tuple(row.values()) for row in rows] == [(1, 1000), (2, 1000), (1, 1000), (2, 500)]
    assert planned_keys(june) == [one.ref.key for one in objects]


def test_no_batch_is_larger_than_what_a_run_may_delete(june: World) -> None:
    june = june.under(limits={"max_commands_per_run": 2, "allow_expire_everything": True})
    planned = plan_of(june, *(facts(f"exports/2026-04/{number}.json") for number in range(5)))
    assert sizes(planned.batches) == [2]


def test_the_limit_of_a_run_drains_a_plan_in_pieces_over_several_runs(world: World) -> None:
    keys = {f"exports/2020-01/{number}.json" for number in range(7)}
    world = world.under(
        batch={"size": 2}, limits={"max_commands_per_run": 4, "allow_expire_everything": True}
    )
    world.put(*keys)
    left = []
    for run in ("run-1", "run-2"):
        report = world.clean(run)
        left.append((report.num_by_outcome["deleted"], report.num_remaining, len(world.keys())))
    assert left == [(4, 3, 3), (3, 0, 0)]
    assert world.value("SELECT count(*) FROM s3_retention.intervals") == 1
    assert world.value("SELECT state FROM s3_retention.intervals") == "completed"
    assert world.balance() == (7, 7, 0, 0, 0, 0, 0)


def test_the_next_piece_is_dealt_anew_from_the_first_place(june: World) -> None:
    june = june.under(batch={"size": 1})
    plan_of(june, *(facts(f"exports/2026-04/{number}.json") for number in range(3)), max_batches=2)
    june.root.execute(
        "UPDATE s3_retention.batches SET closed_at = now(), claimed_until = NULL WHERE batch_number < 3"
    )
    june.expire_leases()
    june.claim("run-2")
    never: Any = Pages([], error=AssertionError("it is planned already"))
    (batch,) = june.plan("run-2", source=never).batches
    assert (batch.batch_number, batch.map_index) == (3, 0)


def test_a_plan_of_another_run_is_refused(june: World) -> None:
    june.claim("run-1")
    with pytest.raises(ClaimLostError):
        plan.run(june.conn, source_of(), june.policy, 1, holder("plan", "run-2"), max_batches=1)


def test_a_candidate_needs_no_table_that_outlives_the_session(june: World, conn: Connection) -> None:
    plan_of(june, facts("exports/2026-04/a.json"))
    assert conn.execute("SELECT count(*) AS n FROM plan_candidates").fetchone() == {"n": 1}
    with pytest.raises(psycopg.errors.UndefinedTable):
        june.root.execute("SELECT count(*) FROM plan_candidates")


# Found by review ------------------------------------------------------------------------------------------
def test_a_ledger_clock_that_is_far_from_the_stores_plans_nothing_and_moves_nothing(world: World) -> None:
    world.put("exports/2020-01/a.json", "exports/2020-01/b.txt")
    world.set_clock("clock_timestamp() + interval '31 days'")
    world.claim()
    source = S3Listing(world.gateway, world.bucket, "exports/")
    with pytest.raises(PlanRefusedError, match="set the clock that is wrong"):
        world.plan(source=source)
    assert world.value("SELECT count(*) FROM s3_retention.chunks") == 0
    assert world.value("SELECT position FROM s3_retention.watermarks").year == 1970


def test_groups_with_values_as_long_as_keys_can_be_are_planned(june: World) -> None:
    regex = "exports/(?P<date>[0-9]{4}-[0-9]{2})/(?P<all>(?P<part>.*))"
    june = june.under(
        select={"regex": regex}, keep={"latest": 1, "group_by": ["all", "part"]}, batch={"size": 10}
    )
    # Not compressible, as real keys with hashes in them are.
    long = "".join(sha256(str(number).encode()).hexdigest() for number in range(15))
    planned = plan_of(june, facts(f"exports/2026-03/{long}"), facts(f"exports/2026-04/{long}"))
    assert (planned.num_discovered, planned.num_kept_by_reason) == (1, {"kept_latest": 1})


def test_the_version_of_a_planned_interval_cannot_be_changed(june: World) -> None:
    plan_of(june, facts("exports/2026-04/a.json"))
    with pytest.raises(psycopg.errors.RestrictViolation, match="its policy version is part of the id"):
        june.root.execute("UPDATE s3_retention.intervals SET policy_version = 'v0'")


def test_an_interval_that_was_cut_by_a_clock_ahead_plans_nothing_before_its_end_has_come(
    world: World,
) -> None:
    world = world.under(age=BY_LAST_MODIFIED)
    world.put("exports/2020-01/young.json", "exports/2020-01/stays.txt")
    world.set_clock("clock_timestamp() + interval '90 days'")
    world.claim()
    # The clock is right again, and agrees with the store's: nothing is due, whatever the interval says.
    world.set_clock("clock_timestamp()")
    source = S3Listing(world.gateway, world.bucket, "exports/")
    with pytest.raises(PlanRefusedError, match="ends in the future"):
        world.plan(source=source)
    assert world.value("SELECT count(*) FROM s3_retention.chunks") == 0
    assert world.value("SELECT position FROM s3_retention.watermarks").year == 1970
    # Shortened as docs/runbook.md says, it is planned, and the young object stays.
    world.root.execute(
        "UPDATE s3_retention.intervals SET ends_at = now(), interval_key = interval_key || ':shortened' "
        "WHERE interval_id = %(id)s AND state = 'claimed' AND starts_at < now()",
        {"id": world.interval_id()},
    )
    assert world.plan(source=source).num_discovered == 0
    assert world.keys() == {"exports/2020-01/young.json", "exports/2020-01/stays.txt"}
