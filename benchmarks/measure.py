"""What a run costs: seconds of wall time, seconds of CPU of its processes, MB at its peak."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from sandbox.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
KIB_PER_MB = 1024
LOOK_SECONDS = 0.02
"""How often the memory of a program is looked at; its wall time is right to that."""


@dataclass(frozen=True)
class Cost:
    """What a program cost: ``wall`` and ``cpu`` in seconds, ``peak`` in MB of resident memory."""

    wall: float
    cpu: float
    peak: float


def run_program(command: Sequence[str | Path], env: Mapping[str, str], log: Path, stdin: str = "") -> Cost:
    """Run a program to its end. Raises ``SandboxError`` with the end of its log when it fails."""
    started = time.monotonic()
    peak = 0.0
    with log.open("w", encoding="utf-8") as out:
        program = subprocess.Popen(
            command,
            env=dict(env),
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        assert program.stdin is not None  # noqa: S101 - for the type checker
        program.stdin.write(stdin.encode())
        program.stdin.close()
        while True:
            pid, status, used = os.wait4(program.pid, os.WNOHANG)
            if pid:
                break
            peak = max(peak, peak_of(program.pid))
            time.sleep(LOOK_SECONDS)
        program.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - started
    if program.returncode:
        said = log.read_text(encoding="utf-8")[-2000:]
        raise SandboxError(f"{command[0]} ended with {program.returncode}: {said}")
    return Cost(wall, used.ru_utime + used.ru_stime, peak)


def peak_of(pid: int | str = "self") -> float:
    """Give the most memory that a process had at once, in MB; 0.0 when it has just ended.

    What ``getrusage`` says of a program that was just started is that of the one that started it.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) / KIB_PER_MB if found else 0.0


def cpu_of_tree(pid: int) -> float:
    """Give the seconds of CPU that a process, its children and those that have ended used so far."""
    total = 0.0
    parent = psutil.Process(pid)
    for process in (parent, *parent.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue  # it has just ended, and is in the sum of its parent from now on
        total += times.user + times.system + times.children_user + times.children_system
    return total
