"""`python -m sandbox`: start everything, say how to reach it, and stop it at Ctrl-C."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sandbox.airflow import PORT_OPTION
from sandbox.errors import SandboxError
from sandbox.stack import REPOSITORY, Stack, exit_on_signals, stack

CHECK_SECONDS = 1.0


def main(arguments: list[str] | None = None) -> int:
    """Run until Ctrl-C (0), or until a part dies (1). SIGTERM and SIGHUP stop everything, too."""
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument(
        PORT_OPTION, type=int, metavar="N", help="port of the Airflow UI (default: a free one)"
    )
    parser.add_argument(
        "--policies",
        type=Path,
        metavar="DIR",
        default=REPOSITORY / "include" / "policies",
        help="folder of policy files (default: include/policies)",
    )
    options = parser.parse_args(arguments)
    print("Starting Postgres, S3 and Airflow (about half a minute) ...", flush=True)
    try:
        with (
            exit_on_signals(),
            stack(policies=options.policies, airflow_port=options.airflow_port) as running,
        ):
            print(describe(running), flush=True)
            while True:
                running.postgres.part.check()
                running.s3.part.check()
                running.airflow.check()
                time.sleep(CHECK_SECONDS)
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.")
        return 0


def describe(running: Stack) -> str:
    """How to reach each part, as lines for a terminal."""
    env = running.folder / "s3" / "admin.env"
    running.s3.write_env(env)
    psql = running.postgres.programs / "psql"
    return f"""
Airflow   {running.airflow.url}  (no login: everyone is an admin)
Ledger    {psql} '{running.ledger.writer_conninfo}'
S3        {running.s3.endpoint}
          . {env} && aws s3 ls
          (it sets AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL, AWS_DEFAULT_REGION)
Logs      {running.folder}

Ctrl-C stops everything and removes it."""


if __name__ == "__main__":
    sys.exit(main())
