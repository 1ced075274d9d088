"""The table ``findings``, and the facts of the ledger behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from s3_retention.core.finding import Finding
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


def count_missed_open(conn: Connection) -> list[Row]:
    """Count missed intervals that are not resolved, by policy."""
    return fetch_all(conn, "findings", "count_missed_open")


def list_watermark_ages(conn: Connection) -> list[Row]:
    """List how far each policy is."""
    return fetch_all(conn, "findings", "list_watermark_ages")


def count_quarantine_open(conn: Connection) -> list[Row]:
    """Count what waits in quarantine, by policy and failure class."""
    return fetch_all(conn, "findings", "count_quarantine_open")


def list_last_planned(conn: Connection) -> list[Row]:
    """List the last planned interval of each policy: its stragglers, and what its scan saw waiting."""
    return fetch_all(conn, "findings", "list_last_planned")


def list_stuck_intervals(conn: Connection) -> list[Row]:
    """List intervals without a plan that nobody holds."""
    return fetch_all(conn, "findings", "list_stuck_intervals")


def count_stopped_batches(conn: Connection) -> list[Row]:
    """Count stopped batches of cleanups, by policy and class."""
    return fetch_all(conn, "findings", "count_stopped_batches")


def count_open_commands(conn: Connection) -> list[Row]:
    """Count the planned commands in batches that have not closed, by policy."""
    return fetch_all(conn, "findings", "count_open_commands")


def count_quarantine_old(conn: Connection, befores: Mapping[str, datetime]) -> list[Row]:
    """Count what has waited in quarantine since before a time, which is given for each policy."""
    return fetch_all(
        conn,
        "findings",
        "count_quarantine_old",
        policies=list(befores),
        befores=list(befores.values()),
    )


def list_unfinished_replays(conn: Connection) -> list[Row]:
    """List replays that nobody holds."""
    return fetch_all(conn, "findings", "list_unfinished_replays")


def list_waiting_plans(conn: Connection) -> list[Row]:
    """List plans over a limit that nobody has answered yet."""
    return fetch_all(conn, "findings", "list_waiting_plans")


def list_rejected_plans(conn: Connection) -> list[Row]:
    """List the last plan of each policy, where it was rejected or timed out and no later one was approved or small."""
    return fetch_all(conn, "findings", "list_rejected_plans")


def list_late_runs(conn: Connection, safety_delays: Mapping[str, timedelta]) -> list[Row]:
    """List late runs that are not over, or were never found; the safety delay is given for each policy."""
    return fetch_all(
        conn,
        "findings",
        "list_late_runs",
        policies=list(safety_delays),
        safety_delays=list(safety_delays.values()),
    )


def see(conn: Connection, found: Sequence[Finding], *, now: datetime) -> tuple[int, int]:
    """Open what is new, freshen what is open, and close all else: the number opened, and closed."""
    rows = fetch_all(
        conn,
        "findings",
        "see_findings",
        now=now,
        policies=[one.policy for one in found],
        kinds=[one.kind.value for one in found],
        subjects=[one.subject for one in found],
        details=[Jsonb(dict(one.detail)) for one in found],
    )
    num_closed = run(
        conn, "findings", "close_healed", now=now, finding_ids=[row["finding_id"] for row in rows]
    )
    return sum(row["is_new"] for row in rows), num_closed


def list_unnotified(conn: Connection) -> list[Row]:
    """List open findings that no notifier has taken."""
    return fetch_all(conn, "findings", "list_unnotified")


def mark_notified(conn: Connection, finding_id: int) -> None:
    """Say that the notifier has taken a finding."""
    run(conn, "findings", "mark_notified", finding_id=finding_id)
