"""One of many processes that claim, work, die and come late. `python -m tests.faults.claimer` reads its task from
standard input, waits for a second line to start with the others, and writes what it met as one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import traceback
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))

from s3_retention.core.outcome import Final, Outcome
from s3_retention.errors import ClaimLostError, NotPlannedError, UnbalancedError
from s3_retention.steps.claim import ClaimStatus
from s3_retention.store import batches, chunks, intervals, ledger_entries
from s3_retention.store.connection import connect
from tests.factories import BUCKET, Pages, World, facts, holder
from tests.fakes import AroundGateway, asked, deleted, fake_gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.store.connection import Connection

CHANGES = {"window": {"safety_delay": "0s", "lease": "30s"}, "batch": {"size": 2}}
"""What makes the policy of all claimers quick to tick, and its batches small."""
SEAMS = ("before the end of the plan", "after a delete", "before the report")
FATES = (
    "leaves", "works", "comes late", "works", "stalls", "works", SEAMS[0], "works", "works", "stalls",
    "comes late", "works", SEAMS[1], "works", "works", "stalls", "works", SEAMS[2], "works",
)  # fmt: skip
"""Dealt in turn to the claims of intervals, whoever makes them: how many each process gets is the scheduler's."""
TAKEN_OVER = (ClaimLostError, NotPlannedError, UnbalancedError)
"""What a run may meet whose lease was over before it was done."""
LOST, BROKEN = 10, 11
"""How a process ends that should have been killed: its claim was taken over before, or something broke."""
LATE = "late"


def world_of(conn: Connection, **more: Any) -> World:
    """The world of the claimers: a ledger, and a store that says of each delete that it is done."""
    given: dict[str, Any] = dict.fromkeys(("root", "s3", "admin"))
    gateway = fake_gateway(delete_objects=lambda **request: deleted(*asked(request)))
    return World(conn=conn, **(given | {"gateway": gateway, "bucket": BUCKET, "changes": CHANGES} | more))


def lapse(conn: Connection, run: str) -> None:
    """Let the leases of a run be over now: the shortest that a policy may name is 30 seconds."""
    over = "SET claimed_until = s3_retention.clock()"
    conn.execute(f"UPDATE s3_retention.batches {over} WHERE run_id = %s AND closed_at IS NULL", [run])
    who = [holder(run=run).run]
    conn.execute(f"UPDATE s3_retention.intervals {over} WHERE claimed_by = %s AND state <> 'completed'", who)


def work(world: World, run: str, interval_id: int, num_objects: int) -> None:
    """All that a run does after its claim, but the report."""
    keys = [f"exports/2020-01/{run}-{number}.json" for number in range(num_objects)]
    source: Any = Pages([[facts(key) for key in keys]])
    for batch in world.plan(run, interval_id=interval_id, source=source).batches:
        world.delete(batch, run)
    world.sweep(run)


@dataclass(frozen=True)
class Late:
    """A worker that took what it took, and comes back when others have it."""

    interval_id: int
    fence: int
    batch: batches.ClaimedBatch | None = None
    chunk_id: int | None = None
    settled: list[Any] = field(default_factory=list)

    @classmethod
    def leave(cls, world: World, run: str, interval_id: int, num_objects: int) -> Late:
        """Plan, take the first batch, and go away with both claims in hand."""
        source: Any = Pages(
            [[facts(f"exports/2020-01/{run}-{number}.json") for number in range(num_objects)]]
        )
        dealt = world.plan(run, interval_id=interval_id, source=source).batches
        query = "SELECT max(fence) FROM s3_retention.claims WHERE interval_id = %s AND run_id = %s"
        fence = one_value(world.conn, query, interval_id, run)
        if not dealt:
            return cls(interval_id, fence)
        lease = world.policy.window.lease
        batch = batches.claim(world.conn, dealt[0].batch_id, holder=holder(run=run, map_index=0), lease=lease)
        if batch is None:
            raise ClaimLostError  # others had it all done by now
        done = Outcome(Final.DELETED, request_id=LATE)
        chunk_id, *_ = chunks.list_open(world.conn, batch_id=batch.batch_id)
        settled = [
            (one, done, 1) for one in chunks.list_unfinished(world.conn, chunk_id=chunk_id, fence=batch.fence)
        ]
        return cls(interval_id, fence, batch, chunk_id, settled)

    def is_taken_over(self, conn: Connection) -> bool:
        if self.batch is not None:
            of_batch = "SELECT fence FROM s3_retention.batches WHERE batch_id = %s"
            if one_value(conn, of_batch, self.batch.batch_id) == self.batch.fence:
                return False
        of_interval = "SELECT fence FROM s3_retention.intervals WHERE interval_id = %s"
        return bool(one_value(conn, of_interval, self.interval_id) > self.fence)

    def come(self, world: World) -> int:
        """Do with the old fences what a worker does: the number of refusals, which all of it must meet."""
        conn, batch, lease = world.conn, self.batch, world.policy.window.lease
        num = int(is_refused(lambda: intervals.renew(conn, self.interval_id, fence=self.fence, lease=lease)))
        if batch is not None:
            settled, chunk_id = self.settled, self.chunk_id
            num += is_refused(
                lambda: ledger_entries.settle(conn, batch, settled, chunk_id=chunk_id, lease=lease)
            )
        return num


def one_value(conn: Connection, query: str, *parameters: object) -> Any:
    (row,) = conn.execute(query, parameters).fetchall()
    return next(iter(row.values()))


def is_refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except ClaimLostError:
        return True
    return False


@dataclass
class Met:
    """What a claimer met. `broken` must stay empty."""

    statuses: Counter[str] = field(default_factory=Counter)
    interval_ids: set[int] = field(default_factory=set)
    num_killed: int = 0
    num_left: int = 0
    num_taken_over: int = 0
    num_late: int = 0
    num_refused: int = 0
    broken: list[str] = field(default_factory=list)


@dataclass
class Claimer:
    """A process that claims once per round, each time as another run."""

    world: World
    conninfo: str
    chance: random.Random
    met: Met = field(default_factory=Met)
    away: list[Late] = field(default_factory=list)

    def round(self, run: str) -> None:
        num_objects = self.chance.randrange(4)
        try:
            self.return_late()
            claimed = self.world.claim(run)
            self.met.statuses[claimed.status.value] += 1
            if claimed.status is ClaimStatus.CLAIMED and claimed.interval_id is not None:
                self.met.interval_ids.add(claimed.interval_id)
                self.live(run, claimed.interval_id, self.fate(), num_objects)
        except TAKEN_OVER:
            self.met.num_taken_over += 1
        except Exception:  # noqa: BLE001 - a deadlock, a refused row: all that must not be
            self.met.broken.append(traceback.format_exc())

    def fate(self) -> str:
        """What becomes of the claim just made: that of the next one is the next fate."""
        return FATES[one_value(self.world.conn, "SELECT nextval('fates')") % len(FATES)]

    def live(self, run: str, interval_id: int, fate: str, num_objects: int) -> None:
        if fate in SEAMS:
            self.send_to_death(run, interval_id, fate, num_objects)
        elif fate == "comes late":
            self.away.append(Late.leave(self.world, run, interval_id, num_objects))
        elif fate == "leaves":
            self.met.num_left += 1
        if fate != "works":
            lapse(self.world.conn, run)
        if fate in ("works", "stalls"):
            work(self.world, run, interval_id, num_objects)
            self.world.report(run, interval_id=interval_id)

    def return_late(self) -> None:
        for late in [one for one in self.away if one.is_taken_over(self.world.conn)]:
            self.away.remove(late)
            self.met.num_late += 1 if late.batch is None else 2
            self.met.num_refused += late.come(self.world)

    def send_to_death(self, run: str, interval_id: int, seam: str, num_objects: int) -> None:
        pid = os.fork()
        if pid == 0:
            doomed(self.conninfo, run, interval_id, seam, num_objects)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code == -signal.SIGKILL:
            self.met.num_killed += 1
        elif code == LOST:
            self.met.num_taken_over += 1
        else:
            self.met.broken.append(f"{run}, {seam}: exit {code}, see the standard error")


def die(*_: object, **__: object) -> Any:
    """End as the kernel ends a process that has no memory left."""
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly(AroundGateway):
    """A gateway whose process does not survive its first delete."""

    def delete_chunk(self, targets: Sequence[ObjectFacts], **how: Any) -> Any:
        self.real.delete_chunk(targets, **how)
        die()


def doomed(conninfo: str, run: str, interval_id: int, seam: str, num_objects: int) -> NoReturn:
    """Work until the seam and be killed there. What was forked is left alone: neither end runs a finalizer."""
    try:
        with closing(connect(conninfo)) as own:
            world = world_of(own)
            if seam == "before the end of the plan":
                intervals.mark_planned = die
            elif seam == "after a delete":
                deadly: Any = Deadly(world.gateway)
                world = world.through(deadly)
            work(world, run, interval_id, num_objects)
            die()
    except TAKEN_OVER:
        os._exit(LOST)
    except BaseException:  # noqa: BLE001 - its exit says so
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(BROKEN)


def main() -> None:
    task = json.loads(sys.stdin.readline())
    with closing(connect(task["conninfo"])) as conn:
        chance = random.Random(task["number"])  # noqa: S311 - the same fates in each test run
        claimer = Claimer(world_of(conn), task["conninfo"], chance)
        print("ready", flush=True)  # noqa: T201
        sys.stdin.readline()
        for number in range(task["num_rounds"]):
            claimer.round(f"run-{task['number']}-{number}")
    met = vars(claimer.met) | {"interval_ids": sorted(claimer.met.interval_ids)}
    print(json.dumps(met))  # noqa: T201


if __name__ == "__main__":
    main()
