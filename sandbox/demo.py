"""`make demo`: the main job, end to end, on real parts, in a stranger's words."""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console

from sandbox.airflow import PORT_OPTION
from sandbox.errors import SandboxError
from sandbox.stack import REPOSITORY, exit_on_signals, stack, temporary_folder
from sandbox.story import Story, write_policy

CHECK_SECONDS = 1.0


def main(arguments: list[str] | None = None) -> int:
    """Tell the story: 0 if every figure was right, else 1. On a terminal all stays up until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.demo", description=__doc__)
    parser.add_argument(
        PORT_OPTION, type=int, metavar="N", help="port of the Airflow UI (default: a free one)"
    )
    options = parser.parse_args(arguments)
    sys.path.append(str(REPOSITORY / "plugins"))  # for the ledger's migration, in this process alone
    console = Console()
    started = time.monotonic()
    try:
        with exit_on_signals(), temporary_folder() as folder:
            write_policy(folder / "policies")
            console.print("Starting a real Postgres, S3 server (SeaweedFS) and Airflow on loopback ...")
            with stack(folder, policies=folder / "policies", airflow_port=options.airflow_port) as running:
                story = Story(running, console)
                right = story.tell()
                _sum_up(console, story, time.monotonic() - started)
                if sys.stdin.isatty() and sys.stdout.isatty():
                    _stay(console, story)
                return 0 if right else 1
    except SandboxError as error:
        console.print(f"demo: {error}", style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return 1


def _sum_up(console: Console, story: Story, seconds: float) -> None:
    console.print()
    if story.wrong:
        console.print(f"[bold red]{len(story.wrong)} figures were wrong[/bold red] after {seconds:.0f} s:")
        for line in story.wrong:
            console.print(f"  {line}", markup=False, highlight=False)
    else:
        console.print(f"[bold green]Every figure was right[/bold green], {seconds:.0f} s after the start.")
    running = story.stack
    for name, value in (
        ("Airflow", f"{running.airflow.url}  (no login: everyone is an admin)"),
        ("Ledger", f"{running.postgres.programs / 'psql'} '{running.ledger.writer_conninfo}'"),
        ("", '-c "SELECT * FROM s3_retention.balance"'),
    ):
        console.print(f"  {name:<8} {value}", markup=False, highlight=False, soft_wrap=True)


def _stay(console: Console, story: Story) -> None:
    console.print("Everything stays up until Ctrl-C, which removes it all.")
    try:
        while True:
            story.stack.airflow.check()
            time.sleep(CHECK_SECONDS)
    except KeyboardInterrupt:
        console.print("\nStopping ...")


if __name__ == "__main__":
    sys.exit(main())
