"""Airflow 3 on a sandbox's Postgres: migrated, then its four components side by side."""

from __future__ import annotations

import base64
import json
import os
import secrets
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx

from sandbox.airflow_api import AirflowApi
from sandbox.ports import LOOPBACK, free_ports, require_free
from sandbox.process import Part, find_program, stop_all, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from sandbox.postgres import Postgres

WHEEL = "apache-airflow"
DATABASE = "airflow"
PORT_OPTION = "--airflow-port"
COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
PARALLELISM = 4
PATIENCE_SECONDS = 4.0  # most ends take 3 s, and now and then scheduler or triggerer hangs
ASKING = {"awaiting_input", "deferred"}
"""States of a task that waits for a person."""
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")

# What makes it quick. The defaults look for new DAG files every 5 minutes, let a quarter of the tasks hold
# their slot for 5 s after they ended, and start one API process per core.
SETTINGS = {
    "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__PARALLELISM": str(PARALLELISM),
    "AIRFLOW__API__HOST": LOOPBACK,
    "AIRFLOW__API__WORKERS": "1",
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
    "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
}


class Airflow(AirflowApi):
    """A running Airflow and its REST API. `env` is what its components, and its CLI, are started with."""

    def __init__(
        self, url: str, passwords: Mapping[str, str], *, env: Mapping[str, str], parts: Sequence[Part]
    ) -> None:
        """Describe a started Airflow."""
        super().__init__(url, passwords)
        self.env = dict(env)
        self.parts = tuple(parts)

    def check(self) -> None:
        """Raise `SandboxError` with the end of its log if a component has died."""
        for part in self.parts:
            part.check()

    def component(self, name: str) -> Part:
        """The part that runs one of `COMPONENTS`: kill it, and start it again."""
        return self.parts[COMPONENTS.index(name)]

    def wait_for_question(self, dag_id: str, run_id: str, task_id: str, timeout: float = 60) -> None:
        """Wait until a task asks a person, and the scheduler has seen its worker end: no answer comes sooner."""
        path = f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id)}/taskInstances/{task_id}"
        log = self.component("scheduler").log

        def asks() -> bool:
            return self.get(path)["state"] in ASKING and any(
                "TaskInstance Finished" in line and f"task_id={task_id}" in line and run_id in line
                for line in log.read_text(encoding="utf-8").splitlines()
            )

        self._poll(asks, timeout, lambda: f"no question after {timeout:g} s: {self._report(dag_id, run_id)}")

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Answer the question of a task, as a person does in the UI."""
        path = f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        self.patch(path, {"chosen_options": [option], "params_input": {}})


@contextmanager
def metadata_migration(folder: Path, postgres: Postgres) -> Iterator[Part]:
    """`airflow db migrate`, begun, on a new database `airflow`.

    It is the longest step of all, and needs nothing but Postgres: start other parts in its shadow, and hand
    it to `airflow`, which waits for it.
    """
    postgres.create_database(DATABASE)
    env = _environment(folder, postgres)
    with Part(
        "airflow db migrate", _command("db", "migrate"), log=folder / "migrate.log", env=env
    ) as migration:
        yield migration


@contextmanager
def airflow(
    folder: Path,
    postgres: Postgres,
    *,
    dags_folder: Path,
    plugins_folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    port: int | None = None,
    users: Mapping[str, str] | None = None,
    migration: Part | None = None,
) -> Iterator[Airflow]:
    """Start Airflow with AIRFLOW_HOME `folder`, wait until it is healthy, and stop it at the end.

    Its environment is a minimal one plus `env`: nothing of the caller's settings leaks in, and
    `plugins_folder` is found as on any Airflow, never through PYTHONPATH. `users` gives roles by name, such
    as `{"admin": "admin", "viewer": "viewer"}`, each with a random password; without it there is no login
    and everyone is an admin. One Airflow per Postgres: its database is `airflow`.
    """
    port = require_free(port, PORT_OPTION) if port else free_ports(1)[0]
    url = f"http://{LOOPBACK}:{port}"
    passwords = {name: secrets.token_urlsafe(12) for name in users or {}}
    with ExitStack() as stack:
        migration = migration or stack.enter_context(metadata_migration(folder, postgres))
        environment = {
            **_environment(folder, postgres),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags_folder.resolve()),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str((plugins_folder or folder / "plugins").resolve()),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__BASE_URL": url,
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(16),
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
            "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            **_login_settings(folder, users or {}, passwords),
            **(env or {}),
        }
        api_server, *others = parts = [_component(name, folder, environment) for name in COMPONENTS]
        stack.callback(stop_all, parts)
        api_server.start()
        migration.wait(timeout=180)
        for part in others:
            part.start()
        running = stack.enter_context(Airflow(url, passwords, env=environment, parts=parts))
        wait_until(lambda: _healthy(url), what="the start of Airflow", parts=parts, timeout=180)
        yield running


def _command(*words: str) -> list[str]:
    # Not `python -m`: that would put the current folder on Airflow's sys.path.
    return [str(find_program("airflow", wheel=WHEEL)), *words]


def _component(name: str, folder: Path, env: Mapping[str, str]) -> Part:
    # The log servers of scheduler and triggerer have fixed ports, and are for workers on other machines.
    options = ["--skip-serve-logs"] if name in {"scheduler", "triggerer"} else []
    if name == "api-server":
        # It takes the longest, and needs no tables before it is asked: it starts beside the migration.
        env = {**env, "AIRFLOW__DATABASE__CHECK_MIGRATIONS": "False"}
    command, log = _command(name, *options), folder / f"{name}.log"
    return Part(f"Airflow's {name}", command, log=log, env=env, patience=PATIENCE_SECONDS)


def _environment(folder: Path, postgres: Postgres) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        **SETTINGS,
        "AIRFLOW_HOME": str(folder.resolve()),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": postgres.airflow_url(DATABASE),
    }


def _login_settings(folder: Path, users: Mapping[str, str], passwords: Mapping[str, str]) -> dict[str, str]:
    if not users:
        return {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True"}
    file = folder / "passwords.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps(passwords) + "\n", encoding="utf-8")
    return {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(
            f"{name}:{role}" for name, role in users.items()
        ),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(file.resolve()),
    }


def _healthy(url: str) -> bool:
    """Whether every component has reported. Asking builds the Execution API, so that no task waits for it."""
    try:
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
            client.get("/execution/health").raise_for_status()
            health = client.get("/api/v2/monitor/health").raise_for_status().json()
    except httpx.HTTPError:
        return False
    names = ("metadatabase", "scheduler", "triggerer", "dag_processor")
    return all(health[name] is not None and health[name]["status"] == "healthy" for name in names)
