"""The table ``simulations``, and what is looked up of a decided plan for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from s3_retention.core.storage_classes import BILLED_LONGER
from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.core.simulation import Simulation
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

_TABLE = "simulations"


def hash_plan(conn: Connection) -> bytes:
    """Hash the plan that this session has cut, as ``plan_hash`` does a stored one: 32 bytes."""
    row = fetch_one(conn, _TABLE, "hash_plan") or {}
    return bytes(row["plan_hash"])


def sum_by_reason(conn: Connection) -> list[Row]:
    """Sum the decisions of this session: ``reason``, ``num_objects``, ``num_bytes``, ``oldest_at``, ``newest_at``."""
    return fetch_all(conn, _TABLE, "sum_by_reason")


def sum_by_prefix(conn: Connection, *, prefix: str, max_rows: int) -> list[Row]:
    """Sum what is due by the first part behind the prefix: ``prefix``, ``num_objects``, ``num_bytes``."""
    return fetch_all(conn, _TABLE, "sum_by_prefix", prefix=prefix, max_rows=max_rows)


def sum_by_storage_class(conn: Connection) -> list[Row]:
    """Sum what is due: ``storage_class``, ``num_objects``, ``num_bytes``, ``num_early``, ``num_byte_days``."""
    return fetch_all(
        conn,
        _TABLE,
        "sum_by_storage_class",
        names=[one.name for one in BILLED_LONGER],
        min_days=[one.min_days for one in BILLED_LONGER],
        min_bytes=[one.min_bytes for one in BILLED_LONGER],
    )


def list_due(conn: Connection, *, max_rows: int) -> list[Row]:
    """List the first of what is due: ``key``, ``version_id``, ``size``, ``due_at``."""
    return fetch_all(conn, _TABLE, "list_due", max_rows=max_rows)


def count_lonely_groups(conn: Connection) -> int:
    """Count the groups that have a single object."""
    row = fetch_one(conn, _TABLE, "count_lonely_groups") or {}
    return int(row["num_groups"])


def insert(
    conn: Connection, simulation: Simulation, *, rules_hash: str, ends_at: datetime, holder: Holder
) -> None:
    """Write a simulation down."""
    run(
        conn,
        _TABLE,
        "insert_simulation",
        policy=simulation.policy,
        policy_version=simulation.policy_version,
        rules_hash=rules_hash,
        ends_at=ends_at,
        num_scanned=simulation.num_scanned,
        num_due=simulation.num_due,
        num_bytes=simulation.num_bytes,
        plan_hash=simulation.plan_hash,
        detail=Jsonb(simulation.detail()),
        dag_id=holder.dag_id,
        run_id=holder.run_id,
    )


def list_newest(conn: Connection, *, policy: str, max_rows: int) -> list[Row]:
    """List the last simulations of a policy, the newest first."""
    return fetch_all(conn, _TABLE, "list_simulations", policy=policy, max_rows=max_rows)
