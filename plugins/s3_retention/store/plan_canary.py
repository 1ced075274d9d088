"""The canary of a plan: its first commands, in a batch of their own, which goes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_one, run

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection

_TABLE = "plan_canary"


def is_first_of_version(
    conn: Connection, *, policy: str, policy_version: str, interval_id: int | None
) -> bool:
    """Say whether nothing was ever deleted by this version of a policy: no earlier plan of it holds a command."""
    row = fetch_one(
        conn,
        _TABLE,
        "is_first_of_version",
        policy=policy,
        policy_version=policy_version,
        interval_id=interval_id,
    )
    return bool(row and row["is_first"])


def begin(conn: Connection) -> None:
    """Start a plan from nothing."""
    for name in ("create_plan_canary", "clear_plan_canary"):
        run(conn, _TABLE, name)


def take(conn: Connection, num_commands: int) -> None:
    """Take so many commands at most out of the chunks that were cut, before they are stored."""
    begin(conn)
    run(conn, _TABLE, "take_canary", num_commands=num_commands)
    for name in ("drop_taken_chunk", "shorten_taken_chunk"):
        run(conn, _TABLE, name)


def insert(conn: Connection, *, policy: str, interval_id: int, generation: int) -> None:
    """Store what was taken as batch 0, after the other batches and chunks."""
    run(conn, _TABLE, "insert_canary", policy=policy, interval_id=interval_id, generation=generation)
