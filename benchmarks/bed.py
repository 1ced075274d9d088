"""One run of the package on a bed of its own: a server on a copy of a seed, and a ledger that is empty."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.bucket import count_objects
from benchmarks.measure import PYTHON, run_program
from sandbox.errors import SandboxError
from sandbox.ledger import create_ledger
from sandbox.postgres import postgres
from sandbox.s3 import REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from benchmarks.measure import Cost
    from benchmarks.seeds import Seed
    from sandbox.ledger import Ledger
    from sandbox.s3 import S3Server

Steps = dict[str, dict[str, float]]
"""What each step cost, by its name: ``wall``, ``cpu`` and ``postgres`` in seconds, ``peak`` in MB."""


@contextmanager
def fresh_ledger(folder: Path) -> Iterator[tuple[Ledger, int]]:
    """Start a Postgres with an empty ledger; give it with the process id of the server."""
    folder.mkdir(parents=True, exist_ok=True)
    with postgres(folder) as server:
        yield create_ledger(server), postgres_pid()


def postgres_pid() -> int:
    """Find the Postgres that this process has started: the one whose parent is none. Raises ``SandboxError``."""
    parent_of = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            if process.name() == "postgres":
                parent_of[process.pid] = process.ppid()
    for pid, parent in parent_of.items():
        if parent not in parent_of:
            return int(pid)
    raise SandboxError("Postgres is not running")


def run_ours(
    seed: Seed, folder: Path, what: Sequence[str] = ("cleanup",), *, is_conditional: bool = True
) -> tuple[Steps, Cost]:
    """Run steps of the package: what each cost, and what its process did as a whole, its start included.

    Raises ``SandboxError`` when a cleanup leaves anything in the bucket.
    """
    log = folder / "worker.log"
    with seed.server(folder / "s3") as server, fresh_ledger(folder / "postgres") as (ledger, pid):
        task: dict[str, Any] = {
            "what": list(what),
            "is_conditional": is_conditional,
            "endpoint": server.endpoint,
            "region": REGION,
            "access_key": server.worker.access_key,
            "secret_key": server.worker.secret_key,
            "conninfo": ledger.writer_conninfo,
            "postgres_pid": pid,
        }
        cost = run_program([PYTHON, "-m", "benchmarks.worker"], os.environ, log, stdin=json.dumps(task))
        if "cleanup" in what:
            require_empty(server)
    steps: Steps = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
    return steps, cost


def run_peer(seed: Seed, folder: Path, run: Callable[[S3Server, Path], Cost]) -> Cost:
    """Run a peer. Raises ``SandboxError`` when it leaves anything in the bucket."""
    with seed.server(folder / "s3") as server:
        cost = run(server, folder / "peer.log")
        require_empty(server)
    return cost


def require_empty(server: S3Server) -> None:
    """Raise ``SandboxError`` when anything is left: a quick run that does not do its work is no peer."""
    left = count_objects(server)
    if left:
        raise SandboxError(f"{left:,} objects are left in the bucket")
