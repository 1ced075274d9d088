"""The demo's own story, told on a real Airflow with every figure held against what it must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from sandbox.story import CLEANUP, REDRIVE, Story

if TYPE_CHECKING:
    from sandbox.stack import Stack

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(400)]


def test_the_story_of_the_demo_is_true_in_every_figure(told: Story) -> None:
    assert told.wrong == []


def test_a_wrong_figure_is_told_as_wrong(running: Stack) -> None:
    story = Story(running, Console(quiet=True))
    story.figure("objects left", found=7, expected=8)
    assert story.wrong == ["objects left: 7 instead of 8"]


@pytest.mark.usefixtures("told")
def test_a_mapped_index_is_named_by_its_batch_and_objects(running: Stack) -> None:
    run_id = running.airflow.get(f"/dags/{CLEANUP}/dagRuns")["dag_runs"][0]["dag_run_id"]
    names = {
        one["rendered_map_index"]
        for one in running.airflow.task_instances(CLEANUP, run_id)
        if one["task_id"] == "delete_batch"
    }
    assert names == {"batch 1 · 5,000 objects"}


@pytest.mark.usefixtures("told")
def test_xcoms_carry_ids_and_counts_under_4_kb(running: Stack) -> None:
    run_id = running.airflow.get(f"/dags/{CLEANUP}/dagRuns")["dag_runs"][0]["dag_run_id"]
    for task_id in ("claim_interval", "deal_batches", "quarantine_failed", "report_run"):
        value = running.airflow.xcom(CLEANUP, run_id, task_id)
        assert value is not None
        assert len(str(value)) < 4_096
        assert "customer" not in str(value)


def test_the_redrive_form_offers_policies_and_failure_classes(running: Stack) -> None:
    params = running.airflow.get(f"/dags/{REDRIVE}/details")["params"]
    assert set(params) == {
        "dry_run",
        "action",
        "policy",
        "failure_classes",
        "code",
        "operation_ids",
        "tenant",
        "interval",
        "older_than",
        "max_commands",
        "note",
        "replay_interval",
    }
    assert "weekly_digests" in params["policy"]["schema"]["examples"]
    assert "permission" in params["failure_classes"]["schema"]["examples"]


def test_the_redrive_form_refuses_what_is_no_operation_id(running: Stack) -> None:
    answer = running.airflow.request(
        "POST",
        f"/dags/{REDRIVE}/dagRuns",
        json={"logical_date": None, "conf": {"operation_ids": ["everything"]}},
    )
    assert answer.status_code == 400
