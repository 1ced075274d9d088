"""The model of everything that can happen to a policy in time: rules for Hypothesis, and what must hold after each.

Every rule is done to a real ledger and a real store. Workers crash before or after the store has acted, or stall in a
thread of their own with the answer of the store in their hands and go on when the world has moved on.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from psycopg.rows import dict_row

from s3_retention import errors
from s3_retention.store.connection import connect
from tests.factories import CLEANUP, REDRIVE, World
from tests.fakes import AroundGateway

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.outcome import Outcome
    from s3_retention.store.batches import DealtBatch
    from sandbox.ledger import Ledger

DUE = [f"exports/2020-01/{name}.json" for name in "abcdef"]
YOUNG = ["exports/2999-01/young.json", "elsewhere/old.json"]
POLICY: dict[str, Any] = {
    "batch": {"size": 2, "parallel": 1},
    "limits": {"allow_expire_everything": True, "max_commands_per_run": 4},
}
# What a step may answer to a caller that comes late, or too early. Everything else is a fault.
EXPECTED = (
    errors.ClaimLostError,
    errors.PlanRefusedError,
    errors.NotPlannedError,
    errors.UnbalancedError,
    errors.BatchStoppedError,
    errors.ReplayRefusedError,
    errors.NotApprovedError,
)


MAX_STALLED = 3
some_keys = st.sets(st.sampled_from(DUE), min_size=1, max_size=4)


class CrashError(Exception):
    """The worker is dead."""


@dataclass(frozen=True)
class Faulty(AroundGateway):
    """A gateway whose worker crashes, or stalls, round a delete."""

    crash_before: bool = False
    crash_after: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event | None = None

    def delete_chunk(self, targets: Sequence[ObjectFacts], **how: Any) -> list[Outcome]:
        if self.crash_before:
            raise CrashError
        outcomes: list[Outcome] = self.real.delete_chunk(targets, **how)
        if self.crash_after:
            raise CrashError
        self.reached.set()
        if self.go_on is not None:
            assert self.go_on.wait(60)
        return outcomes


@dataclass
class Run:
    """A DagRun: of the cleanup, or of the redrive DAG."""

    run_id: str
    dag: str
    batches: tuple[DealtBatch, ...] = ()
    try_number: int = 1


@dataclass
class Stalled:
    """A worker that stands still between the store's answer and its settle."""

    thread: threading.Thread
    gateway: Faulty
    batch_id: int
    fence: int


class RetentionMachine(RuleBasedStateMachine):
    """Claims, plans, deliveries, crashes, stalls, rescues, replays, redrives and clock moves, in any order."""

    def __init__(self, template: World, ledger: Ledger) -> None:
        """Take a new ledger; `template` has the bucket, which is emptied first."""
        super().__init__()
        self.closing = ExitStack()
        root: psycopg.Connection[dict[str, Any]] = psycopg.connect(
            ledger.superuser_conninfo, row_factory=dict_row, autocommit=True
        )
        self.closing.enter_context(closing(root))
        conn = self.closing.enter_context(closing(connect(ledger.writer_conninfo)))
        self.ledger = ledger
        self.world = replace(template, conn=conn, root=root, changes=POLICY)
        self.offset = 0
        self.runs: list[Run] = []
        self.stalled: list[Stalled] = []
        self.faults: list[BaseException] = []
        self.put_keys: set[str] = set()
        self.watermark: tuple[datetime | None, datetime | None] = (None, None)
        self.move_clock(48 * 60)
        self.denied: set[str] = set()
        self.allow_all()
        for key in sorted(self.world.keys()):
            self.world.admin.delete_object(Bucket=self.world.bucket, Key=key)
        self.world.put(*YOUNG)

    # What happens -----------------------------------------------------------------------------------------
    @initialize(keys=some_keys, denied=st.sets(st.sampled_from(DUE), max_size=3))
    def begin(self, keys: set[str], denied: set[str]) -> None:
        for key in sorted(denied):
            self.deny_or_allow(key)
        self.put(keys)
        self.begin_run()

    @rule(keys=some_keys)
    def put(self, keys: set[str]) -> None:
        self.world.put(*sorted(keys), body=f"{self.offset}-{len(self.runs)}".encode())
        self.put_keys |= keys

    @rule(minutes=st.sampled_from([1, 5, 11, 25, 60, 24 * 60, -5, -60]))
    def move_clock(self, minutes: int) -> None:
        self.offset += minutes
        self.world.set_clock(f"clock_timestamp() + interval '{self.offset} minutes'")

    @rule(key=st.sampled_from(DUE))
    def deny_or_allow(self, key: str) -> None:
        if key in self.denied:
            self.world.s3.allow(self.world.bucket, [key])
        else:
            self.world.s3.deny(self.world.bucket, [key])
        self.denied ^= {key}

    @rule()
    def begin_run(self) -> None:
        run = Run(f"run-{len(self.runs)}", CLEANUP)
        self.runs.append(run)
        self.world.claim(run.run_id)
        self.plan(run)

    @rule(keys=some_keys)
    def do_a_whole_run(self, keys: set[str]) -> None:
        """As it is on most days."""
        self.put(keys)
        self.begin_run()
        self.finish(self.runs[-1])

    @rule()
    def do_a_whole_redrive(self) -> None:
        self.finish(self.redrive())

    @rule(data=st.data())
    @precondition(lambda self: self.runs)
    def clear_a_run(self, data: st.DataObject) -> None:
        """Its first task runs again, as when an operator clears it."""
        run = data.draw(st.sampled_from(self.runs[:-4:-1]))
        run.try_number += 1
        if run.dag == CLEANUP:
            self.world.claim(run.run_id)
            self.plan(run)

    @rule(max_objects=st.sampled_from([None, 0, 2]), canary=st.sampled_from([None, 1, 3]))
    def edit_limits(self, max_objects: int | None, canary: int | None) -> None:
        limits = POLICY["limits"] | {"max_objects": max_objects, "canary": canary}
        self.world = self.world.under(limits=limits)

    @rule(data=st.data(), decision=st.sampled_from(["approved", "approved", "rejected", "timed_out"]))
    @precondition(lambda self: self.cleanups())
    def answer(self, data: st.DataObject, decision: str) -> None:
        """The question of a run is answered; what follows it may come late, or never."""
        run = data.draw(st.sampled_from(self.cleanups()))
        with suppress(*EXPECTED):
            self.world.answer(decision, run.run_id)

    @rule(data=st.data())
    @precondition(lambda self: self.cleanups())
    def deal(self, data: st.DataObject) -> None:
        self.deal_to(data.draw(st.sampled_from(self.cleanups())))

    @rule(data=st.data(), how=st.sampled_from(["whole", "crash before", "crash after"]))
    @precondition(lambda self: self.at_work())
    def deliver(self, data: st.DataObject, how: str) -> None:
        run = data.draw(st.sampled_from(self.at_work()))
        batch = data.draw(st.sampled_from(run.batches))
        gateway: Any = Faulty(self.world.gateway, how == "crash before", how == "crash after")
        with suppress(CrashError, *EXPECTED):
            self.world.through(gateway).delete(batch, run.run_id, dag=run.dag, try_number=run.try_number)
        run.try_number += how != "whole"

    @rule(data=st.data())
    @precondition(lambda self: self.at_work() and len(self.stalled) < MAX_STALLED)
    def stall(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self.at_work()))
        self.stall_in(run, data.draw(st.sampled_from(run.batches)))

    @rule(data=st.data())
    @precondition(lambda self: self.stalled)
    def wake(self, data: st.DataObject) -> None:
        self.let_go(data.draw(st.sampled_from(self.stalled)))

    @rule(data=st.data(), failed=st.booleans())
    @precondition(lambda self: self.at_work())
    def sweep(self, data: st.DataObject, failed: bool) -> None:
        run = data.draw(st.sampled_from(self.at_work()))
        indexes = {batch.map_index for batch in run.batches} if failed else set()
        self.world.sweep(run.run_id, failed=indexes, dag=run.dag)

    @rule(data=st.data())
    @precondition(lambda self: self.runs)
    def report(self, data: st.DataObject) -> None:
        self.end(data.draw(st.sampled_from(self.runs[:-4:-1])))

    @rule()
    def watch(self) -> None:
        self.world.watch()

    @rule()
    def begin_redrive(self) -> None:
        run = Run(f"redrive-{len(self.runs)}", REDRIVE)
        self.runs.append(run)
        run.batches = self.world.select(run.run_id).batches

    @rule(data=st.data())
    def begin_replay(self, data: st.DataObject) -> None:
        keys = self.interval_keys()
        if keys:
            self.replay(data.draw(st.sampled_from(keys)))

    # What must hold ---------------------------------------------------------------------------------------
    @invariant()
    def intervals_tile_time_and_at_most_one_is_unfinished(self) -> None:
        rows = self.world.rows(
            "SELECT starts_at, ends_at, state FROM s3_retention.intervals ORDER BY starts_at"
        )
        ends = [row["ends_at"] for row in rows]
        assert [row["starts_at"] for row in rows[1:]] == ends[:-1]
        assert [row["state"] == "completed" for row in rows[:-1]] == [True] * len(rows[:-1])

    @invariant()
    def the_watermark_only_moves_forward(self) -> None:
        rows = self.world.rows("SELECT position, completed_through FROM s3_retention.watermarks")
        for row in rows:
            position, through = self.watermark
            assert position is None or row["position"] >= position
            assert through is None or row["completed_through"] >= through
            self.watermark = (row["position"], row["completed_through"])

    @invariant()
    def there_is_one_live_claim_on_each_interval_replay_and_batch(self) -> None:
        stale = self.world.value(
            """
            SELECT count(*) FROM (
                SELECT fence, (
                    SELECT max(fence) FROM s3_retention.claims
                    WHERE claims.interval_id = intervals.interval_id AND claims.generation = 0
                ) AS claimed FROM s3_retention.intervals
                UNION ALL
                SELECT fence, (
                    SELECT max(fence) FROM s3_retention.claims
                    WHERE claims.interval_id = replays.interval_id AND claims.generation = replays.generation
                ) FROM s3_retention.replays
                UNION ALL
                SELECT fence, (
                    SELECT coalesce(max(fence), 0) FROM s3_retention.claims
                    WHERE claims.batch_id = batches.batch_id
                ) FROM s3_retention.batches
            ) AS held WHERE fence <> claimed
            """
        )
        assert stale == 0

    @invariant()
    def each_command_ends_once(self) -> None:
        both = self.world.value(
            "SELECT count(*) FROM s3_retention.ledger_entries INNER JOIN s3_retention.quarantine "
            "USING (interval_id, generation, command_id) WHERE resolved_at IS NULL"
        )
        twice = self.world.rows(
            "SELECT command_id FROM s3_retention.ledger_entries WHERE outcome IN ('deleted', 'already_absent') "
            "GROUP BY command_id HAVING count(*) > 1"
        )
        planned_twice = self.world.rows(
            "SELECT command_id FROM s3_retention.unfinished_commands GROUP BY command_id HAVING count(*) > 1"
        )
        waits_twice = self.world.rows(
            "SELECT command_id FROM s3_retention.quarantine WHERE resolved_at IS NULL "
            "GROUP BY command_id HAVING count(*) > 1"
        )
        assert (both, twice, planned_twice, waits_twice) == (0, [], [], [])

    @invariant()
    def the_counts_balance(self) -> None:
        for row in self.world.rows("SELECT interval_id, num_pending FROM s3_retention.balance"):
            assert row["num_pending"] >= 0
            self.world.balance(row["interval_id"])

    @invariant()
    def what_is_gone_is_accounted_for_and_nothing_else_is_gone(self) -> None:
        there = self.world.keys()
        assert set(YOUNG) <= there
        rows = self.world.rows(
            "SELECT key FROM s3_retention.ledger_entries WHERE outcome IN ('deleted', 'already_absent') "
            "UNION SELECT key FROM s3_retention.unfinished_commands "
            "UNION SELECT key FROM s3_retention.quarantine WHERE resolved_at IS NULL"
        )
        assert self.put_keys - there <= {row["key"] for row in rows}

    # At the end --------------------------------------------------------------------------------------------
    def teardown(self) -> None:
        """Let the world calm down: then everything due is gone, and each command has one end."""
        try:
            self.calm_down()
            assert self.faults == []
            assert self.world.keys() == set(YOUNG)
            assert self.world.rows("SELECT * FROM s3_retention.unfinished_commands") == []
            assert self.world.waiting() == {}
            for name in ("intervals", "replays"):
                states = self.world.rows(f"SELECT DISTINCT state FROM s3_retention.{name}")  # noqa: S608
                assert {row["state"] for row in states} <= {"completed"}
            assert self.world.value(
                "SELECT bool_and(completed_through = position) FROM s3_retention.watermarks"
            )
        finally:
            for one in list(self.stalled):
                self.let_go(one)
            self.allow_all()
            self.closing.close()

    def calm_down(self) -> None:
        for one in list(self.stalled):
            self.let_go(one)
        self.allow_all()
        self.edit_limits(None, None)
        self.move_clock(7 * 24 * 60)
        for _ in range(2):
            self.move_clock(60)
            self.world.watch()
            self.finish(self.redrive())
            for key in self.unfinished_replays():
                self.finish(self.replay(key))
        for _ in range(20):
            self.move_clock(60)
            self.begin_run()
            with suppress(*EXPECTED):
                self.world.answer("approved", self.runs[-1].run_id)
            self.deal_to(self.runs[-1])
            self.finish(self.runs[-1])
            if self.world.keys() == set(YOUNG):
                break
        self.finish(self.redrive())
        self.begin_run()
        self.finish(self.runs[-1])
        self.invariants_hold()

    def invariants_hold(self) -> None:
        self.intervals_tile_time_and_at_most_one_is_unfinished()
        self.there_is_one_live_claim_on_each_interval_replay_and_batch()
        self.each_command_ends_once()
        self.the_counts_balance()

    # How it is done ------------------------------------------------------------------------------------------
    def plan(self, run: Run) -> None:
        interval_id = self.world.value(
            "SELECT max(interval_id) FROM s3_retention.claims WHERE run_id = %(run_id)s", run_id=run.run_id
        )
        if interval_id is not None:
            with suppress(*EXPECTED):
                run.batches = self.world.plan(run.run_id, interval_id=interval_id).batches

    def deal_to(self, run: Run) -> None:
        """As deal_batches does: in the middle of a run too, which gets what it was dealt before."""
        interval_id = self.world.value(
            "SELECT max(interval_id) FROM s3_retention.claims WHERE run_id = %(run_id)s", run_id=run.run_id
        )
        if interval_id is not None:
            with suppress(*EXPECTED):
                run.batches = self.world.deal(run.run_id, interval_id=interval_id) or run.batches

    def cleanups(self) -> list[Run]:
        """The last cleanup runs, the newest first."""
        return [run for run in reversed(self.runs) if run.dag == CLEANUP][:3]

    def replay(self, interval_key: str) -> Run:
        run = Run(f"replay-{len(self.runs)}", REDRIVE)
        self.runs.append(run)
        with suppress(*EXPECTED):
            run.batches = self.world.replan(interval_key, run.run_id).batches
        return run

    def redrive(self) -> Run:
        self.begin_redrive()
        return self.runs[-1]

    def finish(self, run: Run) -> None:
        for batch in run.batches:
            with suppress(*EXPECTED):
                self.world.delete(batch, run.run_id, dag=run.dag, try_number=run.try_number)
        self.world.sweep(run.run_id, dag=run.dag)
        self.end(run)

    def end(self, run: Run) -> None:
        with suppress(*EXPECTED):
            if run.dag == REDRIVE:
                self.world.report_redrive(run.run_id)
            elif self.world.rows("SELECT 1 FROM s3_retention.intervals"):
                self.world.report(run.run_id)

    def allow_all(self) -> None:
        if denied := self.world.s3.denied(self.world.bucket):
            self.world.s3.allow(self.world.bucket, denied)
        self.denied = set()

    def interval_keys(self) -> list[str]:
        rows = self.world.rows("SELECT interval_key FROM s3_retention.intervals ORDER BY interval_id")
        return [row["interval_key"] for row in rows]

    def unfinished_replays(self) -> list[str]:
        rows = self.world.rows(
            "SELECT interval_key FROM s3_retention.intervals INNER JOIN s3_retention.replays "
            "USING (interval_id) WHERE replays.state <> 'completed'"
        )
        return [row["interval_key"] for row in rows]

    def at_work(self) -> list[Run]:
        """The last runs that have batches, the newest first: an old one is of little interest."""
        return [run for run in reversed(self.runs) if run.batches][:3]

    def stall_in(self, run: Run, batch: DealtBatch) -> None:
        faulty = Faulty(self.world.gateway, go_on=threading.Event())
        gateway: Any = faulty
        try_number = run.try_number

        def work() -> None:
            try:
                with closing(connect(self.ledger.writer_conninfo)) as own:
                    own_world = replace(self.world, conn=own, gateway=gateway)
                    own_world.delete(batch, run.run_id, dag=run.dag, try_number=try_number)
            except EXPECTED:
                pass
            except BaseException as fault:  # noqa: BLE001 - told at the end, in the main thread
                self.faults.append(fault)
            finally:
                faulty.reached.set()

        thread = threading.Thread(target=work)
        thread.start()
        assert faulty.reached.wait(60)
        self.stalled.append(Stalled(thread, faulty, batch.batch_id, self.fence_of(batch.batch_id)))
        run.try_number += 1

    def let_go(self, one: Stalled) -> None:
        self.stalled.remove(one)
        before, is_taken = self.num_settled(one.batch_id), self.fence_of(one.batch_id) != one.fence
        if one.gateway.go_on is not None:
            one.gateway.go_on.set()
        one.thread.join(60)
        assert not one.thread.is_alive()
        # A worker whose claim was taken over meanwhile writes nothing.
        assert not is_taken or self.num_settled(one.batch_id) == before

    def fence_of(self, batch_id: int) -> int:
        fence: int = self.world.value(
            "SELECT fence FROM s3_retention.batches WHERE batch_id = %(batch_id)s", batch_id=batch_id
        )
        return fence

    def num_settled(self, batch_id: int) -> int:
        settled: int = self.world.value(
            "SELECT count(*) FROM s3_retention.ledger_entries WHERE batch_id = %(batch_id)s",
            batch_id=batch_id,
        )
        return settled
