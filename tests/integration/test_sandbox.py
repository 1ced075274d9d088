"""The sandbox's Postgres and S3, as tests and benchmarks use them; Airflow has a file of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import psycopg
import pytest
from botocore.exceptions import ClientError
from psycopg import sql

import sandbox.s3
from sandbox.errors import SandboxError
from sandbox.ledger import create_ledger
from sandbox.ports import LOOPBACK, free_ports
from sandbox.postgres import SOCKET_PATH_LIMIT, Postgres, postgres
from sandbox.s3 import S3Server, s3_server
from sandbox.stack import stack
from sandbox.watchdog import children

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).parents[2]
only_linux = pytest.mark.skipif(not sandbox.postgres.MEMORY.is_dir(), reason="only Linux has it")
NOEXEC = getattr(os, "ST_NOEXEC", 0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with postgres(tmp_path_factory.mktemp("postgres")) as running:
        yield running


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    buckets = ("granted", "denials", "never-made")
    with s3_server(tmp_path_factory.mktemp("s3"), worker_buckets=buckets) as running:
        for bucket in ("granted", "denials", "private"):
            running.admin_client().create_bucket(Bucket=bucket)
        yield running


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ClientError) as caught:
        call()
    return str(caught.value.response["Error"]["Code"])


def value(conninfo: str, query: str) -> object:
    with psycopg.connect(conninfo) as conn:
        row = conn.execute(sql.SQL(query)).fetchone()
    return row[0] if row else None


def eventually(condition: Callable[[], object], timeout: float = 20) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


# Postgres


def test_postgres_takes_many_connections_and_listens_on_no_port(server: Postgres) -> None:
    conninfo = server.superuser_conninfo()
    with contextlib.ExitStack() as open_connections:
        for _ in range(200):
            open_connections.enter_context(psycopg.connect(conninfo))
    assert value(conninfo, "SHOW listen_addresses") == ""


def test_a_long_folder_name_does_not_break_the_socket(tmp_path: Path) -> None:
    with postgres(tmp_path / ("x" * 200)) as running:
        assert len(f"{running.socket_dir}/.s.PGSQL.5432") <= SOCKET_PATH_LIMIT
        assert value(running.superuser_conninfo(), "SELECT 1") == 1
    assert not running.socket_dir.exists()


@only_linux
@pytest.mark.parametrize(("enough", "is_in_memory"), [(1 << 20, True), (1 << 60, False)])
def test_the_data_is_in_memory_where_that_is_asked_for_and_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enough: int, is_in_memory: bool
) -> None:
    monkeypatch.setattr(sandbox.postgres, "ENOUGH_MEMORY", enough)
    with postgres(tmp_path, in_memory=True) as running:
        assert (running.socket_dir.parent == sandbox.postgres.MEMORY) is is_in_memory
        assert value(running.superuser_conninfo(), "SELECT 1") == 1
    assert not running.socket_dir.exists()


@only_linux
@pytest.mark.parametrize(
    ("folder", "num_free", "flags", "has_room"),
    [
        (".", 2 << 30, 0, True),
        (".", (2 << 30) - 1, 0, False),
        (".", 2 << 30, NOEXEC, False),
        ("absent", 2 << 30, 0, False),
    ],
)
def test_memory_has_room_where_it_is_there_is_large_enough_and_programs_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, num_free: int, flags: int, *, has_room: bool
) -> None:
    monkeypatch.setattr(sandbox.postgres, "MEMORY", tmp_path / folder)
    found = SimpleNamespace(f_bavail=num_free, f_frsize=1, f_flag=flags)
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    assert sandbox.postgres._has_room_in_memory() is has_room


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root Postgres runs as another user")
def test_a_wheel_that_others_cannot_reach_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.postgres, "_open_to_others", lambda _folder: False)
    with postgres(tmp_path) as running:
        assert running.programs.is_relative_to(running.socket_dir)
        assert value(running.superuser_conninfo(), "SELECT 1") == 1


def test_two_copies_run_side_by_side(server: Postgres, store: S3Server, tmp_path: Path) -> None:
    with postgres(tmp_path / "postgres") as second, s3_server(tmp_path / "s3") as other_store:
        server.create_database("only_here")
        count = "SELECT count(*) FROM pg_database WHERE datname = 'only_here'"
        assert value(server.superuser_conninfo(), count) == 1
        assert value(second.superuser_conninfo(), count) == 0
        assert store.endpoint != other_store.endpoint
        assert other_store.admin_client().list_buckets()["Buckets"] == []
        assert refusal(lambda: store._client(other_store.admin, None).list_buckets()) == "InvalidAccessKeyId"
    assert value(server.superuser_conninfo(), "SELECT 1") == 1
    assert store.admin_client().list_buckets()["Buckets"]


def test_a_server_that_cannot_start_shows_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sandbox.postgres.SETTINGS, "max_connections", "many")
    with (
        pytest.raises(SandboxError, match=r"Postgres ended with exit code 1\.(.|\n)*max_connections"),
        postgres(tmp_path),
    ):
        pass


# The ledger


def migrate(conninfo: str) -> None:
    """What the sandbox asks of a migration: run by the owner, it makes the group of the writers."""
    with psycopg.connect(conninfo) as conn:
        conn.execute("CREATE ROLE s3_retention_writer NOLOGIN")
        conn.execute("CREATE TABLE entries (id int)")
        conn.execute("GRANT SELECT, INSERT ON entries TO s3_retention_writer")


def test_ledgers_are_apart_and_the_writer_has_what_the_migration_grants(server: Postgres) -> None:
    ledger = create_ledger(server, upgrade=migrate)
    fresh, other = ledger.fresh_ledger(), ledger.fresh_ledger()
    with psycopg.connect(fresh.writer_conninfo) as conn:
        conn.execute("INSERT INTO entries VALUES (1)")
    with psycopg.connect(fresh.writer_conninfo) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("DELETE FROM entries")
    assert value(fresh.owner_conninfo, "SELECT count(*) FROM entries") == 1
    assert value(other.owner_conninfo, "SELECT count(*) FROM entries") == 0
    assert value(ledger.airflow_connection_uri, "SELECT current_user || ' ' || current_database()") == (
        "airflow_retention ledger"
    )
    assert value(ledger.owner_conninfo, "SELECT usesuper FROM pg_user WHERE usename = current_user") is False
    with psycopg.connect(fresh.writer_conninfo):  # whoever is still connected does not hold it up
        fresh.drop()
    databases = "SELECT count(*) FROM pg_database WHERE datname LIKE 'ledger_%'"
    assert value(server.superuser_conninfo(), databases) == 2


# S3


def test_the_worker_can_use_its_buckets_only(store: S3Server) -> None:
    admin, worker = store.admin_client(), store.worker_client()
    worker.put_object(Bucket="granted", Key="a", Body=b"1")
    assert worker.list_objects_v2(Bucket="granted")["KeyCount"] == 1
    worker.delete_object(Bucket="granted", Key="a")
    assert refusal(lambda: worker.list_objects_v2(Bucket="private")) == "AccessDenied"
    assert refusal(lambda: worker.list_objects_v2(Bucket="never-made")) == "NoSuchBucket"
    assert refusal(lambda: worker.create_bucket(Bucket="mine")) == "AccessDenied"
    assert refusal(lambda: worker.put_bucket_policy(Bucket="granted", Policy="{}")) == "AccessDenied"
    assert refusal(lambda: admin.put_object(Bucket="no-such-bucket", Key="a")) == "NoSuchBucket"


def delete(store: S3Server, *keys: str) -> tuple[set[str], set[tuple[str, str]]]:
    """DeleteObjects by the worker: the deleted keys, and the others with their codes."""
    objects = [{"Key": key} for key in keys]
    answer = store.worker_client().delete_objects(Bucket="denials", Delete={"Objects": objects})  # type: ignore[typeddict-item]
    failed = {(error["Key"], error["Code"]) for error in answer.get("Errors", [])}
    return {entry["Key"] for entry in answer.get("Deleted", [])}, failed


def test_a_denial_binds_exactly_its_keys_and_is_lifted_one_by_one(store: S3Server) -> None:
    admin, worker = store.admin_client(), store.worker_client()
    keys = ("exports/1.json", "exports/10.json", 'exports/é ü+%2F&".json', "exports/4\x01.json")
    first, longer, odd, control = keys
    for key in keys:
        admin.put_object(Bucket="denials", Key=key, Body=b"1")

    store.deny("denials", [first])
    store.deny("denials", [odd, control])
    assert store.denied("denials") == {first, odd, control}
    # Single deletes and each key of a bulk delete; a key that begins like a denied one goes.
    assert refusal(lambda: worker.delete_object(Bucket="denials", Key=first)) == "AccessDenied"
    assert refusal(lambda: worker.delete_object(Bucket="denials", Key=control)) == "AccessDenied"
    assert delete(store, *keys[:3]) == ({longer}, {(first, "AccessDenied"), (odd, "AccessDenied")})
    assert worker.get_object(Bucket="denials", Key=first)["Body"].read() == b"1"

    store.allow("denials", [first])
    assert delete(store, first, odd) == ({first}, {(odd, "AccessDenied")})
    admin.delete_object(Bucket="denials", Key=control)  # a denial binds the worker, not the admin

    store.allow("denials", [odd, control])
    assert store.denied("denials") == set()
    assert delete(store, odd) == ({odd}, set())


def test_a_key_that_a_policy_cannot_name_exactly_is_refused(store: S3Server) -> None:
    for key in ("exports/*", "exports/customer-?.json", "exports/${aws:username}"):
        with pytest.raises(ValueError, match="exactly"):
            store.deny("denials", [key])


def test_a_port_taken_meanwhile_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as foreign:
        foreign.bind((LOOPBACK, 0))
        foreign.listen()
        taken = foreign.getsockname()[1]
        asked = []

        def ports(count: int) -> list[int]:
            asked.append(count)
            return [*free_ports(2), taken, *free_ports(count - 3)] if len(asked) == 1 else free_ports(count)

        monkeypatch.setattr(sandbox.s3, "free_ports", ports)
        with s3_server(tmp_path) as running:
            assert running.admin_client().list_buckets()["Buckets"] == []
    assert len(asked) == 2


# The whole


def test_a_taken_airflow_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as foreign:
        foreign.bind((LOOPBACK, 0))
        foreign.listen()
        taken = foreign.getsockname()[1]
        message = f"port {taken} is taken: choose another with --airflow-port"
        with pytest.raises(SandboxError, match=message), stack(tmp_path / "stack", airflow_port=taken):
            pass
    assert not (tmp_path / "stack").exists()


OWNER = """
    import signal, sys, time
    # A test run in the background of a shell ignores Ctrl-C, and hands that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from pathlib import Path
    from sandbox.postgres import postgres
    from sandbox.s3 import s3_server
    from sandbox.stack import exit_on_signals, temporary_folder

    with (
        exit_on_signals(),
        temporary_folder() as folder,
        postgres(folder / "postgres") as database,
        s3_server(folder / "s3") as store,
    ):
        database.create_database("used")
        print(folder, database.socket_dir, store.part.remove[0], flush=True)
        time.sleep(1000)
"""


def descendants(pid: int) -> set[int]:
    """Process ids below `pid`."""
    found = set(children(pid))
    return found.union(*(descendants(child) for child in found))


def command_of(pid: int) -> str:
    """The command line of a process; empty for one that has just ended."""
    try:
        return Path("/proc", str(pid), "cmdline").read_text().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def runs(pid: int) -> bool:
    """Whether the process is there; one that only waits for its parent to notice its end is not."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can adopt processes of another session")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_outlives_the_command_that_started_it(number: signal.Signals) -> None:
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", textwrap.dedent(OWNER)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as owner:
        try:
            assert owner.stdout
            paths = [Path(word) for word in owner.stdout.readline().split()]
            started = descendants(owner.pid)
            names = "\n".join(map(command_of, started))
            assert "weed mini" in names
            assert "postgres: checkpointer" in names
            owner.send_signal(number)
            owner.wait(timeout=90)
            eventually(lambda: not any(map(runs, started)))
            eventually(lambda: not any(path.exists() for path in paths))
        finally:
            owner.kill()  # a failed assertion must not wait for an owner that sleeps
    shell_code = {signal.SIGTERM: 128 + number, signal.SIGHUP: 128 + number}.get(number, -number)
    assert owner.returncode == shell_code
