"""A process that runs the package's steps, and says what each cost.

`python -m benchmarks.worker` reads its task from standard input as JSON, and writes one line of JSON: seconds of wall
time and CPU of each step, MB at its peak.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from benchmarks.bucket import BUCKET, PREFIX
from benchmarks.measure import cpu_of_tree, peak_of
from benchmarks.policy import NAME, PARALLEL, a_policy, holder
from s3_retention.core.condition import Guard
from s3_retention.s3.deletes import NEVER
from s3_retention.s3.gateway import S3Gateway
from s3_retention.sources.s3_listing import S3Listing
from s3_retention.steps import claim, delete, plan, quarantine, report
from s3_retention.store.connection import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.outcome import Outcome
    from s3_retention.store.connection import Connection

UNCONDITIONAL = Guard(sends_etag=False)


@dataclass(frozen=True, slots=True)
class Unconditional(S3Gateway):
    """A gateway that sends no ETag, as the peers do not. The package itself never does without."""

    def delete_chunk(
        self, targets: Sequence[ObjectFacts], *, guard: Guard = UNCONDITIONAL, ending: Event = NEVER
    ) -> list[Outcome]:
        """Delete without a condition."""
        del guard
        return S3Gateway.delete_chunk(self, targets, guard=UNCONDITIONAL, ending=ending)


@dataclass
class Stopwatch:
    """What each step cost, of this process and of Postgres."""

    postgres_pid: int
    steps: dict[str, dict[str, float]] = field(default_factory=dict)

    def time(self, step: str, act: Callable[[], Any]) -> Any:
        """Run a step and keep what it cost."""
        # What it costs to look at Postgres is in no step.
        postgres = cpu_of_tree(self.postgres_pid)
        started, before = time.monotonic(), os.times()
        done = act()
        wall, after = time.monotonic() - started, os.times()
        self.steps[step] = {
            "wall": wall,
            "cpu": after.user + after.system - before.user - before.system,
            "postgres": cpu_of_tree(self.postgres_pid) - postgres,
            "peak": peak_of(),
        }
        return done


def clean(watch: Stopwatch, conn: Connection, gateway: S3Gateway) -> None:
    """Run a whole cleanup. Raises when it does not end as it must."""
    policy = a_policy()
    source = S3Listing(gateway, BUCKET, PREFIX)
    claimed = watch.time("claim", lambda: claim.run(conn, policy, holder("claim")))
    planned = watch.time(
        "plan",
        lambda: plan.run(conn, source, policy, claimed.interval_id, holder("plan"), max_batches=1024),
    )

    def deliver() -> None:
        for batch in planned.batches:
            delete.run(conn, gateway, policy, batch.batch_id, holder("delete", batch.map_index))

    watch.time("delete", deliver)
    watch.time("quarantine", lambda: quarantine.run(conn, holder("quarantine"), failed_map_indexes=()))
    reported = watch.time(
        "report",
        lambda: report.run(
            conn, holder("report"), policy=NAME, interval_id=claimed.interval_id, window=policy.window
        ),
    )
    if reported.num_by_outcome != {"deleted": planned.num_discovered}:
        raise RuntimeError(f"the run did not end as it must: {reported}")


def list_bare(watch: Stopwatch, gateway: S3Gateway) -> None:
    """List everything by the same client, and do nothing with it."""
    watch.time("listing", lambda: sum(len(page) for page in gateway.list_pages(BUCKET, PREFIX)))


def plan_only(watch: Stopwatch, conn: Connection, gateway: S3Gateway) -> None:
    """Claim and plan."""
    policy = a_policy()
    interval_id = claim.run(conn, policy, holder("claim")).interval_id or 0
    source = S3Listing(gateway, BUCKET, PREFIX)
    watch.time("plan", lambda: plan.run(conn, source, policy, interval_id, holder("plan"), max_batches=1024))


def main() -> None:
    """Do what the task says."""
    task = json.loads(sys.stdin.read())
    config = Config(
        region_name=task["region"],
        max_pool_connections=PARALLEL + 2,
        retries={"mode": "standard", "total_max_attempts": 1},
        s3={"addressing_style": "path"},
        proxies={},
    )
    client = boto3.Session().client(
        "s3",
        endpoint_url=task["endpoint"],
        aws_access_key_id=task["access_key"],
        aws_secret_access_key=task["secret_key"],
        config=config,
    )
    gateway = (S3Gateway if task["is_conditional"] else Unconditional)(client)
    watch = Stopwatch(task["postgres_pid"])
    with closing(connect(task["conninfo"])) as conn:
        if "listing" in task["what"]:
            list_bare(watch, gateway)
        if "plan" in task["what"]:
            plan_only(watch, conn, gateway)
        if "cleanup" in task["what"]:
            clean(watch, conn, gateway)
    print(json.dumps(watch.steps))


if __name__ == "__main__":
    main()
