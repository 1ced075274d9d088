"""Strikes a pipeline at a seam, lets the world recover, and holds bucket, ledger and quarantine against the truth."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from s3_retention.errors import S3RetentionError
from tests.factories import NAME
from tests.faults.pipeline import LOST_ITS_CLAIM, run_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.ledger import Ledger
    from tests.factories import World

REPOSITORY = Path(__file__).parents[2]
CUSTOMERS = "abc"
KEPT = {f"exports/2020-03/{customer}.json" for customer in CUSTOMERS} | {"elsewhere/2020-01/x.json"}
DUE = {f"exports/2020-0{month}/{customer}.json" for month in (1, 2) for customer in CUSTOMERS}
DENIED = ["exports/2020-01/a.json", "exports/2020-01/b.json"]
LATER = "exports/2019-12/late.json"  # its customer has but one object besides, which is kept
CHANGES: dict[str, Any] = {
    "schedule": "0 * * * *",
    "keep": {"latest": 1, "group_by": ["customer"]},
    "batch": {"size": 2, "parallel": 1, "rate": 100_000},
}


class Task(TypedDict):
    """What the process is told."""

    pipeline: str
    run: str
    more: dict[str, Any]
    seam: str
    visit: int
    act: str
    into: str
    bucket: str
    changes: dict[str, Any]
    writer: str
    root: str
    store: list[str]


class Zygote:
    """A process that has everything imported, and forks one that dies."""

    def __init__(self) -> None:
        """Start it."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.pipeline"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )

    def say(self, what: object) -> dict[str, Any]:
        """Send a line and wait for the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        """End it: it reads to the end of its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()


@dataclass(frozen=True)
class Verdict:
    """What is wrong after the recovery; nothing, if all is well."""

    lost: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
    unbalanced: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Say whether anything is wrong."""
        return bool(self.lost or self.doubled or self.unbalanced)


@dataclass
class FaultStory:
    """One world in which one pipeline is struck at one seam."""

    world: World
    ledger: Ledger
    zygote: Zygote
    pipeline: str
    run: str = "run-1"
    hours: int = 48

    def __post_init__(self) -> None:
        """Bring the world to where the pipeline begins."""
        self.world = replace(self.world.under(**CHANGES), knows_store=False)
        self.move_clock(0)
        self.world.put(*KEPT, *DUE)
        self.world.s3.deny(self.world.bucket, DENIED)
        self.more: dict[str, Any] = {}
        if self.pipeline in {"cleanup", "rejected"}:
            return
        if self.pipeline == "stopped":
            self.world.under(schedule="30 * * * *").watch()
            return
        if self.pipeline == "observed":
            self.world.claim("another-run")
            return
        run_tasks(self.world, "cleanup", "run-0")
        if self.pipeline == "redrive":
            self.world.s3.allow(self.world.bucket, DENIED[:1])
        elif self.pipeline in {"replay", "replay_again"}:
            self.world.put(LATER, LATER.replace("2019-12", "2020-03"))
            self.more = {"interval_key": self.world.interval_key()}
            if self.pipeline == "replay_again":
                self.strike("replay.delete_batch: store: a delete", pipeline="replay", run="lost-replay")
                self.move_clock(1)
        elif self.pipeline == "watch":
            # A cleanup, a redrive and a replay whose workers are gone, and ticks that did not run.
            self.world.put(LATER, LATER.replace("2019-12", "2020-03"))
            self.world.watch()
            (row,) = self.world.rows("SELECT interval_key FROM s3_retention.intervals")
            self.strike(
                "replay.delete_batch: store: a delete", pipeline="replay", run="lost-replay", more=row
            )
            self.strike(
                "redrive.delete_batch: store: a delete", pipeline="redrive", run="lost-redrive", more={}
            )
            self.move_clock(1)
            self.world.put("exports/2020-02/d.json", "exports/2020-03/d.json")
            self.strike("cleanup.delete_batch: store: a delete", pipeline="cleanup", run="lost-run", more={})
            self.move_clock(3)

    def move_clock(self, hours: int) -> None:
        """Let time go by for the ledger."""
        self.hours += hours
        self.world.set_clock(f"clock_timestamp() + interval '{self.hours} hours'")

    def strike(
        self, seam: str, visit: int = 1, *, act: str = "kill", into: str = "", **task: Any
    ) -> dict[str, Any]:
        """Run the pipeline in a process of its own up to a seam; how that ended."""
        worker = self.world.s3.worker
        told: Task = {
            "pipeline": task.get("pipeline", self.pipeline),
            "run": task.get("run", self.run),
            "more": task.get("more", self.more),
            "seam": seam,
            "visit": visit,
            "act": act,
            "into": into,
            "bucket": self.world.bucket,
            "changes": self.world.changes,
            "writer": self.ledger.writer_conninfo,
            "root": self.ledger.superuser_conninfo,
            "store": [self.world.s3.endpoint, worker.access_key, worker.secret_key],
        }
        answer = self.zygote.say(told)
        if act == "kill":
            assert answer["ended"] == -signal.SIGKILL, f"{seam} was not passed: {answer}"
        return answer

    # What comes after ---------------------------------------------------------------------------------------
    def recover(self, *, is_retried: bool) -> None:
        """Airflow tries the run again; or it is lost for good, and the watch and other runs come. Then all settles."""
        if is_retried:
            self.tolerantly(self.pipeline, self.run, try_number=2, **self.more)
        else:
            self.move_clock(2)
            self.world.watch()
        self.settle_down()

    def stall(self, seam: str) -> tuple[str, ...]:
        """Stop the process at a seam until all has settled without it, and let it go on: what is wrong with that."""
        stopped = self.strike(seam, act="stop")
        assert stopped["stopped"], f"{seam} was not passed: {stopped}"
        self.move_clock(2)
        self.settle_down()
        before = self.records()
        answer = self.zygote.say(stopped["pid"])
        wrong = []
        # One that had nothing in its hands finds that nothing is left to do.
        allowed = {LOST_ITS_CLAIM} if seam.endswith("store: a delete") else {LOST_ITS_CLAIM, 0}
        if answer["ended"] not in allowed:
            wrong.append(f"it ended with {answer['ended']}, not because its claim was lost")
        if self.records() != before:
            wrong.append("it wrote after its claim was lost")
        return tuple(wrong)

    def records(self) -> list[dict[str, Any]]:
        """Everything that says how a command ended."""
        return self.world.rows(
            "SELECT encode(command_id, 'hex') AS id, outcome AS said, settled_at AS at "
            "FROM s3_retention.ledger_entries "
            "UNION ALL SELECT encode(command_id, 'hex'), resolution, resolved_at FROM s3_retention.quarantine "
            "UNION ALL SELECT policy, num_claim_conflicts::text, completed_through FROM s3_retention.watermarks "
            "ORDER BY 1, 2"
        )

    def settle_down(self) -> None:
        """Some days later: what was denied is allowed, the watch has passed, and other runs have come and gone."""
        if denied := self.world.s3.denied(self.world.bucket):
            self.world.s3.allow(self.world.bucket, denied)
        for number in range(2):
            self.move_clock(2)
            self.world.watch()
            self.tolerantly("redrive", f"later-redrive-{number}")
            for row in self.world.rows(
                "SELECT interval_key FROM s3_retention.replays "
                "INNER JOIN s3_retention.intervals USING (interval_id) WHERE replays.state <> 'completed'"
            ):
                self.tolerantly("replay", f"later-replay-{number}", **row)
            self.move_clock(2)
            self.tolerantly("cleanup", f"later-run-{number}")

    def tolerantly(self, pipeline: str, run: str, **more: Any) -> None:
        """Run a pipeline here; that a run is red is for the operator, and what it left is for the verdict."""
        try:
            run_tasks(self.world, pipeline, run, **more)
        except S3RetentionError:
            return

    # The truth ------------------------------------------------------------------------------------------------
    def judge(self) -> Verdict:
        """Hold everything against what must be."""
        there = self.world.keys()
        due = {row["key"] for row in self.world.rows("SELECT key FROM s3_retention.commands")}
        newest = {key for key in there if key.startswith("exports/2020-03/")} | KEPT
        gone = due - there
        ended = [
            row["key"]
            for row in self.world.rows(
                "SELECT key FROM s3_retention.ledger_entries WHERE outcome IN ('deleted', 'already_absent')"
            )
        ]
        lost = [f"{key} is gone and must be kept" for key in sorted(newest - there)]
        lost += [f"{key} must be gone" for key in sorted(there - newest)]
        lost += [f"{key} is gone without a record" for key in sorted((DUE | gone) - set(ended))]
        doubled = [
            f"{key} ended {ended.count(key)} times" for key in sorted(set(ended)) if ended.count(key) > 1
        ]
        doubled += [
            f"{row['key']} is in ledger and quarantine"
            for row in self.world.rows(
                "SELECT quarantine.key FROM s3_retention.quarantine INNER JOIN s3_retention.ledger_entries "
                "USING (interval_id, generation, command_id) WHERE resolved_at IS NULL"
            )
        ]
        return Verdict(tuple(lost), tuple(doubled), tuple(self.find_unbalanced()))

    def find_unbalanced(self) -> Iterator[str]:
        """Find what is open, pending, or does not tile."""
        for row in self.world.rows("SELECT * FROM s3_retention.balance"):
            settled = sum(row[f"num_{name}"] for name in ("deleted", "already_absent", "changed", "kept"))
            if row["num_pending"] or row["num_discovered"] != settled + row["num_quarantined"]:
                yield f"{row}"
        for table in ("intervals", "replays"):
            for row in self.world.rows(f"SELECT * FROM s3_retention.{table} WHERE state <> 'completed'"):  # noqa: S608
                yield f"{table}: {row}"
        for key, failure_class in self.world.waiting().items():
            yield f"{key} waits as {failure_class}"
        rows = self.world.rows("SELECT starts_at, ends_at FROM s3_retention.intervals ORDER BY starts_at")
        if [row["starts_at"] for row in rows[1:]] != [row["ends_at"] for row in rows[:-1]]:
            yield f"intervals do not tile: {rows}"
        if not self.world.value(
            "SELECT completed_through = position FROM s3_retention.watermarks WHERE policy = %(policy)s",
            policy=NAME,
        ):
            yield "the watermark is not completed through its position"
