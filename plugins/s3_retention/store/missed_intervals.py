"""The table ``missed_intervals``: ticks that did not run, each flagged once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.ticks import HEARTBEAT, Cause, Evidence
from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from s3_retention.core.ticks import Tick
    from s3_retention.store.connection import Connection


def find_evidence(conn: Connection, ticks: Sequence[Tick], *, policy: str, dag_id: str) -> list[Evidence]:
    """Look up what the ledger knows about ticks, in their order."""
    rows = fetch_all(
        conn,
        "missed_intervals",
        "find_evidence",
        policy=policy,
        dag_id=dag_id,
        due_ats=[tick.due_at for tick in ticks],
        run_ids=[tick.run_id for tick in ticks],
        heartbeat=HEARTBEAT,
    )
    return [Evidence(**row) for row in rows]


def insert(
    conn: Connection, missed: Sequence[tuple[datetime, Cause]], *, policy: str, flagged_by: str
) -> list[tuple[datetime, Cause]]:
    """Flag ticks; give those that had not been flagged before."""
    rows = fetch_all(
        conn,
        "missed_intervals",
        "insert_missed",
        policy=policy,
        flagged_by=flagged_by,
        due_ats=[due_at for due_at, _ in missed],
        causes=[cause.value for _, cause in missed],
    )
    return [(row["due_at"], Cause(row["cause"])) for row in rows]


def resolve_covered(conn: Connection, *, policy: str, safety_delay: timedelta) -> int:
    """Resolve what ``completed_through`` has passed; their number."""
    return run(conn, "missed_intervals", "resolve_covered", policy=policy, safety_delay=safety_delay)


def resolve_late(conn: Connection, *, policy: str, due_at: datetime) -> int:
    """Resolve a tick that ran late after all; 1 when it had been flagged."""
    return run(conn, "missed_intervals", "resolve_late", policy=policy, due_at=due_at)
