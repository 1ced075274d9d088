"""Eight processes claim one policy at once, 200 rounds each; some are killed, some stall, leave or come late."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from s3_retention.errors import ClaimLostError, LedgerConflictError
from s3_retention.steps import plan
from s3_retention.steps.claim import use_policy_version
from s3_retention.store.connection import connect
from tests.factories import Pages, World, facts
from tests.faults.claimer import world_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_retention.store.connection import Connection
    from sandbox.ledger import Ledger

# One fight for all tests of this file, and so one process.
pytestmark = pytest.mark.xdist_group("fight")

REPOSITORY = Path(__file__).parents[2]
NUM_CLAIMERS = 8
NUM_ROUNDS = 200


@dataclass(frozen=True)
class Fought:
    """What is left when all is over: the ledger, and what the claimers say that they met."""

    world: World
    statuses: Counter[str]
    interval_ids: set[int]
    counts: Counter[str]
    broken: list[str]

    def rows(self, query: str) -> list[dict[str, Any]]:
        return self.world.rows(query)


def fight(ledger: Ledger) -> list[dict[str, Any]]:
    """Let the claimers begin together, and wait for what each met."""
    with ExitStack() as stack:
        claimers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.faults.claimer"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    cwd=REPOSITORY,
                )
            )
            for _ in range(NUM_CLAIMERS)
        ]
        for claimer in claimers:
            stack.callback(claimer.kill)
        for number, claimer in enumerate(claimers):
            say(claimer, {"number": number, "num_rounds": NUM_ROUNDS, "conninfo": ledger.writer_conninfo})
        for claimer in claimers:
            assert claimer.stdout is not None
            if claimer.stdout.readline() != "ready\n":
                raise AssertionError(claimer.communicate()[1])
        for claimer in claimers:
            say(claimer, "go")
        ends = [claimer.communicate(timeout=240) for claimer in claimers]
        assert [claimer.returncode for claimer in claimers] == [0] * NUM_CLAIMERS, [end[1] for end in ends]
        met = [json.loads(out) for out, _ in ends]
        for one, (_, words) in zip(met, ends, strict=True):
            one["broken"] += [words] if words else []
        return met


def say(claimer: subprocess.Popen[str], what: Any) -> None:
    assert claimer.stdin is not None
    claimer.stdin.write(json.dumps(what) + "\n")
    claimer.stdin.flush()


@pytest.fixture(scope="module")
def fought(migrated: Ledger) -> Iterator[Fought]:
    """One fight, and after it one more run, which takes up what the last ones left."""
    ledger = migrated.fresh_ledger()
    root: psycopg.Connection[dict[str, Any]]
    with (
        closing(psycopg.connect(ledger.superuser_conninfo, row_factory=dict_row, autocommit=True)) as root,
        closing(connect(ledger.writer_conninfo)) as conn,
    ):
        root.execute("SET TIME ZONE 'UTC'")
        root.execute("CREATE SEQUENCE fates MINVALUE 0")
        root.execute("GRANT USAGE ON SEQUENCE fates TO PUBLIC")
        world = world_of(conn, root=root)
        met = fight(ledger)
        world.expire_leases()
        last = world.claim("the-last")
        assert last.interval_id is not None
        nothing: Any = Pages([[]])
        for batch in world.plan("the-last", interval_id=last.interval_id, source=nothing).batches:
            world.delete(batch, "the-last")
        world.report("the-last", interval_id=last.interval_id)
        yield Fought(
            world,
            statuses=sum((Counter(one["statuses"]) for one in met), Counter()),
            interval_ids={last.interval_id, *(number for one in met for number in one["interval_ids"])},
            counts=sum(
                (Counter({k: v for k, v in one.items() if isinstance(v, int)}) for one in met), Counter()
            ),
            broken=[words for one in met for words in one["broken"]],
        )
    ledger.drop()


def test_nobody_meets_a_deadlock_or_a_refused_row_and_each_fate_was_met(fought: Fought) -> None:
    assert fought.broken == []
    assert set(fought.statuses) == {"claimed", "observed"}
    assert fought.statuses.total() == NUM_CLAIMERS * NUM_ROUNDS
    for what in ("num_killed", "num_left", "num_late", "num_taken_over"):
        assert fought.counts[what] > 0, what


def test_the_intervals_cover_time_without_hole_or_overlap_up_to_the_watermark(fought: Fought) -> None:
    rows = fought.rows(
        """
        SELECT interval_id, state, starts_at, ends_at, lag(ends_at) OVER by_start AS ended_at
        FROM s3_retention.intervals WINDOW by_start AS (ORDER BY starts_at) ORDER BY starts_at
        """
    )
    assert len(rows) > NUM_CLAIMERS
    assert rows[0]["starts_at"].isoformat() == "1970-01-01T00:00:00+00:00"
    assert all(row["ended_at"] == row["starts_at"] for row in rows[1:])
    assert {row["state"] for row in rows} == {"completed"}
    assert fought.rows("SELECT position, completed_through FROM s3_retention.watermarks") == [
        {"position": rows[-1]["ends_at"], "completed_through": rows[-1]["ends_at"]}
    ]
    # Each that somebody was told is his is there, and nobody else's.
    assert {row["interval_id"] for row in rows} == fought.interval_ids


def test_never_were_two_intervals_unfinished_at_once(fought: Fought) -> None:
    overlapping = """
        SELECT * FROM (
            SELECT interval_id, first_claimed_at, lag(completed_at) OVER (ORDER BY starts_at) AS ended_at
            FROM s3_retention.intervals
        ) AS pairs WHERE first_claimed_at < ended_at
    """
    assert fought.rows(overlapping) == []


def test_each_claim_has_a_fence_of_its_own_and_fences_grow_by_one(fought: Fought) -> None:
    claims = """
        SELECT * FROM (
            SELECT *, row_number() OVER (PARTITION BY interval_id, batch_id ORDER BY claim_id) AS place
            FROM s3_retention.claims
        ) AS numbered WHERE fence <> place
    """
    assert fought.rows(claims) == []
    newest = """
        SELECT interval_id FROM s3_retention.intervals
        WHERE fence <> (SELECT count(*) FROM s3_retention.claims WHERE claims.interval_id = intervals.interval_id)
        UNION ALL
        SELECT batch_id FROM s3_retention.batches
        WHERE fence <> (SELECT count(*) FROM s3_retention.claims WHERE claims.batch_id = batches.batch_id)
    """
    assert fought.rows(newest) == []


def test_every_planned_command_has_one_entry_and_the_plan_was_made_once(fought: Fought) -> None:
    (found,) = fought.rows(
        """
        SELECT
            (SELECT sum(num_discovered) FROM s3_retention.intervals) AS num_discovered,
            (SELECT count(*) FROM s3_retention.commands) AS num_commands,
            (SELECT count(*) FROM s3_retention.ledger_entries) AS num_entries,
            (SELECT count(DISTINCT key) FROM s3_retention.ledger_entries) AS num_keys,
            (SELECT count(*) FROM s3_retention.quarantine) AS num_quarantined
        """
    )
    num = found["num_discovered"]
    assert num > 0
    assert list(found.values()) == [num, num, num, num, 0]


def test_nothing_is_settled_under_a_fence_that_another_claim_has_passed(fought: Fought) -> None:
    assert fought.counts["num_late"] == fought.counts["num_refused"] > 0
    assert fought.rows("SELECT key FROM s3_retention.ledger_entries WHERE request_id = 'late'") == []
    passed = """
        SELECT entry.key FROM s3_retention.ledger_entries AS entry
        INNER JOIN s3_retention.claims ON entry.batch_id = claims.batch_id
        WHERE claims.fence > entry.fence AND claims.claimed_at < entry.settled_at
    """
    assert fought.rows(passed) == []
    nobodys = """
        SELECT entry.key FROM s3_retention.ledger_entries AS entry
        LEFT JOIN s3_retention.claims ON entry.batch_id = claims.batch_id AND entry.fence = claims.fence
        WHERE claims.claim_id IS NULL
    """
    assert fought.rows(nobodys) == []


@pytest.mark.parametrize("does", ["claims", "claims and plans"])
def test_a_run_that_is_overtaken_as_it_begins_to_plan_takes_nothing_back(
    conn: Connection, root: Connection, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    world = world_of(conn, root=root)
    source: Any = Pages([[facts("exports/2020-01/a.json")]])
    claimed = world.claim("slow")
    world.expire_leases()
    owner = "slow"

    def be_overtaken(*arguments: Any) -> None:
        """The slow run has looked whose the interval is. The quick one may wait for it, or be first."""
        nonlocal owner
        monkeypatch.undo()
        with closing(connect(ledger.writer_conninfo)) as own, suppress(LedgerConflictError):
            own.execute("SET lock_timeout = '200ms'")
            other = replace(world, conn=own)
            assert other.claim("quick") == claimed
            owner = "quick"
            if does == "claims and plans":
                other.plan("quick", source=source)
        use_policy_version(*arguments)

    monkeypatch.setattr(plan, "use_policy_version", be_overtaken)
    try:
        world.plan("slow", source=source)
        went_on = "slow"
    except ClaimLostError:
        went_on = "quick"
    assert went_on == owner
    (batch,) = world.plan(owner, source=source).batches
    assert world.delete(batch, owner).num_by_outcome == {"deleted": 1}
    assert world.value("SELECT count(*) FROM s3_retention.commands") == 1


def test_each_claim_that_found_another_run_at_work_is_counted(fought: Fought) -> None:
    (row,) = fought.rows("SELECT * FROM s3_retention.watermarks")
    assert row["num_claim_conflicts"] == fought.statuses["observed"] > 0
