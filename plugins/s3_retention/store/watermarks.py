"""The table ``watermarks``: how far each policy is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_one, run

if TYPE_CHECKING:
    from datetime import datetime

    from s3_retention.store.connection import Connection


def lock(conn: Connection, *, policy: str, start_at: datetime) -> tuple[datetime, datetime]:
    """Lock the watermark for this transaction, made at ``start_at`` when new: ``(position, now)``.

    ``now`` is the clock of the ledger database.
    """
    run(conn, "watermarks", "insert_watermark", policy=policy, start_at=start_at)
    row = fetch_one(conn, "watermarks", "lock_watermark", policy=policy)
    if row is None:
        raise LookupError(policy)
    return row["position"], row["now"]


def hold(conn: Connection, *, policy: str) -> None:
    """Lock the watermark for this transaction. Always before an interval: two orders would be a deadlock."""
    fetch_one(conn, "watermarks", "lock_watermark", policy=policy)


def read_clock(conn: Connection) -> datetime:
    """Read the clock of the ledger database."""
    row = fetch_one(conn, "watermarks", "read_clock")
    if row is None:
        raise LookupError("clock")
    now: datetime = row["now"]
    return now


def move_position(conn: Connection, *, interval_id: int) -> None:
    """Say that a complete scan decided everything due before the end of this interval."""
    run(conn, "watermarks", "move_position", interval_id=interval_id)


def move_completed_through(conn: Connection, *, interval_id: int) -> None:
    """Say that every command before the end of this interval is settled or in quarantine."""
    run(conn, "watermarks", "move_completed_through", interval_id=interval_id)


def count_conflict(conn: Connection, *, policy: str) -> None:
    """Count that a run wanted an interval which another live run held."""
    run(conn, "watermarks", "count_claim_conflict", policy=policy)


def find_position(conn: Connection, *, policy: str) -> datetime | None:
    """Say how far a policy is; None while it never was enforced."""
    row = fetch_one(conn, "watermarks", "find_position", policy=policy)
    return row["position"] if row else None
