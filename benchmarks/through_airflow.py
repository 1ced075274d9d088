"""The same cleanup, by a real Airflow: its scheduler, its mapped tasks, its metadata."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from benchmarks.bed import require_empty
from benchmarks.bucket import BUCKET
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
