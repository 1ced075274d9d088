"""The same cleanup, by a real Airflow: its scheduler, its mapped tasks, its metadata."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from benchmarks.bed import require_empty, run_ours
from benchmarks.bucket import BUCKET
from benchmarks.contest import sums
from benchmarks.policy import DAG_ID, FIELDS, NAME
from sandbox.stack import stack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.seeds import Seed
    from sandbox.stack import Stack

RUN_SECONDS = 300.0


def run_through_airflow(seed: Seed, folder: Path) -> float:
    """Clean the bucket by one DAG run; give the seconds from its start to its end, as Airflow tells them."""
    with _running(seed, folder) as airflow_stack:
        airflow = airflow_stack.airflow
        airflow.wait_for_dag(DAG_ID)
        airflow.unpause(DAG_ID)
        run_id = airflow.trigger(DAG_ID)
        airflow.wait_for_run(DAG_ID, run_id, RUN_SECONDS, expect="success")
        require_empty(airflow_stack.s3)
        told = airflow.get(f"/dags/{DAG_ID}/dagRuns/{run_id}")
        ended, started = (datetime.fromisoformat(told[name]) for name in ("end_date", "start_date"))
        return (ended - started).total_seconds()


def pair_with_airflow(seed: Seed, folder: Path, number: int) -> tuple[float, float]:
    """Clean the bucket by the steps alone, by ETag as the package does it, and through Airflow: seconds of both.

    They run one after the other, in turns: how quick a machine is changes within minutes.
    """

    def outside() -> float:
        steps, _ = run_ours(seed, folder / f"outside-{number}")
        return sums(steps)[0]

    def through() -> float:
        return run_through_airflow(seed, folder / f"airflow-{number}")

    if number % 2:
        seconds = through()
        return outside(), seconds
    return outside(), through()


@contextmanager
def _running(seed: Seed, folder: Path) -> Iterator[Stack]:
    policies = folder / "policies"
    policies.mkdir(parents=True)
    # JSON is YAML.
    (policies / f"{NAME}.yaml").write_text(json.dumps(FIELDS), encoding="utf-8")
    shutil.copytree(seed.data, folder / "s3" / "data")
    try:
        with stack(folder, policies=policies, worker_buckets=(BUCKET,)) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)
