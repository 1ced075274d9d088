"""The table ``approvals``: plans over a limit, each asked about once and decided once."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from s3_retention.core.approval import Approval, Decision, OverLimit
from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection


def get(conn: Connection, interval_id: int, generation: int) -> Approval | None:
    """Read the question about one plan; None where none was asked."""
    row = fetch_one(conn, "approvals", "get_approval", interval_id=interval_id, generation=generation)
    if row is None:
        return None
    return Approval(
        plan_hash=row["plan_hash"],
        over_limits=tuple(OverLimit(**one) for one in row["over_limits"]),
        asked_at=row["asked_at"],
        decision=Decision(row["decision"]) if row["decision"] else None,
        decided_by=row["decided_by"],
    )


def was_dealt(conn: Connection, interval_id: int, generation: int) -> bool:
    """Say whether anything of a plan was ever dealt to a run."""
    row = fetch_one(conn, "approvals", "was_plan_dealt", interval_id=interval_id, generation=generation)
    return bool(row and row["was_dealt"])


def ask(conn: Connection, interval_id: int, *, over: Sequence[OverLimit], holder: Holder) -> None:
    """Ask about the first plan of an interval, unless that was done. The caller holds the lock of the interval."""
    run(
        conn,
        "approvals",
        "insert_approval",
        interval_id=interval_id,
        over_limits=Jsonb([asdict(one) for one in over]),
        dag_id=holder.dag_id,
        run_id=holder.run_id,
    )


def decide(
    conn: Connection,
    interval_id: int,
    generation: int,
    *,
    decision: Decision,
    decided_by: str | None,
    holder: Holder,
) -> bool:
    """Write the answer; False where there is one already, which stands, or where nothing was asked."""
    row = fetch_one(
        conn,
        "approvals",
        "decide_approval",
        interval_id=interval_id,
        generation=generation,
        decision=decision.value,
        decided_by=decided_by,
        run_id=holder.run_id,
    )
    return row is not None


def sample_plan(conn: Connection, interval_id: int, generation: int, *, max_rows: int) -> list[str]:
    """Give the first keys of a plan."""
    rows = fetch_all(
        conn, "approvals", "sample_plan", interval_id=interval_id, generation=generation, max_rows=max_rows
    )
    return [row["key"] for row in rows]
