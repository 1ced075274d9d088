"""The log of a run that ends red has its report, as that of any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.airflow.child import result_of

if TYPE_CHECKING:
    from pathlib import Path

RED = """
    import json
    from collections import Counter
    from contextlib import nullcontext

    import airflow
    import structlog.testing
    from s3_retention import errors
    from s3_retention.core.report import RunReport
    from s3_retention.runtime import tasks
    from s3_retention.steps import report

    told = RunReport("p", "k", 5, Counter(deleted=3, stopped=2))

    def run(conn, holder, *, tell, **given):
        tell(told)
        raise errors.BatchStoppedError("2 commands stay pending")

    report.run = run
    tasks.open_ledger = nullcontext
    tasks.holder = tasks.triggered_at = lambda: None
    with structlog.testing.capture_logs() as logs:
        try:
            tasks.report_run(None, None)
        except errors.BatchStoppedError as error:
            logs.append({"event": str(error)})
    lines = [one["event"] for one in logs]
    print("RESULT", json.dumps([lines, str(told).splitlines()]))
"""


def test_the_report_of_a_red_run_is_in_its_log_before_the_run_fails(tmp_path: Path) -> None:
    lines, screen = result_of(RED, home=tmp_path)
    assert lines == ["report", *screen, "2 commands stay pending"]
