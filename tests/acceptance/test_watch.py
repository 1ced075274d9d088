"""The watch on a real Airflow: a paused DAG is flagged without running, and a person is told once."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.conftest import WATCHED_MINUTE, ask, task_instance, until

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox.stack import Stack

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300)]

WATCH = "s3_retention_watch"
PAUSED = "s3_retention_cleanup__watched"
# The first five: should a full hour fall into this test, there is a sixth.
MISSED = (
    "SELECT due_at, cause, flagged_by FROM s3_retention.missed_intervals WHERE policy = 'watched' "
    "ORDER BY due_at LIMIT 5"
)


def pass_once(running: Stack) -> str:
    run_id = running.airflow.trigger(WATCH)
    return f"{running.airflow.wait_for_run(WATCH, run_id)} {run_id}"


def told(policies: Path) -> list[list[str]]:
    lines = (policies / "findings.jsonl").read_text().splitlines()
    return [found for found in map(json.loads, lines) if found and found[0] == "watched"]


def test_five_ticks_of_a_paused_dag_are_flagged_once_without_its_running_and_told_once(
    running: Stack, policies: Path
) -> None:
    for dag_id in (WATCH, PAUSED):
        running.airflow.wait_for_dag(dag_id)
    running.airflow.pause(PAUSED)
    running.airflow.unpause(WATCH)
    pass_once(running)
    assert ask(running, MISSED) == []

    # As if the ledger had seen the last tick five hours ago, and the watch had passed all the while.
    now = datetime.now(timezone.utc)
    last = now.replace(minute=WATCHED_MINUTE, second=0, microsecond=0)
    last -= timedelta(hours=5 + (now.minute < WATCHED_MINUTE))
    ask(
        running,
        "UPDATE s3_retention.schedules SET last_tick_at = %s, last_interval_starts_at = %s, "
        "last_interval_ends_at = %s WHERE policy = 'watched'",
        *[last] * 3,
    )
    ask(
        running,
        "INSERT INTO s3_retention.watch_passes (run_id, did, passed_at) SELECT 'w', '{}', passed_at "
        "FROM generate_series(now() - interval '7 hours', now(), interval '5 minutes') AS passed_at",
    )
    passed = pass_once(running)
    due_ats = [last + timedelta(hours=hour) for hour in range(1, 6)]
    flagged = ask(running, MISSED)
    assert [(due_at, cause) for due_at, cause, _ in flagged] == [(due_at, "paused") for due_at in due_ats]
    pass_once(running)
    assert ask(running, MISSED) == flagged
    opened = ask(
        running,
        "SELECT kind, subject, closed_at FROM s3_retention.findings "
        "WHERE policy = 'watched' AND kind = 'missed_intervals'",
    )
    assert opened == [("missed_intervals", "", None)]
    assert running.airflow.get(f"/dags/{PAUSED}/dagRuns")["dag_runs"] == []

    # The notifier fails at its first call of all: that pass is red, and the finding is told by a later one.
    (text,) = [text for _, kind, text in told(policies) if kind == "missed_intervals"]
    assert "ticks did not run (paused), the oldest at " in text
    log = running.airflow.task_log(WATCH, passed.split()[1], "watch_policies")
    assert "Airflow did not say" not in log.replace("Airflow did not say whether the DAG is paused", "")
    if passed.startswith("failed"):
        assert "on_finding = 'finding_notifier.FileNotifier' failed for finding" in log
    assert "the pager is down" in "".join(
        running.airflow.task_log(WATCH, run["dag_run_id"], "watch_policies")
        for run in running.airflow.get(f"/dags/{WATCH}/dagRuns")["dag_runs"]
        if run["state"] == "failed"
    )

    # Unpaused, Airflow fires the latest past tick at once. That run is a tick which ran, and is not missed.
    running.airflow.unpause(PAUSED)
    (run,) = until(lambda: running.airflow.get(f"/dags/{PAUSED}/dagRuns")["dag_runs"])
    assert run["run_type"] == "scheduled"
    running.airflow.wait_for_run(PAUSED, run["dag_run_id"])
    running.airflow.pause(PAUSED)
    flagging = task_instance(running, PAUSED, run["dag_run_id"], "flag_missed_intervals")
    assert flagging["state"] == "success"
    ran_at = datetime.fromisoformat(run["run_after"].replace("Z", "+00:00"))
    assert ran_at >= due_ats[-1]
    unresolved = (
        "SELECT due_at FROM s3_retention.missed_intervals WHERE policy = 'watched' AND resolved_at IS NULL "
        "ORDER BY due_at LIMIT 5"
    )
    assert ask(running, unresolved) == [(due_at,) for due_at in due_ats if due_at < ran_at]
    last_tick = ask(running, "SELECT last_tick_at FROM s3_retention.schedules WHERE policy = 'watched'")
    assert last_tick == [(ran_at,)]
