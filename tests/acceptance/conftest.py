"""One whole sandbox for all acceptance tests: real Postgres, real S3, a real Airflow with all its components."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from sandbox.stack import Stack, stack
from sandbox.story import Story, write_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.airflow_api import Json

DEFAULTS = """
name: {name}
version: v1
mode: enforce
source: {{type: s3_listing, bucket: {bucket}, prefix: data/}}
select: {{include: ["data/**"]}}
age: {{from: key_date, regex: "data/(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})/", format: "%Y-%m-%d", retain: 1d}}
window: {{safety_delay: 0s}}
batch: {{size: 2}}
limits: {{allow_expire_everything: true}}
"""
BROKEN = DEFAULTS.replace("retain: 1d", "retain: 1h").replace("mode: enforce", "mod: enforce")
BUCKETS = ("killed", "cleared")
NOTIFIERS = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policies")
    write_policy(folder)
    for name in BUCKETS:
        (folder / f"{name}.yaml").write_text(DEFAULTS.format(name=name, bucket=name))
    for mode in ("simulate", "enforce"):
        absent = DEFAULTS.format(name=f"absent_{mode}", bucket="absent")
        (folder / f"absent_{mode}.yaml").write_text(absent.replace("mode: enforce", f"mode: {mode}"))
    watched = DEFAULTS.format(name="watched", bucket="absent") + 'schedule: "0 * * * *"\n'
    (folder / "watched.yaml").write_text(watched)
    late = DEFAULTS.format(name="late", bucket="absent") + 'schedule: "0 0 1 1 *"\ndeadline: 5s\n'
    (folder / "late.yaml").write_text(late)
    (folder / "broken.yaml").write_text(BROKEN.format(name="broken", bucket="broken"))
    return folder


@pytest.fixture(scope="session")
def running(policies: Path) -> Iterator[Stack]:
    with stack(
        policies=policies,
        worker_buckets=("weekly-digests", "absent", *BUCKETS),
        # A task that is killed is on its last try at once.
        env={
            "AIRFLOW__S3_RETENTION__TASK_RETRIES": "0",
            "AIRFLOW__S3_RETENTION__ON_FINDING": "finding_notifier.FileNotifier",
            "FINDINGS_FILE": str(policies / "findings.jsonl"),
            "PYTHONPATH": str(NOTIFIERS),
        },
    ) as started:
        yield started


@pytest.fixture(scope="session")
def told(running: Stack) -> Story:
    """The story of the demo, told once; what it left behind is for the other tests."""
    story = Story(running, Console())
    story.tell()
    return story


def task_instance(running: Stack, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> Json:
    """Find one task instance of a run."""
    return next(
        one
        for one in running.airflow.task_instances(dag_id, run_id)
        if (one["task_id"], one["map_index"]) == (task_id, map_index)
    )
