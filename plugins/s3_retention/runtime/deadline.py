"""Late runs: the alert that a cleanup DAG carries, and what Airflow calls when a deadline has passed.

A run that never was has no deadline: missed ticks are another matter (``watching.flag_missed_intervals``).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog

from s3_retention.core.policy_parts import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.core.policy import RetentionPolicy

log = structlog.get_logger("s3_retention")

CALLBACK = "s3_retention.runtime.deadline.flag_late_run"


def deadline_arguments(policy: RetentionPolicy) -> dict[str, Any]:
    """Give the arguments by which a DAG gets the deadline of its policy; none where it has none.

    It counts from the tick. In ``simulate`` nothing is late. Before Airflow 3.2, where a run without a logical date
    could not even be made under a deadline, it is left out, and the log says so.
    """
    if policy.deadline is None or policy.mode is Mode.SIMULATE:
        return {}
    try:
        from airflow.sdk import (  # type: ignore[attr-defined, unused-ignore]  # left out of its stub
            AsyncCallback,
            DeadlineAlert,
            DeadlineReference,
        )
    except ImportError:
        log.warning("this Airflow has no deadlines, 3.2 and later has: left out", policy=policy.name)
        return {}
    alert = DeadlineAlert(
        # Not of the time at which it was queued: Airflow 3.3.2 cannot clear a run under such a deadline.
        reference=DeadlineReference.DAGRUN_LOGICAL_DATE,
        interval=policy.deadline,
        # Of the triggerer, and not of an executor: that one may not read connections, and has no slot to spare when
        # everything is stuck.
        callback=AsyncCallback(CALLBACK, {"policy_name": policy.name}),
    )
    return {"deadline": alert}


async def flag_late_run(policy_name: str, context: Mapping[str, Any]) -> None:
    """Write a late run down. Airflow may call this twice for one run, and does not call again when it fails."""
    from asgiref.sync import sync_to_async

    # In a thread: the triggerer's loop must not wait for a database.
    await sync_to_async(_flag)(policy_name, context)


def _flag(policy_name: str, context: Mapping[str, Any]) -> None:
    from s3_retention.runtime.connections import open_ledger
    from s3_retention.store import late_runs

    dag_run = context["dag_run"]
    run = {"dag_id": dag_run["dag_id"], "run_id": dag_run["dag_run_id"]}
    with open_ledger() as conn:
        is_new = late_runs.insert(
            conn,
            policy=policy_name,
            **run,
            due_at=_to_time(dag_run["run_after"]),
            deadline_at=context["deadline"]["deadline_time"],
            state=dag_run["state"],
        )
    if is_new:
        log.warning("run is late", policy=policy_name, state=dag_run["state"], **run)


def _to_time(text: str) -> datetime:
    # Python 3.10 does not read a Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
