"""Measures where each policy stands, by the ledger alone: what the watch sends to whatever collects metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.lateness import behind_since
from s3_retention.core.metrics import Standing
from s3_retention.store import findings, schedules, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from s3_retention.store.connection import Connection


def run(conn: Connection, policies: Iterable[str]) -> list[Standing]:
    """Give the standing of each of these policies, and of those that only the ledger knows, by name."""
    with transaction(conn):
        now = watermarks.read_clock(conn)
        names = {*policies, *schedules.list_known(conn)}
        # Before its first claim a policy cannot be behind: its watermark may begin in 1970.
        ages = {
            row["policy"]: now - behind_since(row)
            for row in findings.list_watermark_ages(conn)
            if row["first_claimed_at"] is not None
        }
        missed = {row["policy"]: row["num_missed"] for row in findings.count_missed_open(conn)}
        planned = {row["policy"]: row["num_stragglers"] for row in findings.list_last_planned(conn)}
        todo = {row["policy"]: row["num_commands"] for row in findings.count_open_commands(conn)}
        parked = findings.count_quarantine_open(conn)
    standings = []
    for name in sorted(names | {row["policy"] for row in parked}):
        own = [row for row in parked if row["policy"] == name]
        standings.append(
            Standing(
                name,
                watermark_age=ages.get(name),
                num_missed=missed.get(name, 0),
                num_quarantined=sum(row["num_commands"] for row in own),
                quarantine_age=now - min(row["oldest_at"] for row in own) if own else None,
                num_open=int(todo.get(name, 0)),
                num_stragglers=planned.get(name, 0),
            )
        )
    return standings
