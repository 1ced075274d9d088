"""`dag.test()`: the DAGs run task by task in one process, against a real ledger and a real store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from sandbox.ledger import create_ledger
from sandbox.postgres import postgres
from sandbox.s3 import s3_server
from tests.airflow.child import ROOT, result_of

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """
name: tested
version: v1
mode: {mode}
source: {{type: s3_listing, bucket: tested, prefix: data/, simulate_aws_conn_id: onlooker}}
select: {{include: ["data/**"]}}
age: {{from: key_date, regex: "data/(?P<date>[0-9]{{4}})/", format: "%Y", retain: 1d}}
window: {{safety_delay: 0s}}
abort_incomplete_after: 1s
"""
RUN = """
    import json, sys
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.utils.db import initdb

    initdb()
    DagBundlesManager().sync_bundles_to_db()
    bag = BundleDagBag(dag_folder=sys.argv[1], bundle_path=sys.argv[1], bundle_name="dags-folder")
    sync_bag_to_db(bag, "dags-folder", None)
    states = []
    for dag_id in sys.argv[2:]:
        states.append(str(bag.dags[dag_id].test().state.value))
    print("RESULT", json.dumps(states))
"""


def run_dags(home: Path, env: dict[str, str], *dag_ids: str) -> list[str]:
    states: list[str] = result_of(
        RUN,
        str(ROOT / "dags"),
        *dag_ids,
        home=home,
        env={"AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"), **env},
        timeout=240,
    )
    return states


def test_simulate_then_enforce_twice_then_redrive_run_task_by_task(tmp_path: Path) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    cleanup, redrive = "s3_retention_cleanup__tested", "s3_retention_redrive"

    def look(conninfo: str, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(conninfo) as conn:
            return conn.execute(statement.encode()).fetchall()

    with postgres(tmp_path / "pg") as database, s3_server(tmp_path / "s3", worker_buckets=["tested"]) as s3:
        ledger = create_ledger(database)
        client = s3.admin_client()
        client.create_bucket(Bucket="tested")
        for key in ("data/2020/a", "data/2020/b", "data/2999/c", "data/undated"):
            client.put_object(Bucket="tested", Key=key, Body=b"x")
        client.create_multipart_upload(Bucket="tested", Key="data/2020/unfinished")
        env = {
            "AIRFLOW_CONN_S3_RETENTION_LEDGER": ledger.airflow_connection_uri,
            "AIRFLOW_CONN_ONLOOKER": s3.connection_uri(s3.reader),
            "AIRFLOW__S3_RETENTION__POLICIES_DIR": str(policies),
            "AIRFLOW__S3_RETENTION__MIN_RETENTION": "1s",
        }
        home = tmp_path / "home"

        (policies / "tested.yaml").write_text(POLICY.format(mode="simulate"))
        assert run_dags(home, env, cleanup) == ["success"]
        assert look(ledger.writer_conninfo, "SELECT count(*) FROM s3_retention.intervals") == [(0,)]
        assert look(ledger.writer_conninfo, "SELECT count(*) FROM s3_retention.watermarks") == [(0,)]
        assert client.list_objects_v2(Bucket="tested")["KeyCount"] == 4
        assert len(client.list_multipart_uploads(Bucket="tested")["Uploads"]) == 1
        # All of that by an identity that cannot delete, and without the one that can.
        assert look(
            ledger.writer_conninfo, "SELECT policy, num_scanned, num_due FROM s3_retention.simulations"
        ) == [("tested", 4, 2)]
        env["AIRFLOW_CONN_S3_RETENTION_STORE"] = s3.airflow_connection_uri

        (policies / "tested.yaml").write_text(POLICY.format(mode="enforce"))
        assert run_dags(home, env, cleanup, cleanup, redrive) == ["success"] * 3
        outcomes = look(
            ledger.writer_conninfo, "SELECT key, outcome FROM s3_retention.ledger_entries ORDER BY key"
        )
        assert outcomes == [("data/2020/a", "deleted"), ("data/2020/b", "deleted")]
        states = look(
            ledger.writer_conninfo, "SELECT state, num_discovered FROM s3_retention.intervals ORDER BY 1, 2"
        )
        assert states == [("completed", 0), ("completed", 2)]
        assert "Uploads" not in client.list_multipart_uploads(Bucket="tested")
        aborted = "SELECT key, outcome FROM s3_retention.aborted_uploads"
        assert look(ledger.writer_conninfo, aborted) == [("data/2020/unfinished", "aborted")]
        left = {entry["Key"] for entry in client.list_objects_v2(Bucket="tested")["Contents"]}
        assert left == {"data/2999/c", "data/undated"}
