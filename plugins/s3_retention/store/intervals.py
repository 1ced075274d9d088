"""The table ``intervals``: slices of due time, tiled by the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from s3_retention.core.capacity import Arrivals
from s3_retention.core.interval import ClaimedInterval, Interval, IntervalState
from s3_retention.errors import ClaimLostError
from s3_retention.store import claims
from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta
    from typing import Any

    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection


def get(conn: Connection, interval_id: int) -> ClaimedInterval:
    """Read one interval. Raises ``LookupError`` when there is none."""
    row = get_row(conn, interval_id)
    return ClaimedInterval(
        interval_id=row["interval_id"],
        interval=Interval(row["policy"], row["starts_at"], row["ends_at"]),
        policy_version=row["policy_version"],
        state=IntervalState(row["state"]),
        fence=row["fence"],
        claimed_by=row["claimed_by"],
        held_until=row["held_until"],
    )


def get_row(conn: Connection, interval_id: int) -> dict[str, Any]:
    """Read one interval with its counts. Raises ``LookupError`` when there is none."""
    row = fetch_one(conn, "intervals", "get_interval", interval_id=interval_id)
    if row is None:
        raise LookupError(interval_id)
    return row


def find_by_key(conn: Connection, interval_key: str) -> ClaimedInterval | None:
    """Find the interval of this name."""
    row = fetch_one(conn, "intervals", "find_interval_by_key", interval_key=interval_key)
    return get(conn, row["interval_id"]) if row else None


def find_unfinished(conn: Connection, *, policy: str) -> ClaimedInterval | None:
    """Find the one unfinished interval of a policy, and lock it."""
    row = fetch_one(conn, "intervals", "find_unfinished_interval", policy=policy)
    return get(conn, row["interval_id"]) if row else None


def find_of_run(conn: Connection, *, policy: str, holder: Holder) -> ClaimedInterval | None:
    """Find the interval that this run claimed last."""
    row = fetch_one(
        conn,
        "intervals",
        "find_interval_of_run",
        policy=policy,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
    )
    return get(conn, row["interval_id"]) if row else None


def insert(
    conn: Connection, interval: Interval, *, policy_version: str, lease: timedelta, holder: Holder
) -> int:
    """Cut a slice and claim it: its id. The schema refuses a hole, an overlap and a second unfinished one."""
    row = fetch_one(
        conn,
        "intervals",
        "insert_interval",
        policy=interval.policy,
        policy_version=policy_version,
        interval_key=interval.key,
        starts_at=interval.starts_at,
        ends_at=interval.ends_at,
        claimed_by=holder.run,
        lease=lease,
    )
    if row is None:
        raise LookupError(interval.key)
    claims.record(conn, holder, fence=row["fence"], interval_id=row["interval_id"])
    return int(row["interval_id"])


def claim(
    conn: Connection, interval_id: int, *, policy_version: str, lease: timedelta, holder: Holder
) -> int:
    """Take an unfinished interval under a new fence, which is given back. Raises ``ClaimLostError``."""
    row = fetch_one(
        conn,
        "intervals",
        "claim_interval",
        interval_id=interval_id,
        policy_version=policy_version,
        claimed_by=holder.run,
        lease=lease,
    )
    if row is None:
        raise ClaimLostError
    claims.record(conn, holder, fence=row["fence"], interval_id=interval_id)
    return int(row["fence"])


def renew(conn: Connection, interval_id: int, *, fence: int, lease: timedelta) -> None:
    """Renew the lease and lock the row. Raises ``ClaimLostError`` when the fence has moved on."""
    if not run(conn, "intervals", "renew_interval", interval_id=interval_id, fence=fence, lease=lease):
        raise ClaimLostError


def mark_planned(
    conn: Connection,
    interval_id: int,
    *,
    fence: int,
    lease: timedelta,
    num_scanned: int,
    num_discovered: int,
    num_bytes: int,
    num_stragglers: int,
    num_kept_by_reason: Mapping[str, int],
    next_due_at: datetime | None,
    largest_tenant_share: float | None,
) -> None:
    """Say that the plan is stored whole. Raises ``ClaimLostError`` when the fence has moved on."""
    if not run(
        conn,
        "intervals",
        "mark_planned",
        interval_id=interval_id,
        fence=fence,
        lease=lease,
        num_scanned=num_scanned,
        num_discovered=num_discovered,
        num_bytes=num_bytes,
        num_stragglers=num_stragglers,
        num_kept_by_reason=Jsonb(dict(num_kept_by_reason)),
        next_due_at=next_due_at,
        largest_tenant_share=largest_tenant_share,
    ):
        raise ClaimLostError


def complete(conn: Connection, interval_id: int) -> bool:
    """End an interval that has no open batch; False when one is open or it is not planned."""
    return fetch_one(conn, "intervals", "complete_interval", interval_id=interval_id) is not None


def release(conn: Connection, interval_id: int, *, holder: Holder) -> None:
    """Give the lease of this run back."""
    run(conn, "intervals", "release_interval", interval_id=interval_id, claimed_by=holder.run)


def release_expired(conn: Connection) -> list[int]:
    """Give back leases that have run out, where no batch is held; the ids of their intervals."""
    return [row["interval_id"] for row in fetch_all(conn, "intervals", "release_expired_intervals")]


def has_live_lease(conn: Connection, *, policy: str) -> bool:
    """Say whether a run of this policy is under way."""
    row = fetch_one(conn, "intervals", "find_live_lease", policy=policy)
    return bool(row and row["is_live"])


def find_unclaimed_since(conn: Connection, *, policy: str) -> datetime | None:
    """Find the due time from which on no interval has claimed what is due; None for a policy without watermark."""
    row = fetch_one(conn, "intervals", "find_unclaimed_since", policy=policy)
    return row["unclaimed_since"] if row else None


def find_arrivals(conn: Connection, *, policy: str, max_rows: int) -> Arrivals | None:
    """Sum what the last slices of due time brought; None before there is a second slice."""
    row = fetch_one(conn, "intervals", "count_arrivals", policy=policy, max_rows=max_rows)
    return Arrivals(int(row["num_commands"]), row["due_time"]) if row else None
