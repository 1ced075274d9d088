"""What an operator, a killer and a broken policy file do to a real Airflow."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.acceptance.conftest import ask, task_instance, until

if TYPE_CHECKING:
    from sandbox.stack import Stack

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300)]


def seed(running: Stack, bucket: str, num_objects: int, name: str = "") -> list[str]:
    client = running.s3.admin_client()
    with suppress(client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
        client.create_bucket(Bucket=bucket)
    keys = [f"data/2026-01-01/{name}{number}.bin" for number in range(num_objects)]
    for key in keys:
        client.put_object(Bucket=bucket, Key=key, Body=b"x")
    client.put_object(Bucket=bucket, Key="elsewhere/2026-01-01/0.bin", Body=b"x")
    return keys


def keys_in(running: Stack, bucket: str) -> set[str]:
    answer = running.s3.admin_client().list_objects_v2(Bucket=bucket, Prefix="data/")
    return {entry["Key"] for entry in answer.get("Contents", [])}


def pid_of(instance_id: str) -> int | None:
    """Find the process of a running task by the title that Airflow gives it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_bytes().rstrip(b"\0 ")
            except OSError:
                continue
            if title == f"airflow worker -- {instance_id}".encode():
                return int(entry.name)
    return None


def test_a_task_killed_on_its_last_try_leaves_its_commands_in_quarantine_as_worker_lost(
    running: Stack,
) -> None:
    dag_id = "s3_retention_cleanup__killed"
    keys = seed(running, "killed", 4)
    running.airflow.wait_for_dag(dag_id)
    running.airflow.unpause(dag_id)
    with psycopg.connect(running.ledger.superuser_conninfo) as blocker:
        # Made before, since a plan that makes it would wait here too.
        blocker.execute("SELECT s3_retention.ensure_ledger_partition(1)")
        blocker.commit()
        # Plans read this table and settles write it: a worker deletes in S3 and then waits here, unsettled.
        blocker.execute("LOCK TABLE s3_retention.ledger_entries IN EXCLUSIVE MODE")
        run_id = running.airflow.trigger(dag_id)
        until(lambda: "data/2026-01-01/0.bin" not in keys_in(running, "killed"))
        victim = task_instance(running, dag_id, run_id, "delete_batch", 0)
        os.kill(until(lambda: pid_of(victim["id"])), signal.SIGKILL)
        until(
            lambda: task_instance(running, dag_id, run_id, "delete_batch", 0)["state"] == "failed",
        )
        blocker.rollback()
    running.airflow.wait_for_run(dag_id, run_id, expect="success")
    parked = ask(
        running,
        "SELECT key, failure_class, dag_id, run_id, map_index FROM s3_retention.quarantine "
        "WHERE policy = 'killed' AND resolved_at IS NULL ORDER BY key",
    )
    assert parked == [(key, "worker_lost", dag_id, run_id, 0) for key in keys[:2]]
    report = running.airflow.xcom(dag_id, run_id, "report_run")
    assert report["num_by_outcome"] == {"deleted": 2, "quarantined": 2}
    assert report["is_balanced"]

    # What the dead worker had deleted is found to be gone, and nothing is deleted twice.
    redrive = running.airflow.trigger(
        "s3_retention_redrive", {"failure_classes": ["worker_lost"], "dry_run": False}
    )
    running.airflow.wait_for_dag("s3_retention_redrive")
    running.airflow.unpause("s3_retention_redrive")
    running.airflow.wait_for_run("s3_retention_redrive", redrive, expect="success")
    again = running.airflow.xcom("s3_retention_redrive", redrive, "report_run")
    assert again["num_by_outcome"] == {"already_absent": 2}
    assert ask(running, "SELECT num_pending FROM s3_retention.balance WHERE policy = 'killed'") == [(0,)]


def test_clearing_an_index_a_task_or_the_whole_run_repeats_nothing_and_loses_nothing(
    running: Stack,
) -> None:
    dag_id = "s3_retention_cleanup__cleared"
    keys = seed(running, "cleared", 5)
    running.s3.deny("cleared", [keys[4]])
    running.airflow.wait_for_dag(dag_id)
    running.airflow.unpause(dag_id)
    run_id = running.airflow.trigger(dag_id)
    running.airflow.wait_for_run(dag_id, run_id, expect="success")
    look = (
        "SELECT encode(command_id, 'hex'), outcome, settled_at FROM s3_retention.ledger_entries "
        "WHERE bucket = 'cleared' ORDER BY 1"
    )
    parked = "SELECT quarantine_id, failure_class, resolved_at FROM s3_retention.quarantine WHERE policy = 'cleared'"
    entries, waiting = ask(running, look), ask(running, parked)
    assert [outcome for _, outcome, _ in entries] == ["deleted"] * 4
    assert [failure_class for _, failure_class, _ in waiting] == ["permission"]
    clearings: list[tuple[list[str | tuple[str, int]] | None, bool]] = [
        ([("delete_batch", 2)], False),
        (["quarantine_failed"], False),
        (["quarantine_failed"], True),
        (["claim_interval"], True),
        (None, True),
    ]
    for what, downstream in clearings:
        running.airflow.clear(dag_id, run_id, what, downstream=downstream)
        running.airflow.wait_for_run(dag_id, run_id, expect="success")
        assert ask(running, look) == entries
        assert ask(running, parked) == waiting
        assert running.airflow.xcom(dag_id, run_id, "report_run")["num_by_outcome"] == {
            "deleted": 4,
            "quarantined": 1,
        }
    intervals = ask(running, "SELECT state FROM s3_retention.intervals WHERE policy = 'cleared'")
    assert intervals == [("completed",)]


@pytest.mark.parametrize("what", [[("delete_batch", 0)], None], ids=["an index", "all of it"])
def test_clearing_a_run_that_is_under_way_records_each_object_once_and_loses_none(
    running: Stack, what: list[str | tuple[str, int]] | None
) -> None:
    bucket, dag_id = "interrupted", "s3_retention_cleanup__interrupted"
    keys = seed(running, bucket, 4, name="one" if what else "all")
    running.airflow.wait_for_dag(dag_id)
    running.airflow.unpause(dag_id)
    with psycopg.connect(running.ledger.superuser_conninfo) as blocker:
        blocker.execute("SELECT s3_retention.ensure_ledger_partition(1)")
        blocker.commit()
        # The workers delete in S3 and wait here, unsettled, while they are cleared.
        blocker.execute("LOCK TABLE s3_retention.ledger_entries IN EXCLUSIVE MODE")
        run_id = running.airflow.trigger(dag_id)
        until(lambda: keys[0] not in keys_in(running, bucket))
        running.airflow.clear(dag_id, run_id, what)
        # Airflow ends the cleared try: what it had deleted it can never record.
        until(lambda: task_instance(running, dag_id, run_id, "delete_batch", 0)["try_number"] == 2)
        blocker.rollback()
    running.airflow.wait_for_run(dag_id, run_id, expect="success")
    assert keys_in(running, bucket) == set()
    entries = ask(
        running,
        "SELECT key, outcome FROM s3_retention.ledger_entries WHERE bucket = %s AND key = ANY(%s) ORDER BY 1",
        bucket,
        keys,
    )
    assert [key for key, _ in entries] == keys
    assert [outcome for _, outcome in entries[:2]] == ["already_absent"] * 2
    assert {outcome for _, outcome in entries[2:]} <= {"deleted", "already_absent"}
    assert running.airflow.xcom(dag_id, run_id, "report_run")["is_balanced"]
    balance = ask(
        running,
        "SELECT sum(num_pending), sum(num_quarantined) FROM s3_retention.balance WHERE policy = %s",
        bucket,
    )
    assert balance == [(0, 0)]


def test_a_broken_policy_file_breaks_its_own_dag_alone_and_says_what_to_fix(running: Stack) -> None:
    errors = running.airflow.import_errors()
    assert list(errors) == ["s3_retention_policy_errors.py"]
    text = errors["s3_retention_policy_errors.py"]
    assert "broken.yaml: mod" in text
    assert "broken.yaml: age.retain = '1h'" in text
    dag_ids = {dag["dag_id"] for dag in running.airflow.get("/dags")["dags"]}
    assert "s3_retention_cleanup__broken" not in dag_ids
    assert "s3_retention_cleanup__weekly_digests" in dag_ids


@pytest.mark.parametrize("mode", ["simulate", "enforce"])
def test_a_run_whose_plan_failed_is_red_and_deletes_nothing(running: Stack, mode: str) -> None:
    dag_id = f"s3_retention_cleanup__absent_{mode}"
    running.airflow.wait_for_dag(dag_id)
    running.airflow.unpause(dag_id)
    run_id = running.airflow.trigger(dag_id)
    assert running.airflow.wait_for_run(dag_id, run_id) == "failed"
    assert "NoSuchBucket" in running.airflow.task_log(dag_id, run_id, "plan_commands")
    assert "the next run" in running.airflow.task_log(dag_id, run_id, "report_run")
    states = ask(
        running, "SELECT state, num_scanned FROM s3_retention.intervals WHERE policy = %s", dag_id[22:]
    )
    assert states == ([("claimed", None)] if mode == "enforce" else [])


def test_a_redrive_that_selects_nothing_is_a_success(running: Stack) -> None:
    dag_id = "s3_retention_redrive"
    running.airflow.unpause(dag_id)
    run_id = running.airflow.trigger(dag_id, {"policy": "no_such_policy"})
    running.airflow.wait_for_run(dag_id, run_id, expect="success")
    assert running.airflow.xcom(dag_id, run_id, "report_run")["num_discovered"] == 0


def test_a_schema_that_is_behind_fails_the_run_with_the_command_to_run(running: Stack) -> None:
    dag_id = "s3_retention_redrive"
    with psycopg.connect(running.ledger.superuser_conninfo, autocommit=True) as conn:
        conn.execute("UPDATE s3_retention.alembic_version SET version_num = '0000'")
        try:
            run_id = running.airflow.trigger(dag_id)
            assert running.airflow.wait_for_run(dag_id, run_id) == "failed"
        finally:
            conn.execute("UPDATE s3_retention.alembic_version SET version_num = '0017'")
    log = running.airflow.task_log(dag_id, run_id, "select_commands")
    assert "the ledger schema is at revision 0000, and this code needs 0017: run `make migrate`" in log
