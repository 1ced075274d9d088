"""The table ``kill_switches``: while one is set, nothing of its policy is deleted, or nothing at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.core.interval import BEGINNING
from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


@dataclass(frozen=True, slots=True)
class SetLevers:
    """What is set at one moment: why and by whom a policy is stopped.

    ``holds`` is a sum of the holds in force, ``pauses`` of the pauses of tenants, None without any: another sum is
    another set. ``read_at`` is by the ledger's clock.
    """

    stop_reason: str | None
    stopped_by: str | None
    holds: str | None
    pauses: str | None
    read_at: datetime


NOTHING_SET = SetLevers(None, None, None, None, BEGINNING)
"""Before the first look: nothing is set, and by its time nothing is due."""


def look(conn: Connection, *, policy: str) -> SetLevers:
    """Look at what a running batch of this policy must heed."""
    (row,) = fetch_all(conn, "kill_switches", "look_at_levers", policy=policy)
    return SetLevers(**row)


def stop(conn: Connection, *, policy: str | None, reason: str, holder: Holder, acted_by: str) -> int | None:
    """Set the switch of one policy, or of all where it is None: its id; None when one is set already."""
    row = fetch_one(
        conn,
        "kill_switches",
        "set_switch",
        policy=policy,
        reason=reason,
        acted_by=acted_by,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
    )
    return row["switch_id"] if row else None


def find_of_run(conn: Connection, *, holder: Holder) -> int | None:
    """Find the switch that a run has set."""
    row = fetch_one(conn, "kill_switches", "find_switch_of_run", dag_id=holder.dag_id, run_id=holder.run_id)
    return row["switch_id"] if row else None


def find_open(conn: Connection, *, policy: str | None) -> Row | None:
    """Find the switch that is set for exactly this policy, or for all: ``switch_id``, ``set_by``, ``reason``."""
    return fetch_one(conn, "kill_switches", "find_open_switch", policy=policy)


def resume(conn: Connection, *, policy: str | None, reason: str, acted_by: str) -> bool:
    """Lift the switch of exactly this policy, or of all; False when none is set."""
    return run(conn, "kill_switches", "lift_switch", policy=policy, reason=reason, acted_by=acted_by) > 0


def list_open(conn: Connection) -> list[Row]:
    """List the switches that are set: ``policy``, ``reason``, ``set_by``, ``set_at``."""
    return fetch_all(conn, "kill_switches", "list_open_switches")
