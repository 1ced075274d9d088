"""The end of a cleanup, where unfinished uploads could not be aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.airflow.child import result_of

if TYPE_CHECKING:
    from pathlib import Path

REPORT = """
    import json
    import airflow
    from s3_retention import errors
    from s3_retention.runtime import tasks

    said = []
    tasks.report_run = lambda policy, interval_id: said.append(f"reported {interval_id}") or {"num_discovered": 0}
    tasks.abort_uploads = lambda policy, interval_id: errors.ListingRefusedError("the uploads cannot be listed")
    claim = {"status": "claimed", "interval_id": 7, "interval_key": "k"}
    for batches in ([], None):
        try:
            tasks.report_cleanup("p", claim, batches)
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    tasks.report_cleanup("p", claim | {"status": "simulated"}, [])
    print("RESULT", json.dumps(said))
"""

READ = """
    import json
    import airflow
    from s3_retention.runtime import uploads

    print("RESULT", json.dumps(str(uploads.abort_uploads("no_such_policy", 7))))
"""


def test_uploads_that_cannot_be_aborted_make_the_run_red_and_never_keep_its_report_back(
    tmp_path: Path,
) -> None:
    reported, red, again, not_planned = result_of(REPORT, home=tmp_path)
    assert (reported, again) == ("reported 7", "reported 7")
    assert red.endswith("the uploads cannot be listed")
    assert "nothing was dealt: see plan_commands" in not_planned


def test_a_policy_that_cannot_be_read_by_then_is_told_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    env = {"AIRFLOW__S3_RETENTION__POLICIES_DIR": str(tmp_path / "policies")}
    assert "there is no such policy file" in result_of(READ, home=tmp_path, env=env)
