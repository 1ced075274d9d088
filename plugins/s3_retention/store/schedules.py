"""The table ``schedules``: up to which tick each policy is accounted for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.ticks import Tick
from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

Series = tuple["str | None", Tick]
"""A timetable, None where no tick is expected, and the last tick that is accounted for."""


def insert(conn: Connection, *, policy: str, dag_id: str, timetable: str | None, last: Tick) -> bool:
    """Begin the first series of a policy; False when it has one."""
    params = _params(policy, last)
    return run(conn, "schedules", "insert_schedule", dag_id=dag_id, timetable=timetable, **params) > 0


def get(conn: Connection, *, policy: str) -> Series | None:
    """Read the series of a policy; None when it never had one."""
    return _series(fetch_one(conn, "schedules", "get_schedule", policy=policy))


def lock(conn: Connection, *, policy: str) -> Series | None:
    """Read the series and lock it for this transaction."""
    return _series(fetch_one(conn, "schedules", "lock_schedule", policy=policy))


def start_series(conn: Connection, *, policy: str, dag_id: str, timetable: str | None, last: Tick) -> None:
    """Begin a new series with a changed timetable."""
    run(conn, "schedules", "start_series", dag_id=dag_id, timetable=timetable, **_params(policy, last))


def move_last_tick(conn: Connection, *, policy: str, last: Tick) -> None:
    """Say that all ticks up to this one have run or are flagged. It never moves back."""
    run(conn, "schedules", "move_last_tick", **_params(policy, last))


def list_known(conn: Connection) -> dict[str, str | None]:
    """List every policy that the ledger has heard of, each with its timetable."""
    rows = fetch_all(conn, "schedules", "list_known_policies")
    return {row["policy"]: row["timetable"] for row in rows}


def _params(policy: str, last: Tick) -> Row:
    return {
        "policy": policy,
        "last_tick_at": last.due_at,
        "interval_starts_at": last.starts_at,
        "interval_ends_at": last.ends_at,
    }


def _series(row: Row | None) -> Series | None:
    if row is None:
        return None
    return row["timetable"], Tick(
        row["last_tick_at"], row["last_interval_starts_at"], row["last_interval_ends_at"]
    )
