"""The plugin folder as Airflow's own loader sees it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.child import ROOT, result_of

if TYPE_CHECKING:
    from pathlib import Path

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
    result: dict[str, Any] = result_of(LOAD, component, home=tmp_path)
    return result


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
