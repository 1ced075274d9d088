"""The table ``replays``: second and later plans of a completed interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from s3_retention.core.interval import ClaimedInterval, IntervalState
from s3_retention.errors import ClaimLostError
from s3_retention.store import claims
from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


@dataclass(frozen=True, slots=True)
class Replay:
    """The replay of a run: which plan of which interval it is."""

    interval_id: int
    generation: int
    interval_key: str
    policy: str
    state: IntervalState


def find_unfinished(conn: Connection, interval: ClaimedInterval) -> tuple[int, ClaimedInterval] | None:
    """Find the one unfinished replay of an interval and lock it: its generation, and who holds it."""
    row = fetch_one(conn, "replays", "find_unfinished_replay", interval_id=interval.interval_id)
    if row is None:
        return None
    return row["generation"], ClaimedInterval(
        interval_id=interval.interval_id,
        interval=interval.interval,
        policy_version=row["policy_version"],
        state=IntervalState(row["state"]),
        fence=row["fence"],
        claimed_by=row["claimed_by"],
        held_until=row["held_until"],
    )


def find_of_run(conn: Connection, *, holder: Holder) -> Replay | None:
    """Find the replay that this run claimed."""
    row = fetch_one(conn, "replays", "find_replay_of_run", dag_id=holder.dag_id, run_id=holder.run_id)
    return Replay(**row | {"state": IntervalState(row["state"])}) if row else None


def insert(
    conn: Connection,
    interval_id: int,
    *,
    policy_version: str,
    lease: timedelta,
    holder: Holder,
    acted_by: str | None,
) -> tuple[int, int]:
    """Begin the next generation of a completed interval and claim it: ``(generation, fence)``.

    Raises ``ClaimLostError`` when the interval is not completed.
    """
    row = fetch_one(
        conn,
        "replays",
        "insert_replay",
        interval_id=interval_id,
        policy_version=policy_version,
        claimed_by=holder.run,
        lease=lease,
        acted_by=acted_by,
    )
    if row is None:
        raise ClaimLostError
    claims.record(conn, holder, fence=row["fence"], interval_id=interval_id, generation=row["generation"])
    return row["generation"], row["fence"]


def claim(
    conn: Connection,
    interval_id: int,
    generation: int,
    *,
    policy_version: str,
    lease: timedelta,
    holder: Holder,
) -> int:
    """Take an unfinished replay under a new fence, which is given back. Raises ``ClaimLostError``."""
    row = fetch_one(
        conn,
        "replays",
        "claim_replay",
        interval_id=interval_id,
        generation=generation,
        policy_version=policy_version,
        claimed_by=holder.run,
        lease=lease,
    )
    if row is None:
        raise ClaimLostError
    claims.record(conn, holder, fence=row["fence"], interval_id=interval_id, generation=generation)
    return int(row["fence"])


def renew(conn: Connection, interval_id: int, generation: int, *, fence: int, lease: timedelta) -> None:
    """Renew the lease and lock the row. Raises ``ClaimLostError`` when the fence has moved on."""
    if not run(
        conn,
        "replays",
        "renew_replay",
        interval_id=interval_id,
        generation=generation,
        fence=fence,
        lease=lease,
    ):
        raise ClaimLostError


def mark_planned(
    conn: Connection,
    interval_id: int,
    generation: int,
    *,
    fence: int,
    lease: timedelta,
    num_scanned: int,
    num_discovered: int,
    num_bytes: int,
    num_kept_by_reason: Mapping[str, int],
) -> None:
    """Say that the plan is stored whole. Raises ``ClaimLostError`` when the fence has moved on."""
    if not run(
        conn,
        "replays",
        "mark_replay_planned",
        interval_id=interval_id,
        generation=generation,
        fence=fence,
        lease=lease,
        num_scanned=num_scanned,
        num_discovered=num_discovered,
        num_bytes=num_bytes,
        num_kept_by_reason=Jsonb(dict(num_kept_by_reason)),
    ):
        raise ClaimLostError


def complete(conn: Connection, interval_id: int, generation: int) -> bool:
    """End a replay that has no open batch; False when one is open or it is not planned."""
    return (
        fetch_one(conn, "replays", "complete_replay", interval_id=interval_id, generation=generation)
        is not None
    )


def release(conn: Connection, interval_id: int, generation: int, *, holder: Holder) -> None:
    """Give the lease of this run back."""
    run(
        conn,
        "replays",
        "release_replay",
        interval_id=interval_id,
        generation=generation,
        claimed_by=holder.run,
    )


def release_expired(conn: Connection) -> list[int]:
    """Give back leases that have run out, where no batch is held; the ids of their intervals."""
    return [row["interval_id"] for row in fetch_all(conn, "replays", "release_expired_replays")]


def get_row(conn: Connection, interval_id: int, generation: int) -> Row:
    """Read one replay with its counts. Raises ``LookupError`` when there is none."""
    row = fetch_one(conn, "replays", "get_replay", interval_id=interval_id, generation=generation)
    if row is None:
        raise LookupError((interval_id, generation))
    return row


def next_generation(conn: Connection, interval_id: int) -> int:
    """Give the generation that another replay of an interval would have."""
    row = fetch_one(conn, "replays", "find_next_generation", interval_id=interval_id)
    return row["generation"] if row else 1
