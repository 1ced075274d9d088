"""The plugin folder as Airflow's own loader sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "plugins" / "s3_retention"
LOAD = """
    import json, sys
    sys.argv = ["airflow", sys.argv[1]]
    from airflow import plugins_manager
    plugins, errors = plugins_manager._get_plugins()
    print("RESULT", json.dumps({
        "plugins": [plugin.name for plugin in plugins], "errors": {str(k): str(v) for k, v in errors.items()},
        "modules": sorted(sys.modules),
    }))
"""


def load(tmp_path: Path, component: str) -> dict[str, Any]:
    """Load plugins in a process of its own, as this component of Airflow does."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LOAD), component],
        env={
            "PATH": os.environ["PATH"],
            "AIRFLOW_HOME": str(tmp_path),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            result: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
            return result
    raise AssertionError(done.stdout + done.stderr)


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return load(tmp_path_factory.mktemp("api"), "api-server")


def test_the_loader_runs_one_file_of_ours(api_server: dict[str, Any]) -> None:
    assert api_server["errors"] == {}
    assert [name for name in api_server["plugins"] if "retention" in name] == ["s3_retention"]


def test_no_module_of_the_package_is_loaded_by_its_bare_stem(api_server: dict[str, Any]) -> None:
    stems = {file.stem for file in PACKAGE.rglob("*.py")} - {"__init__", "__main__", "env"}
    assert stems & set(api_server["modules"]) == set()


def test_no_top_level_name_in_plugins_is_one_of_the_standard_library() -> None:
    names = {file.stem for file in (ROOT / "plugins").glob("*")}
    assert names & set(sys.stdlib_module_names) == set()


def test_a_component_that_forks_no_tasks_preloads_nothing(api_server: dict[str, Any]) -> None:
    assert "s3_retention.steps.delete" not in api_server["modules"]


def test_the_scheduler_preloads_what_tasks_import(tmp_path: Path) -> None:
    modules = load(tmp_path, "scheduler")["modules"]
    assert {"s3_retention.steps.delete", "boto3", "psycopg"} <= set(modules)
