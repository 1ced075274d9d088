"""What the keep rules of a calendar, a span or a size spare of the candidates of a scan, in this session's table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import run

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from s3_retention.core.policy_keep import Keep
    from s3_retention.store.connection import Connection

_TABLE = "plan_keeps"


def drop_doubles(conn: Connection) -> None:
    """Leave one candidate of each object that the scan named twice."""
    run(conn, _TABLE, "drop_doubles")


def begin(conn: Connection) -> None:
    """Start a scan with no group held."""
    for name in ("create_plan_held_groups", "clear_plan_held_groups"):
        run(conn, _TABLE, name)


def hold(conn: Connection, groups: Collection[str]) -> None:
    """Hold groups of which something was kept at first sight."""
    run(conn, _TABLE, "hold_groups", group_keys=list(groups))


def hold_back(conn: Connection, *, ends_at: datetime) -> None:
    """Mark what is due in groups that are held, or of which something is not due before ``ends_at``."""
    run(conn, _TABLE, "hold_groups_back", ends_at=ends_at)


def mark(conn: Connection, keep: Keep, *, timezone: str, are_periods: bool) -> None:
    """Mark what is spared by another rule than ``latest``, with the reason; and by any, of the valid alone.

    Each object is named once. ``are_periods``: a reference time is the end of a period, such as a day that a key names.
    """
    # The newest of all are ranked with the decision. Of the valid ones nobody else does it.
    passes: list[tuple[int | None, int | None]] = [(None, None)]
    if keep.valid_if is not None:
        passes.append((keep.latest or 1, keep.valid_if.min_size))
    for valid_latest, valid_size in passes:
        run(
            conn,
            _TABLE,
            "mark_kept",
            timezone=timezone,
            are_periods=are_periods,
            daily=keep.daily,
            weekly=keep.weekly,
            monthly=keep.monthly,
            yearly=keep.yearly,
            within=keep.within,
            min_bytes_kept=keep.min_bytes,
            valid_latest=valid_latest,
            valid_size=valid_size,
        )
