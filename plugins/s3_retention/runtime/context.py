"""What Airflow says about the task that runs: who it is, who asked for it, and how its siblings fared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from airflow.providers.common.compat.sdk import get_current_context

from s3_retention.core.holder import Holder

if TYPE_CHECKING:
    from datetime import datetime

log = structlog.get_logger("s3_retention")


def holder() -> Holder:
    """Say who this try of this task is."""
    ti = get_current_context()["ti"]
    return Holder(
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task_id=ti.task_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        try_number=ti.try_number,
    )


def triggering_user() -> str | None:
    """Say who triggered this run, where Airflow knows."""
    user: str | None = getattr(get_current_context()["dag_run"], "triggering_user_name", None)
    return user


def triggered_at() -> datetime | None:
    """Say when this run was due, or somebody asked for it."""
    at: datetime | None = getattr(get_current_context()["dag_run"], "run_after", None)
    return at


def failed_map_indexes(task_id: str) -> frozenset[int]:
    """Ask Airflow which mapped tasks failed: a hint, which the ledger can do without."""
    ti = get_current_context()["ti"]
    try:
        states = ti.get_task_states(dag_id=ti.dag_id, task_ids=[task_id], run_ids=[ti.run_id])
    except Exception:
        log.warning("Airflow gave no task states; the ledger alone decides", exc_info=True)
        return frozenset()
    return frozenset(
        int(name.rpartition("_")[2])
        for name, state in states.get(ti.run_id, {}).items()
        if state == "failed" and name.rpartition("_")[2].isdigit()
    )
