"""What Airflow says of a DAG when a task asks it: hints that only make a flag more exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from airflow.providers.common.compat.sdk import get_current_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.steps.flag_missed import Hints

log = structlog.get_logger("s3_retention")

PART = 40
"""Run ids of one question: they travel in a URL."""
MAX_ASKED = 400
"""Only of the newest ticks Airflow is asked; of older ones the ledger alone decides."""


def hints_of(dag_id: str) -> Hints:
    """Give the hints about one DAG, asked when they are needed. Whatever goes wrong means "not known"."""
    from s3_retention.steps.flag_missed import Hints

    return Hints(
        runs_among=lambda run_ids: _runs_among(dag_id, run_ids), is_paused=lambda: _is_paused(dag_id)
    )


def _runs_among(dag_id: str, run_ids: Sequence[str]) -> frozenset[str]:
    ti = get_current_context()["ti"]
    asked = list(run_ids)[-MAX_ASKED:]
    found: set[str] = set()
    try:
        for start in range(0, len(asked), PART):
            part = asked[start : start + PART]
            if _count(ti, dag_id, part):
                found.update(one for one in part if _count(ti, dag_id, [one]))
    except Exception:
        log.warning("Airflow did not say which runs there are; the ledger alone decides", exc_info=True)
    return frozenset(found)


def _count(ti: Any, dag_id: str, run_ids: list[str]) -> int:
    return int(ti.get_dr_count(dag_id=dag_id, run_ids=run_ids))


def _is_paused(dag_id: str) -> bool | None:
    ti = get_current_context()["ti"]
    try:
        return bool(ti.get_dag(dag_id).is_paused)
    except Exception:  # noqa: BLE001 - a hint, and logged
        # Also for a DAG that is gone, and before Airflow 3.2, where a task cannot ask.
        log.info("Airflow did not say whether the DAG is paused", dag=dag_id)
        return None
