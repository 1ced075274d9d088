"""The sandbox's Airflow: one start, a tiny DAG folder, and what the client does with it."""

from __future__ import annotations

import signal
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.airflow import Airflow, airflow
from sandbox.errors import SandboxError
from sandbox.postgres import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

TINY = """
    import os, sys
    import greetings
    from airflow.sdk import DAG, task

    with DAG("tiny", schedule=None, params={"numbers": 2}):

        @task
        def numbers(params=None):
            return list(range(params["numbers"]))

        @task
        def double(number):
            print("doubling", number)
            if number == 6:
                raise ValueError("six is too much")
            return 2 * number

        double.expand(number=numbers())

    with DAG("surroundings", schedule=None):

        @task
        def look():
            leaked = [name for name in os.environ if "LEAKED" in name]
            return {"leaked": leaked, "path": sys.path, "greeting": greetings.HELLO}

        look()
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    folder = tmp_path_factory.mktemp("sandbox")
    files = {
        "dags/tiny.py": TINY,
        "dags/broken.py": "from airflow.sdk import DAG\nimport no_such_module",
        "plugins/greetings.py": "HELLO = 'hi'",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__CORE__EXECUTOR", "LeakedExecutor")
        patch.setenv("LEAKED", "1")
        with (
            postgres(folder / "postgres") as database,
            airflow(
                folder / "airflow",
                database,
                dags_folder=folder / "dags",
                plugins_folder=folder / "plugins",
                users={"admin": "admin", "viewer": "viewer"},
            ) as started,
        ):
            for dag_id in ("tiny", "surroundings"):
                started.wait_for_dag(dag_id)
                started.unpause(dag_id)
            yield started


def test_a_run_is_triggered_awaited_and_looked_into(running: Airflow) -> None:
    run_id = running.trigger("tiny", {"numbers": 3}, run_id="tiny:1+")
    assert run_id == "tiny:1+"
    assert running.wait_for_run("tiny", run_id, expect="success") == "success"
    states = {
        (task["task_id"], task["map_index"]): task["state"] for task in running.task_instances("tiny", run_id)
    }
    assert states == {("numbers", -1): "success", **{("double", index): "success" for index in range(3)}}
    assert running.xcom("tiny", run_id, "numbers") == [0, 1, 2]
    assert running.xcom("tiny", run_id, "double", map_index=2) == 4
    assert "doubling 1" in running.task_log("tiny", run_id, "double", map_index=1).splitlines()
    with pytest.raises(SandboxError, match="409"):
        running.trigger("tiny", run_id=run_id)


def test_one_mapped_index_is_cleared_and_runs_again(running: Airflow) -> None:
    run_id = running.trigger("tiny")
    running.wait_for_run("tiny", run_id, expect="success")
    assert len(running.clear("tiny", run_id, [("double", 1)])) == 1
    running.wait_for_run("tiny", run_id, expect="success")
    tries = {task["map_index"]: task["try_number"] for task in running.task_instances("tiny", run_id)}
    assert tries == {-1: 1, 0: 1, 1: 2}


def test_a_run_that_ends_otherwise_shows_the_failed_tasks_and_their_logs(running: Airflow) -> None:
    run_id = running.trigger("tiny", {"numbers": 7})
    with pytest.raises(SandboxError) as caught:
        running.wait_for_run("tiny", run_id, expect="success")
    message = str(caught.value)
    assert message.startswith(f"failed, and not success: run {run_id} of tiny")
    assert "double[6] is failed" in message
    assert "ValueError: six is too much" in message
    assert "double[5]" not in message


def test_a_listing_of_more_than_one_page_is_whole(running: Airflow, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = running.trigger("tiny", {"numbers": 2})
    running.wait_for_run("tiny", run_id)
    monkeypatch.setattr("sandbox.airflow_api.PAGE", 1)
    tasks = {(task["task_id"], task["map_index"]) for task in running.task_instances("tiny", run_id)}
    assert tasks == {("numbers", -1), ("double", 0), ("double", 1)}


def test_nothing_of_the_caller_leaks_in_and_plugins_are_found_as_on_any_airflow(running: Airflow) -> None:
    run_id = running.trigger("surroundings")
    running.wait_for_run("surroundings", run_id, expect="success")
    seen = running.xcom("surroundings", run_id, "look")
    assert seen["leaked"] == []
    assert seen["greeting"] == "hi"
    assert str(Path.cwd()) not in seen["path"]


def test_a_dag_that_does_not_come_shows_the_import_errors(running: Airflow) -> None:
    deadline = time.monotonic() + 60
    while not running.import_errors():
        assert time.monotonic() < deadline, "the broken file was not reported"
        time.sleep(0.2)
    assert list(running.import_errors()) == ["broken.py"]
    with pytest.raises(SandboxError, match=r"no DAG ghost after 0 s; import errors:\n(.|\n)*no_such_module"):
        running.wait_for_dag("ghost", timeout=0)


def test_users_have_the_rights_of_their_role(running: Airflow) -> None:
    body = {"logical_date": None}
    assert running.request("GET", "/dags/tiny", user="viewer").status_code == 200
    assert running.request("POST", "/dags/tiny/dagRuns", user="viewer", json=body).status_code == 403
    assert running.request("POST", "/dags/tiny/dagRuns", user="admin", json=body).status_code == 200


def test_a_component_that_dies_ends_the_waiting_with_the_end_of_its_log(running: Airflow) -> None:
    """The last one: it breaks what it got."""
    triggerer = next(part for part in running.parts if part.name == "Airflow's triggerer")
    triggerer.signal(signal.SIGKILL)
    with pytest.raises(
        SandboxError, match=r"Airflow's triggerer ended with exit code 137\.\nThe end of its log"
    ):
        running.wait_for_dag("ghost", timeout=30)
