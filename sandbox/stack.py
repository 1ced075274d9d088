"""The whole sandbox: Postgres with metadata and ledger, S3, and an Airflow that runs this repository."""

from __future__ import annotations

import shutil
import signal
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.airflow import PORT_OPTION, Airflow, airflow, metadata_migration
from sandbox.app_database import NAME, AppDatabase
from sandbox.ledger import Ledger, create_ledger
from sandbox.ports import require_free
from sandbox.postgres import Postgres, postgres
from sandbox.process import Part
from sandbox.s3 import S3Server, s3_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

REPOSITORY = Path(__file__).resolve().parent.parent
BUCKETS = ("weekly-digests", "raw-events", "mail-attachments")
APP_DATABASE = "app"


@dataclass(frozen=True)
class Stack:
    """Every part, running. `folder` holds their data (but Postgres's) and logs."""

    folder: Path
    postgres: Postgres
    ledger: Ledger
    app: AppDatabase
    s3: S3Server
    airflow: Airflow


@contextmanager
def stack(
    folder: Path | None = None,
    *,
    dags_folder: Path = REPOSITORY / "dags",
    plugins_folder: Path = REPOSITORY / "plugins",
    policies: Path = REPOSITORY / "include" / "policies",
    worker_buckets: Sequence[str] = BUCKETS,
    airflow_port: int | None = None,
    users: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    upgrade: Callable[[str], object] | None = None,
) -> Iterator[Stack]:
    """Start everything, and stop it at the end. Without `folder` a temporary one is used and removed.

    Airflow gets the connections `s3_retention_ledger` (as the ledger's writer), `s3_retention_store` (as
    the S3 worker) and `app_db` (a made-up application's database, with no more rights than a policy of its rows
    needs), the folder of the `policies`, and `env`. For `upgrade` see `create_ledger`, for the others
    `s3_server` and `airflow`.
    """
    if airflow_port:
        require_free(airflow_port, PORT_OPTION)  # now, and not when all else runs
    with ExitStack() as parts:
        folder = folder.resolve() if folder else parts.enter_context(temporary_folder())
        database = parts.enter_context(postgres(folder / "postgres"))
        migration = parts.enter_context(metadata_migration(folder / "airflow", database))
        # While the migration runs:
        s3 = parts.enter_context(s3_server(folder / "s3", worker_buckets=worker_buckets))
        ledger = create_ledger(database, upgrade=upgrade)
        app = AppDatabase.create(database, APP_DATABASE)
        settings = {
            "AIRFLOW_CONN_S3_RETENTION_LEDGER": ledger.airflow_connection_uri,
            "AIRFLOW_CONN_S3_RETENTION_STORE": s3.airflow_connection_uri,
            f"AIRFLOW_CONN_{NAME.upper()}": app.conninfo,
            "AIRFLOW__S3_RETENTION__POLICIES_DIR": str(policies.resolve()),
        }
        running = airflow(
            folder / "airflow",
            database,
            dags_folder=dags_folder,
            plugins_folder=plugins_folder,
            env={**settings, **(env or {})},
            port=airflow_port,
            users=users,
            migration=migration,
        )
        yield Stack(folder, database, ledger, app, s3, parts.enter_context(running))


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A temporary folder that is removed at the end, also when this process is killed."""
    folder = Path(tempfile.mkdtemp(prefix="s3r-"))
    try:
        sleep = ["sleep", "1000000000"]
        with Part("the folder's guard", sleep, log=folder / "guard.log", remove=[folder], patience=0):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Within the block SIGTERM and SIGHUP end the program as an exception, so that every part is stopped.

    The exit code is 128 + n, as a shell has it. Only for the main thread.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        for each in previous:
            signal.signal(each, signal.SIG_IGN)  # we are leaving: once more would only break that off
        raise SystemExit(128 + number)

    previous = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
