"""The tasks of a DagRun in a process of its own, that dies or stands still at a seam.

`python -m tests.faults.pipeline` reads one task a line, as JSON, and forks a process for it: the imports are paid for
once. It answers with one line a task: how the process ended, or that it stands still; a line with its id lets it go on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))

import boto3
import psycopg
from botocore.config import Config
from psycopg.rows import dict_row

from s3_retention.core.holder import Holder
from s3_retention.core.restore import RestoreForm
from s3_retention.errors import S3RetentionError
from s3_retention.s3.gateway import S3Gateway
from s3_retention.steps import restore
from s3_retention.store.connection import connect
from tests.factories import REDRIVE, World
from tests.faults.seams import SeamedStore, Seams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from s3_retention.steps.restore import RestoreResult
    from s3_retention.store.batches import DealtBatch
    from tests.faults.story import Task

LOST_ITS_CLAIM = 3
OTHER_ERROR = 4


@dataclass(frozen=True)
class Dealt:
    """What deal_batches gives."""

    batches: tuple[DealtBatch, ...]


@lru_cache
def store(endpoint: str, access_key: str, secret_key: str) -> S3Gateway:
    """The gateway as a worker has it. It has no connection before its first request, so that it may be forked."""
    client = boto3.Session().client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )
    return S3Gateway(client)


def tasks_of(
    world: World, pipeline: str, run: str, try_number: int = 1, **more: Any
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Give the tasks of a DagRun one after the other, with their names, as Airflow would run them."""
    if pipeline == "watch":
        yield "watch_policies", world.watch
        return
    if pipeline == "restore":
        yield "restore_objects", lambda: restore_bucket(world, run, try_number)
        return
    got: list[Any] = []
    is_cleanup = pipeline in {"cleanup", "stopped", "observed", "rejected"}
    dag: dict[str, str] = {} if is_cleanup else {"dag": REDRIVE}
    if is_cleanup:
        now: datetime = world.value("SELECT s3_retention.clock() AS now")
        tick = now.replace(minute=0, second=0, microsecond=0)
        yield "flag_missed_intervals", lambda: world.flag(tick, run=run)
        yield "claim_interval", lambda: got.append(world.claim(run))
        (claim,) = got
        if claim.status.value != "claimed":
            return
        # In "rejected" it is over a limit. Whoever comes upon a question later answers it with yes.
        limits = world.changes.get("limits", {}) | {"allow_expire_everything": True, "max_objects": 1}
        planner = world.under(limits=limits) if pipeline == "rejected" else world
        yield "plan_commands", lambda: got.append(planner.plan(run, interval_id=claim.interval_id))
        if got[-1].is_waiting:
            answer = "rejected" if pipeline == "rejected" else "approved"
            yield "approve_plan", lambda: world.answer(answer, run)
            yield (
                "deal_batches",
                lambda: got.append(Dealt(planner.deal(run, interval_id=claim.interval_id))),
            )
    elif pipeline == "redrive":
        yield "select_commands", lambda: got.append(world.select(run))
    else:
        yield "select_commands", lambda: got.append(world.replan(more["interval_key"], run))
    for batch in got[-1].batches:
        # In "stopped" the policy was set back to simulate after the plan.
        worker = world.under(mode="simulate") if pipeline == "stopped" else world
        yield (
            "delete_batch",
            lambda batch=batch, worker=worker: worker.delete(batch, run, try_number=try_number, **dag),  # type: ignore[misc]
        )
    yield "quarantine_failed", lambda: world.sweep(run, **dag)  # type: ignore[arg-type]
    if is_cleanup:
        yield "report_run", lambda: world.report(run, interval_id=claim.interval_id)
    else:
        yield "report_run", lambda: world.report_redrive(run)


def restore_bucket(world: World, run: str, try_number: int) -> RestoreResult:
    """Bring back what was deleted from the bucket."""
    form = RestoreForm(bucket=world.bucket, is_dry_run=False, note="was too much")
    holder = Holder("s3_retention_restore", run, "restore_objects", try_number=try_number)
    return restore.run(world.conn, world.gateway, form, holder, acted_by="ann")


def run_tasks(world: World, pipeline: str, run: str, try_number: int = 1, **more: Any) -> None:
    """Run all tasks of a DagRun."""
    for _, task in tasks_of(world, pipeline, run, try_number, **more):
        task()


def work(task: Task) -> int:
    """Run a task in this process, which may not survive it: its exit code."""
    seam, visit, act = task["seam"], task["visit"], task["act"]
    visited: list[str] = []

    def at(passed: str, times: int) -> None:
        visited.append(passed)
        if (passed, times) == (seam, visit):
            # As the kernel ends a process that has no memory left, or a machine that is suspended.
            os.kill(os.getpid(), signal.SIGKILL if act == "kill" else signal.SIGSTOP)

    seams = Seams(at)
    real = store(*task["store"])
    root: psycopg.Connection[dict[str, Any]] = psycopg.connect(
        task["root"], row_factory=dict_row, autocommit=True
    )
    with closing(root), closing(connect(task["writer"])) as conn:
        seamed: Any = SeamedStore(real, seams)
        nothing: Any = None
        world = World(
            conn, root, nothing, nothing, seamed, task["bucket"], task["changes"], knows_store=False
        )
        seams.install()
        try:
            for name, do in tasks_of(world, task["pipeline"], task["run"], **task["more"]):
                seams.task = f"{task['pipeline']}.{name}"
                do()
        except S3RetentionError as error:
            return LOST_ITS_CLAIM if type(error).__name__ == "ClaimLostError" else OTHER_ERROR
        finally:
            if act == "record":
                Path(task["into"]).write_text(json.dumps(visited))
    return 0


def main() -> None:
    for line in sys.stdin:
        said = json.loads(line)
        if isinstance(said, int):
            pid = said
            os.kill(pid, signal.SIGCONT)
        else:
            store(*said["store"])
            pid = os.fork()
            if pid == 0:
                code = OTHER_ERROR
                try:
                    code = work(said)
                finally:
                    os._exit(code)
        _, status = os.waitpid(pid, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status)
        ended = None if stopped else os.waitstatus_to_exitcode(status)
        sys.stdout.write(json.dumps({"pid": pid, "stopped": stopped, "ended": ended}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
