"""Claims on intervals: one at a time, without hole or overlap, whatever the clock does."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.errors import LedgerError, PlanRefusedError, PolicyChangedError, PolicyError
from s3_retention.steps.claim import ClaimResult, ClaimStatus
from s3_retention.store.connection import connect
from tests.factories import Pages, World, facts

if TYPE_CHECKING:
    from sandbox.ledger import Ledger

JUNE = "'2026-06-01T12:00:00Z'::timestamptz"
JULY = "'2026-07-01T12:00:00Z'::timestamptz"
FIRST = "cleanup:weekly_digests:1970-01-01T00:00:00+00:00:2026-06-01T11:58:00+00:00"
SECOND = "cleanup:weekly_digests:2026-06-01T11:58:00+00:00:2026-07-01T11:58:00+00:00"
NOTHING: Any = Pages([[]])


def one_of(world: World) -> Any:
    """A listing of one object that is due."""
    return Pages([[facts(bucket=world.bucket)]])


def finish(world: World, run: str) -> None:
    """A run without anything to delete."""
    world.claim(run)
    world.plan(run, source=NOTHING)
    world.report(run)


def test_the_first_interval_reaches_from_1970_to_just_before_now(world: World) -> None:
    world.set_clock(JUNE)
    assert world.claim() == ClaimResult(ClaimStatus.CLAIMED, 1, FIRST)


def test_the_first_interval_starts_where_the_policy_says(world: World) -> None:
    world.set_clock(JUNE)
    claimed = world.under(start_at="2026-01-01T00:00:00Z").claim()
    assert claimed.interval_key == (
        "cleanup:weekly_digests:2026-01-01T00:00:00+00:00:2026-06-01T11:58:00+00:00"
    )


def test_an_interval_is_no_longer_than_the_width_of_the_policy(world: World) -> None:
    world.set_clock(JUNE)
    narrow = world.under(start_at="2026-01-01T00:00:00Z", window={"width": "31d"})
    assert narrow.claim().interval_key == (
        "cleanup:weekly_digests:2026-01-01T00:00:00+00:00:2026-02-01T00:00:00+00:00"
    )


def test_the_next_interval_starts_where_the_last_one_ended(world: World) -> None:
    world.set_clock(JUNE)
    finish(world, "run-1")
    world.set_clock(JULY)
    assert world.claim("run-2") == ClaimResult(ClaimStatus.CLAIMED, 2, SECOND)


def test_a_run_that_claims_again_gets_the_same_interval_under_a_new_fence(world: World) -> None:
    first = world.claim()
    assert world.claim() == first
    assert world.value("SELECT fence FROM s3_retention.intervals") == 2
    world.plan(source=NOTHING)
    assert world.claim() == first
    world.report()
    # It is completed now, and a cleared run still does nothing twice.
    assert world.claim() == first
    assert world.value("SELECT count(*) FROM s3_retention.intervals") == 1


def test_each_claim_is_on_record_with_its_holder_and_fence(world: World) -> None:
    world.claim("run-1")
    world.plan("run-1", source=NOTHING)
    rows = world.rows("SELECT interval_id, fence, run_id, task_id FROM s3_retention.claims ORDER BY claim_id")
    assert [tuple(row.values()) for row in rows] == [(1, 1, "run-1", "claim"), (1, 2, "run-1", "plan")]


def test_the_interval_of_another_live_run_is_observed(world: World) -> None:
    claimed = world.claim("run-1")
    observed = world.claim("run-2")
    assert observed == ClaimResult(ClaimStatus.OBSERVED, claimed.interval_id, claimed.interval_key)
    assert world.value("SELECT fence FROM s3_retention.intervals") == 1


def test_an_interval_is_held_as_long_as_a_worker_holds_one_of_its_batches(world: World) -> None:
    world.claim("run-1")
    (batch,) = world.plan("run-1", source=one_of(world)).batches
    world.root.execute("UPDATE s3_retention.intervals SET claimed_until = NULL")
    world.root.execute("UPDATE s3_retention.batches SET claimed_until = now() + interval '1 minute'")
    assert world.claim("run-2").status is ClaimStatus.OBSERVED
    world.expire_leases()
    assert world.claim("run-2").status is ClaimStatus.CLAIMED
    assert batch.map_index == 0


@pytest.mark.parametrize("lease", ["NULL", "s3_retention.clock() - interval '1 microsecond'", "'2000-01-01'"])
def test_an_interval_that_was_released_or_whose_lease_is_over_is_adopted(world: World, lease: str) -> None:
    claimed = world.claim("run-1")
    world.root.execute(f"UPDATE s3_retention.intervals SET claimed_until = {lease}")  # noqa: S608
    assert world.claim("run-2") == claimed
    assert world.rows("SELECT claimed_by, fence FROM s3_retention.intervals") == [
        {"claimed_by": "s3_retention_cleanup__weekly_digests/run-2", "fence": 2}
    ]


def test_the_run_that_lost_its_interval_plans_nothing(world: World) -> None:
    from s3_retention.errors import ClaimLostError

    world.claim("run-1")
    world.expire_leases()
    world.claim("run-2")
    with pytest.raises(ClaimLostError):
        world.plan("run-1", source=one_of(world))
    assert world.value("SELECT count(*) FROM s3_retention.chunks") == 0


def test_two_policies_have_intervals_of_their_own(world: World) -> None:
    assert world.claim("run-1").interval_id == 1
    other = world.under(name="other").claim("run-1")
    assert (other.status, other.interval_id) == (ClaimStatus.CLAIMED, 2)


def test_nothing_to_take_is_caught_up(world: World) -> None:
    world.set_clock(JUNE)
    finish(world, "run-1")
    assert world.claim("run-2") == ClaimResult(ClaimStatus.CAUGHT_UP)


def test_a_start_in_the_future_is_refused_and_sets_no_watermark(world: World) -> None:
    world.set_clock(JUNE)
    with pytest.raises(PolicyError, match=r"start_at = '2126-01-01T00:00:00\+00:00' lies in the future"):
        world.under(start_at="2126-01-01T00:00:00Z").claim("run-1")
    assert world.value("SELECT count(*) FROM s3_retention.watermarks") == 0
    # Corrected, it starts where it says.
    world.under(start_at="2026-01-01T00:00:00Z").claim("run-1")
    assert (
        world.value("SELECT starts_at FROM s3_retention.intervals").isoformat() == "2026-01-01T00:00:00+00:00"
    )


def test_a_clock_that_jumps_back_moves_nothing_back(world: World) -> None:
    world.set_clock(JUNE)
    finish(world, "run-1")
    world.set_clock("'2025-01-01T00:00:00Z'::timestamptz")
    assert world.claim("run-2").status is ClaimStatus.CAUGHT_UP
    marks = "SELECT position, completed_through FROM s3_retention.watermarks"
    assert [str(value) for value in world.rows(marks)[0].values()] == ["2026-06-01 11:58:00+00:00"] * 2
    world.set_clock(JULY)
    assert world.claim("run-2") == ClaimResult(ClaimStatus.CLAIMED, 2, SECOND)


def test_a_clock_that_jumps_back_during_a_run_moves_nothing_back(world: World) -> None:
    world.set_clock(JUNE)
    world.claim()
    world.set_clock("'2025-01-01T00:00:00Z'::timestamptz")
    # An interval whose end has not come is not planned: nobody knows which of the two times was right.
    with pytest.raises(PlanRefusedError, match="ends in the future"):
        world.plan(source=NOTHING)
    assert world.value("SELECT position FROM s3_retention.watermarks").year == 1970
    world.set_clock(JUNE)
    world.plan(source=NOTHING)
    world.set_clock("'2025-01-01T00:00:00Z'::timestamptz")
    world.report()
    assert str(world.value("SELECT position FROM s3_retention.watermarks")) == "2026-06-01 11:58:00+00:00"


def test_eight_runs_at_once_get_one_claim_in_each_of_20_rounds(world: World, ledger: Ledger) -> None:
    barrier = threading.Barrier(8)
    clock = "'2026-06-01T12:00:00Z'::timestamptz + interval '{} days'"

    def work(number: int) -> list[str]:
        with closing(connect(ledger.writer_conninfo)) as own:
            here = replace(world, conn=own)
            got = []
            for round_number in range(20):
                if barrier.wait(timeout=60) == 0:
                    world.set_clock(clock.format(round_number))
                barrier.wait(timeout=60)
                got.append(here.claim(f"run-{round_number}-{number}").status.value)
                if barrier.wait(timeout=60) == 0:
                    (row,) = world.rows(
                        "SELECT interval_id, claimed_by FROM s3_retention.intervals WHERE state = 'claimed'"
                    )
                    run = row["claimed_by"].rpartition("/")[2]
                    here.plan(run, interval_id=row["interval_id"], source=NOTHING)
                    here.report(run, interval_id=row["interval_id"])
                barrier.wait(timeout=60)
            return got

    with ThreadPoolExecutor(8) as pool:
        rounds = list(zip(*pool.map(work, range(8)), strict=True))
    assert [sorted(statuses) for statuses in rounds] == [["claimed"] + ["observed"] * 7] * 20
    assert world.value("SELECT count(*) FROM s3_retention.intervals") == 20
    gaps = """
        SELECT count(*) FROM (
            SELECT starts_at, lag(ends_at) OVER (ORDER BY starts_at) AS before FROM s3_retention.intervals
        ) AS pairs WHERE before <> starts_at
    """
    assert world.value(gaps) == 0


def test_rules_that_change_under_the_same_version_are_refused_before_anything_is_claimed(
    world: World,
) -> None:
    finish(world, "run-1")
    edited = world.under(age={"from": "last_modified", "retain": "1d"})
    with pytest.raises(PolicyChangedError, match="`version` is still 'v1': give it a new version"):
        edited.claim("run-2")
    assert world.value("SELECT count(*) FROM s3_retention.intervals") == 1
    assert edited.under(version="v2").claim("run-2").status is ClaimStatus.CLAIMED


def test_what_is_no_rule_may_change_under_the_same_version(world: World) -> None:
    world.claim()
    free = world.under(
        schedule="0 3 * * 0", owner="ann", batch={"size": 7}, window={"lease": "1h"}, description="d"
    )
    assert free.claim().status is ClaimStatus.CLAIMED


def test_an_interval_that_is_not_planned_yet_is_planned_under_the_newest_version(world: World) -> None:
    world.claim("run-1")
    newer = world.under(version="v2")
    newer.claim("run-1")
    newer.plan("run-1", source=one_of(world))
    assert world.value("SELECT policy_version FROM s3_retention.intervals") == "v2"
    assert world.value("SELECT DISTINCT policy_version FROM s3_retention.commands") == "v2"


def test_a_planned_interval_keeps_the_version_of_its_plan(world: World) -> None:
    world.claim("run-1")
    world.plan("run-1", source=one_of(world))
    world.expire_leases()
    world.under(version="v2").claim("run-2")
    assert world.value("SELECT DISTINCT policy_version FROM s3_retention.commands") == "v1"


def test_a_refusal_of_the_ledger_names_constraint_and_sqlstate_and_no_sql(world: World) -> None:
    from s3_retention.core.interval import Interval
    from s3_retention.store import intervals
    from s3_retention.store.connection import transaction
    from tests.factories import OLD, holder

    world.claim()
    again = Interval("weekly_digests", OLD, OLD.replace(year=2021))
    with pytest.raises(LedgerError) as caught, transaction(world.conn):
        intervals.insert(
            world.conn, again, policy_version="v1", lease=world.policy.window.lease, holder=holder()
        )
    assert str(caught.value) == (
        "the ledger refused a statement: duplicate key value violates unique constraint "
        '"intervals_one_root" (SQLSTATE 23505, constraint intervals_one_root)'
    )


def test_a_run_that_finds_the_interval_held_is_counted_as_a_conflict(world: World) -> None:
    world.claim("run-1")
    for _ in range(2):
        world.claim("run-1")
        assert world.claim("run-2").status.value == "observed"
    assert world.value("SELECT num_claim_conflicts FROM s3_retention.watermarks") == 2
