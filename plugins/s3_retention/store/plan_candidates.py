"""The candidates of one scan, in a temporary table of this session, and the plan made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store import ledger_entries, plan_canary, plan_tenants
from s3_retention.store.queries import query
from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.core.verdict import Candidate
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

_TABLE = "plan_candidates"
_TYPES = (
    *("text", "text", "text", "text", "int8", "timestamptz", "timestamptz", "timestamptz"),
    *("text", "text", "text"),
)


def begin(conn: Connection) -> None:
    """Start a scan from nothing."""
    for name in ("create_plan_candidates", "clear_plan_candidates"):
        run(conn, _TABLE, name)


def copy(conn: Connection, candidates: Iterable[Candidate]) -> None:
    """Take in one page of candidates."""
    with conn.cursor().copy(query(_TABLE, "copy_plan_candidates")) as target:
        target.set_types(_TYPES)
        for one in candidates:
            facts = one.facts
            target.write_row(
                (
                    facts.ref.bucket,
                    facts.ref.key,
                    facts.ref.version_id,
                    facts.etag,
                    facts.size,
                    facts.last_modified_at,
                    one.reference_at,
                    one.due_at,
                    one.group_key,
                    facts.storage_class,
                    one.tenant,
                )
            )


def decide(
    conn: Connection,
    *,
    policy: str,
    policy_version: str,
    keep_latest: int | None,
    due_from: datetime | None,
    ends_at: datetime,
    are_distinct: bool,
    has_keepers: bool = True,
    interval_id: int | None = None,
    generation: int = 0,
) -> None:
    """Decide every candidate: due, or kept with its reason.

    ``are_distinct``: no candidate of this session's table names the same object as another one.
    ``has_keepers``: what is kept of a group is looked at again before its deletes.
    ``due_from`` is the lower bound of a replay. What earlier generations of the interval have settled is kept. Parked
    rows whose lock has ended are held by this transaction.
    """
    for name in (
        "widen_work_mem",
        "create_plan_open_commands",
        "create_plan_open_commands_key",
        "clear_plan_open_commands",
        "create_plan_ripe",
        "clear_plan_ripe",
        "create_plan_decisions",
        "clear_plan_decisions",
    ):
        run(conn, _TABLE, name)
    run(conn, _TABLE, "hold_ripe_locks", policy=policy)
    run(conn, _TABLE, "copy_open_commands", policy=policy)
    run(
        conn,
        _TABLE,
        "decide_candidates",
        policy=policy,
        policy_version=policy_version,
        keep_latest=keep_latest,
        due_from=due_from,
        ends_at=ends_at,
        are_distinct=are_distinct,
        has_keepers=has_keepers,
        interval_id=interval_id,
        earlier_generations=list(range(generation)),
    )


def count_decisions(conn: Connection, *, starts_at: datetime) -> list[Row]:
    """Count the decisions by reason."""
    return fetch_all(conn, _TABLE, "count_decisions", starts_at=starts_at)


def cut(conn: Connection, *, chunk_size: int, by_tenant: bool) -> None:
    """Cut what is due into chunks, in a table of this session; ``by_tenant``: none holds two tenants."""
    for name in ("create_plan_chunks", "store_plan_etags_as_they_are", "clear_plan_chunks"):
        run(conn, _TABLE, name)
    run(conn, _TABLE, "cut_chunks_by_tenant" if by_tenant else "cut_chunks", chunk_size=chunk_size)


def store_plan(
    conn: Connection,
    *,
    policy: str,
    interval_id: int,
    generation: int,
    chunk_size: int,
    batch_size: int,
    weights: Mapping[str, int] | None,
    canary: int | None = None,
) -> None:
    """Write batches, chunks and keepers of everything that is due; its first ``canary`` commands go alone.

    ``weights`` is None where the policy tells no tenants; else they share the batches by these weights.
    """
    dealt = {"interval_id": interval_id, "generation": generation}
    chunks_per_batch = batch_size // chunk_size
    cut(conn, chunk_size=chunk_size, by_tenant=weights is not None)
    if canary is not None:
        plan_canary.take(conn, canary)
    plan_tenants.begin(conn)
    if weights is not None:
        plan_tenants.lay(conn, batch_size=batch_size, chunks_per_batch=chunks_per_batch, weights=weights)
    run(conn, _TABLE, "insert_batches", policy=policy, chunks_per_batch=chunks_per_batch, **dealt)
    run(conn, _TABLE, "insert_chunks", **dealt)
    if canary is not None:
        plan_canary.insert(conn, policy=policy, **dealt)
    run(conn, _TABLE, "insert_keepers", **dealt)


def supersede_ripe(conn: Connection, *, policy_version: str, holder: Holder) -> None:
    """Close the parked rows whose lock has ended and whose versions are planned anew in this transaction."""
    ripe = fetch_all(conn, _TABLE, "list_ripe_intervals")
    for row in ripe:
        ledger_entries.ensure_partition(conn, interval_id=row["interval_id"])
    # Most plans find none, and need no lock on the ledger, which they only read.
    if ripe:
        superseded = fetch_all(
            conn,
            _TABLE,
            "supersede_ripe_locks",
            policy_version=policy_version,
            dag_id=holder.dag_id,
            run_id=holder.run_id,
        )
        ids = [row["quarantine_id"] for row in superseded]
        ledger_entries.append_kept(conn, ids, reason="planned_anew")
