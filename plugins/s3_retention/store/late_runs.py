"""The table ``late_runs``: runs that had not ended at their deadline, each flagged once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import run

if TYPE_CHECKING:
    from datetime import datetime

    from s3_retention.store.connection import Connection


def insert(
    conn: Connection,
    *,
    policy: str,
    dag_id: str,
    run_id: str,
    due_at: datetime,
    deadline_at: datetime,
    state: str,
) -> bool:
    """Flag a late run, with what Airflow said of it; False when it was flagged before."""
    flagged = run(
        conn,
        "late_runs",
        "insert_late_run",
        policy=policy,
        dag_id=dag_id,
        run_id=run_id,
        due_at=due_at,
        deadline_at=deadline_at,
        state=state,
    )
    return flagged > 0
