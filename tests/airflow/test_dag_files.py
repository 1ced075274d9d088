"""The DAG files: what they hold, what they may import, and what reading them costs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.child import ROOT, result_of

if TYPE_CHECKING:
    from pathlib import Path

DAG_FILES = sorted((ROOT / "dags").glob("*.py"))
MAX_LINES = 100
MAX_OWN_SECONDS = 0.5

READ_DAGS = """
    import json, socket, sys, time
    import airflow.sdk, airflow.providers.common.compat.sdk
    from airflow.dag_processing.dagbag import BundleDagBag
    from airflow.serialization.serialized_objects import DagSerialization

    # An empty bag first: what Airflow itself still imports on its way is not ours.
    BundleDagBag(dag_folder=sys.argv[1], bundle_path=sys.argv[1], bundle_name="empty")

    touched = []
    def refuse(*args, **kwargs):
        touched.append(repr(args))
        raise OSError("no network and no database while DAG files are read")
    socket.socket.connect = socket.create_connection = refuse

    before, modules = time.process_time(), set(sys.modules)
    bag = BundleDagBag(dag_folder=sys.argv[2], bundle_path=sys.argv[2], bundle_name="dags-folder")
    seconds = time.process_time() - before
    print("RESULT", json.dumps({
        "dags": {
            dag_id: {
                "tasks": {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks},
                "doc_md": dag.doc_md, "catchup": dag.catchup, "max_active_runs": dag.max_active_runs,
                "owner": dag.owner, "schedule": str(dag.schedule), "timezone": str(dag.timezone),
                "task_docs": [bool(task.doc_md) for task in dag.tasks],
                "serialized": bool(DagSerialization.to_dict(dag)),
            }
            for dag_id, dag in bag.dags.items()
        },
        "errors": bag.import_errors, "seconds": seconds, "touched": touched,
        "heavy": sorted({"boto3", "botocore", "psycopg", "alembic"} & (set(sys.modules) - modules)),
    }))
"""


def read_dags(tmp_path: Path, policies: Path, **settings: str) -> dict[str, Any]:
    """Read the DAG folder in a process of its own, as a DAG processor would: no network, no database."""
    empty = tmp_path / "empty"
    empty.mkdir()
    result: dict[str, Any] = result_of(
        READ_DAGS,
        str(empty),
        str(ROOT / "dags"),
        home=tmp_path / "home",
        env={"AIRFLOW__S3_RETENTION__POLICIES_DIR": str(policies)}
        | {f"AIRFLOW__S3_RETENTION__{name.upper()}": value for name, value in settings.items()},
    )
    return result


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return read_dags(tmp_path_factory.mktemp("shipped"), ROOT / "include" / "policies")


@pytest.mark.parametrize("file", DAG_FILES, ids=lambda file: file.name)
def test_a_dag_file_holds_flow_only(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) < MAX_LINES
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "the docstring is the operator's page"
    imported = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    } | {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    ours = {name for name in imported if name.startswith("s3_retention")}
    # The type of an argument is named under TYPE_CHECKING; nothing else of ours is reached but runtime.
    assert ours <= {
        "s3_retention.runtime.approving",
        "s3_retention.runtime.auditing",
        "s3_retention.runtime.deadline",
        "s3_retention.runtime.environment",
        "s3_retention.runtime.form_fields",
        "s3_retention.runtime.holding",
        "s3_retention.runtime.redrive_form",
        "s3_retention.runtime.redriving",
        "s3_retention.runtime.restoring",
        "s3_retention.runtime.tasks",
        "s3_retention.runtime.watching",
        "s3_retention.core.policy.RetentionPolicy",
    }
    airflow = {name for name in imported if name.startswith("airflow")}
    assert all(name.startswith("airflow.providers.common.compat.sdk.") for name in airflow)


def test_the_shipped_dags_read_without_errors(shipped: dict[str, Any]) -> None:
    assert shipped["errors"] == {}
    assert set(shipped["dags"]) == {
        "s3_retention_audit",
        "s3_retention_cleanup__weekly_digests",
        "s3_retention_hold",
        "s3_retention_redrive",
        "s3_retention_restore",
        "s3_retention_watch",
    }


def test_the_audit_runs_by_the_schedule_that_is_set_and_else_by_hand(
    shipped: dict[str, Any], tmp_path: Path
) -> None:
    assert shipped["dags"]["s3_retention_audit"]["schedule"] == "None"
    scheduled = read_dags(tmp_path, ROOT / "include" / "policies", audit_schedule="0 5 * * 1")
    audit = scheduled["dags"]["s3_retention_audit"]
    assert "CronTriggerTimetable" in audit["schedule"]
    assert audit["serialized"]
    assert audit["catchup"] is False
    assert scheduled["errors"] == {}


def test_the_cleanup_flows_from_claim_to_report(shipped: dict[str, Any]) -> None:
    dag = shipped["dags"]["s3_retention_cleanup__weekly_digests"]
    assert dag["tasks"] == {
        "claim_interval": ["deal_batches", "plan_commands", "report_run"],
        "plan_commands": ["approve_plan", "deal_batches"],
        "approve_plan": ["deal_batches"],
        "deal_batches": ["delete_batch", "report_run"],
        "delete_batch": ["quarantine_failed"],
        "quarantine_failed": ["report_run"],
        "report_run": [],
        "flag_missed_intervals": [],
    }
    assert dag["catchup"] is False
    assert dag["max_active_runs"] == 1
    assert dag["owner"] == "data-platform"


def test_the_redrive_flows_through_the_same_tasks(shipped: dict[str, Any]) -> None:
    assert shipped["dags"]["s3_retention_redrive"]["tasks"] == {
        "select_commands": ["delete_batch", "report_run"],
        "delete_batch": ["quarantine_failed"],
        "quarantine_failed": ["report_run"],
        "report_run": [],
    }


def test_the_watch_is_one_task_that_runs_alone_every_five_minutes(shipped: dict[str, Any]) -> None:
    dag = shipped["dags"]["s3_retention_watch"]
    assert dag["tasks"] == {"watch_policies": []}
    assert (dag["schedule"], dag["catchup"], dag["max_active_runs"]) == ("*/5 * * * *", False, 1)


def test_every_dag_and_every_task_has_its_page(shipped: dict[str, Any]) -> None:
    for dag in shipped["dags"].values():
        assert dag["doc_md"]
        assert all(dag["task_docs"])
        assert dag["serialized"]


def test_reading_the_dag_files_touches_no_network_and_no_database(shipped: dict[str, Any]) -> None:
    assert shipped["touched"] == []
    assert shipped["heavy"] == []


def test_reading_the_dag_files_takes_under_half_a_second_of_our_own(shipped: dict[str, Any]) -> None:
    assert shipped["seconds"] < MAX_OWN_SECONDS


def test_a_schedule_is_read_in_the_time_zone_of_its_policy(tmp_path: Path) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    text = (ROOT / "include" / "policies" / "weekly_digests.yaml").read_text(encoding="utf-8")
    (policies / "weekly_digests.yaml").write_text(text.replace("timezone: UTC", "timezone: Europe/Berlin"))
    dag = read_dags(tmp_path, policies)["dags"]["s3_retention_cleanup__weekly_digests"]
    assert dag["timezone"] == "Europe/Berlin"
