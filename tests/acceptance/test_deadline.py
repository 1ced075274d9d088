"""A late run on a real Airflow: its own alert calls the package, and a person is told once."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.conftest import ask, until
from tests.acceptance.test_watch import WATCH, pass_once

if TYPE_CHECKING:
    from sandbox.stack import Stack

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300)]

LATE = "s3_retention_cleanup__late"


def test_a_run_that_has_not_succeeded_at_its_deadline_is_flagged_once_and_found(running: Stack) -> None:
    running.airflow.wait_for_dag(LATE)
    running.airflow.wait_for_dag(WATCH)
    running.airflow.unpause(LATE)
    running.airflow.unpause(WATCH)
    # Airflow counts a deadline from the logical date, which a run of the scheduler always has.
    tick = datetime.now(timezone.utc).replace(microsecond=0)
    body = {"logical_date": tick.isoformat(), "conf": {}}
    run_id = str(running.airflow.post(f"/dags/{LATE}/dagRuns", body)["dag_run_id"])
    running.airflow.wait_for_run(LATE, run_id, expect="failed")  # its bucket is not there
    look = "SELECT policy, deadline_at FROM s3_retention.late_runs WHERE run_id = %s"
    flagged = until(lambda: ask(running, look, run_id))
    assert flagged == [("late", tick + timedelta(seconds=5))]
    pass_once(running)
    (found,) = ask(
        running,
        "SELECT detail ->> 'message' FROM s3_retention.findings WHERE kind = 'late_run' AND subject = %s",
        run_id,
    )
    assert found[0].startswith(f"policy late: run {run_id} is late: at its deadline, ")

    # A run by API without a logical date has no deadline, and runs as ever.
    by_api = running.airflow.trigger(LATE)
    running.airflow.wait_for_run(LATE, by_api, expect="failed")
    # Clearing a run under a deadline works.
    running.airflow.clear(LATE, run_id, None)
    running.airflow.wait_for_run(LATE, run_id, expect="failed")
    # The tick of New Year, which Airflow made up for when the DAG was unpaused, was late from the start.
    late = ask(running, "SELECT run_id FROM s3_retention.late_runs WHERE policy = 'late' ORDER BY due_at")
    assert [name.partition("__")[0] for (name,) in late] == ["scheduled", "manual"]
    assert late[1] == (run_id,)
