"""A plan over a limit in a real Airflow: it waits without a worker, and the answer comes by the REST API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.conftest import ask, task_instance
from tests.acceptance.test_operator import keys_in, seed

if TYPE_CHECKING:
    from sandbox.airflow_api import Json
    from sandbox.stack import Stack

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300)]

BUCKET = "approval"
DAG_ID = "s3_retention_cleanup__approval"
HASTY = "s3_retention_cleanup__hasty"


def begin(running: Stack, dag_id: str = DAG_ID) -> str:
    """Start a run, and wait until it asks: its id."""
    running.airflow.wait_for_dag(dag_id)
    running.airflow.unpause(dag_id)
    run_id = running.airflow.trigger(dag_id)
    running.airflow.wait_for_question(dag_id, run_id, "approve_plan")
    return run_id


def question(running: Stack, run_id: str, dag_id: str = DAG_ID) -> Json:
    return task_instance(running, dag_id, run_id, "approve_plan")


def path(run_id: str) -> str:
    return f"/dags/{DAG_ID}/dagRuns/{run_id}/taskInstances/approve_plan/-1/hitlDetails"


def decisions(running: Stack, policy: str = "approval") -> list[tuple[str | None, str | None]]:
    return [
        (decision, decided_by)
        for decision, decided_by in ask(
            running,
            "SELECT decision, decided_by FROM s3_retention.approvals JOIN s3_retention.intervals USING (interval_id) "
            "WHERE policy = %s ORDER BY interval_id",
            policy,
        )
    ]


def test_a_plan_over_a_limit_waits_and_a_rejected_one_deletes_nothing_and_an_approved_one_what_is_as_it_was(
    running: Stack,
) -> None:
    keys = seed(running, BUCKET, 4)
    run_id = begin(running)
    body = running.airflow.get(path(run_id))["body"]
    assert "4 objects, over limits.max_objects = 2" in body
    assert keys[0] in body
    # Nothing goes before the answer, and nothing of it runs.
    assert keys_in(running, BUCKET) == set(keys)
    assert task_instance(running, DAG_ID, run_id, "deal_batches")["state"] is None
    running.airflow.answer(DAG_ID, run_id, "approve_plan", "Reject")
    running.airflow.wait_for_run(DAG_ID, run_id, expect="success")
    assert keys_in(running, BUCKET) == set(keys)
    report = running.airflow.xcom(DAG_ID, run_id, "report_run")
    assert report["num_by_detail"] == {"kept:rejected": 4}
    ((decision, decided_by),) = decisions(running)
    assert decision == "rejected"
    assert decided_by  # whom Airflow names

    # The next run plans the same objects as stragglers, and asks anew.
    run_id = approved = begin(running)
    client = running.s3.admin_client()
    client.put_object(Bucket=BUCKET, Key=keys[0], Body=b"changed meanwhile")
    client.put_object(Bucket=BUCKET, Key="data/2026-01-01/created.bin", Body=b"x")
    running.airflow.answer(DAG_ID, run_id, "approve_plan", "Approve")
    running.airflow.wait_for_run(DAG_ID, run_id, expect="success")
    assert keys_in(running, BUCKET) == {keys[0], "data/2026-01-01/created.bin"}
    report = running.airflow.xcom(DAG_ID, run_id, "report_run")
    assert report["num_by_outcome"] == {"deleted": 3, "changed": 1}
    assert [decision for decision, _ in decisions(running)] == ["rejected", "approved"]

    # What is left is small: it passes without asking.
    run_id = running.airflow.trigger(DAG_ID)
    running.airflow.wait_for_run(DAG_ID, run_id, expect="success")
    assert question(running, run_id)["state"] == "skipped"
    assert keys_in(running, BUCKET) == set()
    assert len(decisions(running)) == 2

    # Clearing the question, or all, of the run that was approved asks nothing and repeats nothing.
    for what in (["approve_plan"], None):
        running.airflow.clear(DAG_ID, approved, what, downstream=True)
        running.airflow.wait_for_run(DAG_ID, approved, expect="success")
        report = running.airflow.xcom(DAG_ID, approved, "report_run")
        assert report["num_by_outcome"] == {"deleted": 3, "changed": 1}
        assert len(decisions(running)) == 2


def test_a_plan_that_nobody_answers_in_time_is_closed_as_if_it_were_rejected(running: Stack) -> None:
    keys = seed(running, "hasty", 3)
    run_id = begin(running, HASTY)
    running.airflow.wait_for_run(HASTY, run_id, expect="success")
    assert keys_in(running, "hasty") == set(keys)
    assert decisions(running, "hasty") == [("timed_out", None)]
    assert running.airflow.xcom(HASTY, run_id, "report_run")["num_by_detail"] == {"kept:rejected": 3}


def test_a_task_that_is_marked_as_done_is_no_answer(running: Stack) -> None:
    dag_id = HASTY
    keys = sorted(keys_in(running, "hasty")) or seed(running, "hasty", 3)
    run_id = begin(running, dag_id)
    running.airflow.patch(
        f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/approve_plan", {"new_state": "success"}
    )
    assert running.airflow.wait_for_run(dag_id, run_id) == "failed"
    assert "waits for an answer" in running.airflow.task_log(dag_id, run_id, "deal_batches")
    assert keys_in(running, "hasty") == set(keys)
    # The next run asks about the same plan, and nobody answers it either.
    run_id = begin(running, dag_id)
    running.airflow.wait_for_run(dag_id, run_id, expect="success")
    assert decisions(running, "hasty") == [("timed_out", None)] * 2
    assert keys_in(running, "hasty") == set(keys)
