"""One whole sandbox for all acceptance tests: real Postgres, real S3, a real Airflow with all its components."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from rich.console import Console

from sandbox.stack import BUCKETS as DEMO_BUCKETS
from sandbox.stack import Stack, stack
from sandbox.story import Story, write_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
BUCKETS = ("killed", "cleared", "interrupted", "minutely")
MINUTELY = "s3_retention_cleanup__minutely"
WATCHED_MINUTE = (datetime.now(timezone.utc).minute + 40) % 60
"""No tick of this policy comes by itself while the tests run: a whole hour would, now and then."""
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
    watched = DEFAULTS.format(name="watched", bucket="absent") + f'schedule: "{WATCHED_MINUTE} * * * *"\n'
    (folder / "watched.yaml").write_text(watched)
    late = DEFAULTS.format(name="late", bucket="absent") + 'schedule: "0 0 1 1 *"\ndeadline: 5s\n'
    (folder / "late.yaml").write_text(late)
    minutely = DEFAULTS.format(name="minutely", bucket="minutely") + 'schedule: "* * * * *"\n'
    (folder / "minutely.yaml").write_text(minutely)
    limited = "limits: {allow_expire_everything: true, max_objects: 2"
    for name, timeout in (("approval", "1h"), ("hasty", "5s")):
        text = DEFAULTS.format(name=name, bucket=name)
        asking = text.replace(
            "limits: {allow_expire_everything: true", f"{limited}, approval_timeout: {timeout}"
        )
        (folder / f"{name}.yaml").write_text(asking)
    (folder / "broken.yaml").write_text(BROKEN.format(name="broken", bucket="broken"))
    return folder


@pytest.fixture(scope="session")
def running(policies: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    with stack(
        policies=policies,
        worker_buckets=(*DEMO_BUCKETS, "absent", "approval", "hasty", *BUCKETS),
        # A task that is killed is on its last try at once.
        env={
            "AIRFLOW__S3_RETENTION__TASK_RETRIES": "0",
            "AIRFLOW__S3_RETENTION__ON_FINDING": "finding_notifier.FileNotifier",
            "FINDINGS_FILE": str(policies / "findings.jsonl"),
            "PYTHONPATH": str(NOTIFIERS),
        },
    ) as started:
        if any("test_ticks" in item.nodeid for item in request.session.items):
            begin_pause(started)
        yield started


@pytest.fixture(scope="session")
def told(running: Stack) -> Story:
    """The story of the demo, told once; what it left behind is for the other tests."""
    story = Story(running, Console())
    story.tell()
    return story


def begin_pause(running: Stack) -> None:
    """Let the minutely policy run by its schedule, and pause it: while it misses ticks, other tests have their turn."""
    running.s3.admin_client().create_bucket(Bucket="minutely")
    running.airflow.wait_for_dag(MINUTELY)
    while not (runs := running.airflow.dag_runs(MINUTELY)) or not ended_in_its_minute(runs[-1]):
        # Once more where the pause has caught the run of the next minute at its start, and where the run came so late
        # that its interval reaches into the next minute: the first missed tick must not be covered by it.
        running.airflow.unpause(MINUTELY)
        until(lambda: running.airflow.dag_runs(MINUTELY))
        for run in running.airflow.dag_runs(MINUTELY):
            running.airflow.wait_for_run(MINUTELY, run["dag_run_id"], expect="success")
        running.airflow.pause(MINUTELY)


def ended_in_its_minute(run: dict[str, Any]) -> bool:
    """Whether a run succeeded before the tick after its own."""
    if run["state"] != "success":
        return False
    ran_at, ended_at = (
        datetime.fromisoformat(run[name].replace("Z", "+00:00")) for name in ("run_after", "end_date")
    )
    return ended_at < ran_at + timedelta(minutes=1)


def ask(running: Stack, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(running.ledger.superuser_conninfo) as conn:
        cursor = conn.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until something is true, and give it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)
    return found


def task_instance(running: Stack, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> Json:
    """Find one task instance of a run."""
    return next(
        one
        for one in running.airflow.task_instances(dag_id, run_id)
        if (one["task_id"], one["map_index"]) == (task_id, map_index)
    )
