"""The deadline of a policy: what its DAG carries, and what is done when Airflow says that it has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.child import ROOT, result_of

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox.ledger import Ledger
    from tests.factories import World

POLICY = """
name: tested
version: v1
mode: {mode}
schedule: "0 3 * * *"
deadline: 2h
source: {{type: s3_listing, bucket: tested, prefix: data/}}
select: {{include: ["data/**"]}}
age: {{from: last_modified, retain: 30d}}
"""
READ = """
    import json, sys
    if "old" in sys.argv[2:]:
        import airflow.sdk
        # As before Airflow 3.2: the names are not there.
        for name in ("AsyncCallback", "DeadlineAlert", "DeadlineReference"):
            airflow.sdk.__dict__.pop(name, None)
            airflow.sdk.__lazy_imports.pop(name)
    from airflow.dag_processing.dagbag import BundleDagBag
    from airflow.serialization.serialized_objects import DagSerialization

    bag = BundleDagBag(dag_folder=sys.argv[1], bundle_path=sys.argv[1], bundle_name="dags-folder")
    (dag,) = [dag for dag_id, dag in bag.dags.items() if dag_id.endswith("__tested")]
    DagSerialization.to_dict(dag)
    print("RESULT", json.dumps({
        "errors": bag.import_errors,
        "deadlines": [
            [one.interval.total_seconds(), one.callback.path, one.callback.kwargs, type(one.callback).__name__,
             type(one.reference).__name__]
            for one in dag.deadline or []
        ],
    }))
"""
FLAG = """
    import asyncio, json, sys
    from datetime import datetime
    from s3_retention.runtime.deadline import flag_late_run

    context = json.load(sys.stdin)
    context["deadline"]["deadline_time"] = datetime.fromisoformat(context["deadline"]["deadline_time"])

    async def twice():
        # As when the triggerer dies in the middle and is started again, or two schedulers find the same run.
        await asyncio.gather(flag_late_run("weekly_digests", context), flag_late_run("weekly_digests", context))

    asyncio.run(twice())
    print("RESULT", json.dumps(True))
"""


def read(tmp_path: Path, mode: str, *options: str) -> Any:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "tested.yaml").write_text(POLICY.format(mode=mode))
    return result_of(
        READ,
        str(ROOT / "dags"),
        *options,
        home=tmp_path / "home",
        env={"AIRFLOW__S3_RETENTION__POLICIES_DIR": str(policies)},
    )


def test_a_dag_carries_the_deadline_of_its_policy_counted_from_the_tick(tmp_path: Path) -> None:
    found = read(tmp_path, "enforce")
    assert found == {
        "errors": {},
        "deadlines": [
            [
                7200.0,
                "s3_retention.runtime.deadline.flag_late_run",
                {"policy_name": "tested"},
                "AsyncCallback",
                "DagRunLogicalDateDeadline",
            ]
        ],
    }


@pytest.mark.parametrize(("mode", "options"), [("simulate", ()), ("enforce", ("old",))])
def test_a_simulation_and_an_older_airflow_have_no_deadline_and_the_dag_is_whole(
    tmp_path: Path, mode: str, options: tuple[str, ...]
) -> None:
    assert read(tmp_path, mode, *options) == {"errors": {}, "deadlines": []}


def test_a_late_run_is_written_down_once_however_often_airflow_calls(
    world: World, ledger: Ledger, tmp_path: Path
) -> None:
    context = """{
        "dag_run": {"dag_id": "d", "dag_run_id": "r", "run_after": "2026-12-01T04:41:00Z", "state": "running"},
        "deadline": {"id": "1", "deadline_time": "2026-12-01T06:41:00+00:00"}
    }"""
    result_of(
        FLAG,
        home=tmp_path / "home",
        env={
            "AIRFLOW_CONN_S3_RETENTION_LEDGER": ledger.airflow_connection_uri,
            "PYTHONPATH": str(ROOT / "plugins"),
        },
        stdin=context,
    )
    (row,) = world.rows(
        "SELECT policy, dag_id, run_id, state, to_char(due_at, 'HH24:MI') AS due, "
        "to_char(deadline_at, 'HH24:MI') AS deadline FROM s3_retention.late_runs"
    )
    assert list(row.values()) == ["weekly_digests", "d", "r", "running", "04:41", "06:41"]
