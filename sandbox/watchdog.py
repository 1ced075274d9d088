"""Runs one program, and lets nothing of it outlive the program's owner: not even when the owner is SIGKILLed.

`sandbox.process.Part` starts this file once for each part, by path and with the standard library only
(`python -I -S watchdog.py ...`), so that it costs a few milliseconds and imports nothing of ours.

What it listens to:

- its standard input: each byte is the number of a signal for the program; end of file means that the owner
  is gone;
- a pidfd of the owner (Linux), because a process that the owner forked may keep that pipe open;
- its own signals: SIGCHLD reaps, the rest are passed on to the program.

However it ends, it first ends everything below it. A process group is not enough for that: each Postgres
backend, for one, calls `setsid`. So on Linux it is a "child subreaper" (prctl(2)): whatever loses its parent
becomes its child, and it kills its children until it has none.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
FAREWELL_SECONDS = 3.0
REMOVE_SECONDS = 15.0
LINUX = sys.platform == "linux"


def main() -> int:
    """Run the program to its end, or to its owner's; the exit code is the program's, 128 + n for a signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--owner", type=int, required=True, help="process id that must stay alive")
    parser.add_argument(
        "--farewell", type=int, default=0, help="signal for the program when the owner is gone"
    )
    parser.add_argument(
        "--remove", type=Path, action="append", default=[], help="path to remove when it is gone"
    )
    parser.add_argument("--user", help="user to run the program as")
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()

    owner_gone = -1
    with contextlib.suppress(AttributeError, OSError):  # not Linux, or one older than 5.3
        owner_gone = os.pidfd_open(arguments.owner)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        # A handler, not SIG_IGN: the program would inherit that.
        signal.signal(number, lambda *_: None)
    if os.getppid() != arguments.owner:
        return 0

    keeper = Keeper(start(arguments.program, arguments.user))
    if not listen(keeper, control=sys.stdin.fileno(), wake=wake_read, owner_gone=owner_gone):
        keeper.say_farewell(arguments.farewell)
        keeper.end()
        remove(arguments.remove)
    keeper.end()
    return keeper.exit_code


def start(program: list[str], user: str | None) -> subprocess.Popen[bytes]:
    """Start `program` in a session of its own, to be SIGKILLed by the kernel if this process dies first."""
    libc = ctypes.CDLL(None) if LINUX else None
    if libc:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def die_with_me() -> None:
        if libc:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    return subprocess.Popen(
        program,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        user=user,
        group=pwd.getpwnam(user).pw_gid if user else None,
        extra_groups=[] if user else None,
        preexec_fn=die_with_me,  # noqa: PLW1509 - this process has one thread
    )


def listen(keeper: Keeper, *, control: int, wake: int, owner_gone: int) -> bool:
    """Pass signals on until the program has ended (True) or its owner has (False)."""
    poll = select.poll()
    for descriptor in (control, wake, owner_gone):
        if descriptor >= 0:
            poll.register(descriptor, select.POLLIN)
    while keeper.running:
        for descriptor, _ in poll.poll():
            if descriptor == owner_gone:
                return False
            numbers = os.read(descriptor, 64)
            if descriptor == control and not numbers:
                return False
            for number in numbers:
                keeper.signal(number)
    return True


class Keeper:
    """The program and everything that it started."""

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        """Keep `program`, which was started by this process."""
        self.program = program
        self.exit_code = 0

    @property
    def running(self) -> bool:
        """Whether the program itself has not been reaped yet."""
        return self.program.returncode is None

    def signal(self, number: int) -> None:
        """Act on one signal: reap for SIGCHLD, end all for SIGKILL, else pass it on to the program."""
        if number == signal.SIGCHLD:
            while self.reap(os.WNOHANG):
                pass
        elif number == signal.SIGKILL:
            self.end()
        elif self.running:
            os.kill(self.program.pid, number)

    def reap(self, options: int = 0) -> bool:
        """Collect one ended child; False when there is none (left, or with WNOHANG: yet)."""
        try:
            pid, status = os.waitpid(-1, options)
        except ChildProcessError:
            return False
        if pid == self.program.pid:
            code = os.waitstatus_to_exitcode(status)
            self.program.returncode = code
            self.exit_code = code if code >= 0 else 128 - code
        return pid != 0

    def say_farewell(self, number: int) -> None:
        """Give the program a moment to end on `number`: Postgres returns its shared memory then."""
        if not number or not self.running:
            return
        os.kill(self.program.pid, number)
        deadline = time.monotonic() + FAREWELL_SECONDS
        while self.running and time.monotonic() < deadline:
            if not self.reap(os.WNOHANG):
                time.sleep(0.01)

    def end(self) -> None:
        """SIGKILL every descendant. Those of a killed child become our children, and have their turn then."""
        while True:
            for pid in children(os.getpid()) if LINUX else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not LINUX:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.program.pid, signal.SIGKILL)
            if not self.reap():
                return


def remove(paths: list[Path]) -> None:
    """Remove files and folders, and again while parts under other watchdogs still write into them."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while (left := [path for path in paths if path.exists()]) and time.monotonic() < deadline:
        for path in left:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        time.sleep(0.05)


def children(parent: int) -> list[int]:
    """Process ids whose parent is `parent`, read from /proc (proc_pid_stat(5), field 4)."""
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names are what is wanted
        if entry.isdigit():
            with contextlib.suppress(OSError):
                # The name in field 2 may hold spaces and parentheses: count from its end.
                fields = Path("/proc", entry, "stat").read_text(errors="replace").rpartition(")")[2].split()
                if int(fields[1]) == parent:
                    found.append(int(entry))
    return found


if __name__ == "__main__":
    sys.exit(main())
