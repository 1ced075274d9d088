"""The table ``legal_holds``: objects that no policy may delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.holder import Holder
    from s3_retention.core.lever import PlaceHold
    from s3_retention.core.objects import ObjectRef
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


def insert(conn: Connection, hold: PlaceHold, *, holder: Holder, acted_by: str) -> int | None:
    """Place a hold and give its id; None when this run has placed one before."""
    row = fetch_one(
        conn,
        "legal_holds",
        "insert_hold",
        bucket=hold.bucket,
        scope=hold.scope.value,
        name=hold.name,
        reason=hold.reason,
        ends_at=hold.ends_at,
        acted_by=acted_by,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
    )
    return row["hold_id"] if row else None


def find_of_run(conn: Connection, *, holder: Holder) -> int | None:
    """Find the hold that a run has placed."""
    row = fetch_one(conn, "legal_holds", "find_hold_of_run", dag_id=holder.dag_id, run_id=holder.run_id)
    return row["hold_id"] if row else None


def get(conn: Connection, hold_id: int) -> Row | None:
    """Give who has lifted a hold, as ``lifted_by``, None while nobody has; no row when there is no such hold."""
    return fetch_one(conn, "legal_holds", "get_hold", hold_id=hold_id)


def lift(conn: Connection, hold_id: int, *, reason: str, acted_by: str) -> bool:
    """Lift a hold; False when it is lifted already, or there is none."""
    return run(conn, "legal_holds", "lift_hold", hold_id=hold_id, reason=reason, acted_by=acted_by) > 0


def find_held(conn: Connection, refs: Sequence[ObjectRef]) -> list[int]:
    """Find the objects that a hold is in force on: their places, from 0."""
    rows = fetch_all(
        conn,
        "legal_holds",
        "list_held",
        buckets=[ref.bucket for ref in refs],
        keys=[ref.key for ref in refs],
    )
    return [row["place"] - 1 for row in rows]
