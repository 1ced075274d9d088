"""A worker in a process of its own, that is killed at a named place. `python -m tests.faults.worker` reads a task
from standard input.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))

import boto3
from botocore.config import Config

from s3_retention.core.holder import Holder
from s3_retention.s3.gateway import S3Gateway
from s3_retention.sources.s3_listing import S3Listing
from s3_retention.steps import delete, plan
from s3_retention.store import batches, intervals, ledger_entries
from s3_retention.store.connection import connect
from tests.factories import CLEANUP, MAX_BATCHES, NO_WAIT, a_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.outcome import Outcome


def die(*_: object, **__: object) -> Any:
    """End as the kernel ends a process that has no memory left."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class DyingGateway:
    """A gateway that kills its process before or after a delete."""

    real: S3Gateway
    before: Callable[[], None]
    after: Callable[[], None]

    def look(self, ref: Any) -> Any:
        return self.real.look(ref)

    def delete_chunk(self, targets: Sequence[ObjectFacts]) -> list[Outcome]:
        self.before()
        outcomes = self.real.delete_chunk(targets)
        self.after()
        return outcomes


def nothing() -> None:
    """Live on."""


def on_call(number: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """`real`, but the call of this number is the last of this process, and is not made."""
    calls = 0

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return die() if calls == number else real(*args, **kwargs)

    return call


def main() -> None:
    task = json.load(sys.stdin)
    seam = task["seam"]
    client = boto3.Session().client(
        "s3",
        endpoint_url=task["endpoint"],
        aws_access_key_id=task["access_key"],
        aws_secret_access_key=task["secret_key"],
        region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )
    gateway: Any = S3Gateway(client)
    policy = a_policy(bucket=task["bucket"], **task["changes"])
    who = Holder(CLEANUP, task["run"], "delete", 0)
    with closing(connect(task["conninfo"])) as conn:
        if seam == "plan before it is marked as planned":
            intervals.mark_planned = die
        elif seam == "after the claim":
            gateway = DyingGateway(gateway, die, nothing)
        elif seam == "after the delete":
            gateway = DyingGateway(gateway, nothing, die)
        elif seam == "between two settles":
            ledger_entries.settle = on_call(2, ledger_entries.settle)
        elif seam == "before the close":
            batches.close = die
        if task["step"] == "plan":
            source = S3Listing(gateway, task["bucket"], "exports/")
            plan.run(conn, source, policy, task["id"], who, max_batches=MAX_BATCHES)
        else:
            delete.run(conn, gateway, policy, task["id"], who, limits=NO_WAIT)


if __name__ == "__main__":
    main()
