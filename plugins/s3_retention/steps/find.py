"""Writes the findings: opens what is new, freshens what is open, closes what has healed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core import finding
from s3_retention.store import findings, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from s3_retention.core.finding import Finding
    from s3_retention.core.watched import WatchedPolicy
    from s3_retention.store.connection import Connection


def run(
    conn: Connection, watched: Sequence[WatchedPolicy], *, unknown_ticks: Iterable[WatchedPolicy] = ()
) -> tuple[int, int]:
    """Look at everything and write what a person should know: the number of findings opened, and closed.

    ``unknown_ticks`` are policies whose ticks could not be told in this pass. The facts and the findings are of one
    transaction.
    """
    with transaction(conn):
        now = watermarks.read_clock(conn)
        found = [
            *_find(conn, {one.name: one for one in watched}, now=now),
            *(finding.ticks_unknown(one.name, one.timetable or "") for one in unknown_ticks),
        ]
        return findings.see(conn, found, now=now)


def _find(conn: Connection, watched: dict[str, WatchedPolicy], *, now: datetime) -> list[Finding]:
    ages = (
        finding.watermark_age(
            row, max_age=watched[row["policy"]].max_age if row["policy"] in watched else None, now=now
        )
        for row in findings.list_watermark_ages(conn)
    )
    return [
        *(finding.missed_intervals(row) for row in findings.count_missed_open(conn)),
        *(age for age in ages if age is not None),
        *(finding.quarantine_open(row, now=now) for row in findings.count_quarantine_open(conn)),
        *(finding.stragglers(row) for row in findings.list_last_stragglers(conn)),
        *(finding.interval_stuck(row, now=now) for row in findings.list_stuck_intervals(conn)),
        *(finding.batches_stopped(row) for row in findings.count_stopped_batches(conn)),
    ]
