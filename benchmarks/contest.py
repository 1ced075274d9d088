"""The package and its peers delete the same objects, in turns: one row for each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks import peers
from benchmarks.bed import Steps, run_ours, run_peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.measure import Cost
    from benchmarks.seeds import Seed
    from sandbox.s3 import S3Server

OURS, OURS_CONDITIONAL = "ours", "ours, by ETag"
PEERS: dict[str, Callable[[S3Server, Path], Cost]] = {
    "s5cmd": peers.run_s5cmd,
    "operator": peers.run_operator,
    "rclone": peers.run_rclone,
    "awscli": peers.run_awscli,
}
SLOW = ("operator", "rclone", "awscli")
"""Peers that take minutes: they may come in fewer rounds."""


@dataclass(frozen=True)
class Row:
    """One run: ``wall`` and ``cpu`` in seconds, ``postgres`` the CPU of the ledger, ``peak`` in MB."""

    round_number: int
    name: str
    wall: float
    cpu: float
    postgres: float
    peak: float


def hold(seed: Seed, folder: Path, *, num_rounds: int, num_slow_rounds: int) -> Iterator[Row]:
    """Let all of them run, a round at a time; each round begins with another one.

    One run comes before them all and counts for nothing: it reads from the disk what the others find in memory.
    """
    run_peer(seed, folder, peers.run_s5cmd)
    names = [OURS, "s5cmd", OURS_CONDITIONAL, *SLOW]
    for number in range(num_rounds):
        turns = names[number % len(names) :] + names[: number % len(names)]
        for name in turns:
            if number >= num_slow_rounds and name in SLOW:
                continue
            yield _run(seed, folder, number, name)


def _run(seed: Seed, folder: Path, number: int, name: str) -> Row:
    if name in PEERS:
        cost = run_peer(seed, folder, PEERS[name])
        return Row(number, name, cost.wall, cost.cpu, 0.0, cost.peak)
    steps, cost = run_ours(seed, folder, is_conditional=name == OURS_CONDITIONAL)
    return Row(number, name, *sums(steps), cost.peak)


def sums(steps: Steps) -> tuple[float, float, float]:
    """Add up the steps: wall time, CPU of the client, CPU of Postgres.

    The start of the interpreter is not in it: Airflow loads the package once, before it forks its tasks.
    """
    wall, cpu, postgres = (sum(step[what] for step in steps.values()) for what in ("wall", "cpu", "postgres"))
    return wall, cpu, postgres
