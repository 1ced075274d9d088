"""Puts objects that no row names, as an audit has confirmed, into quarantine, from where a redrive deletes them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from s3_retention.core.audit import Kind, State, write_named
from s3_retention.core.command import ID_SIZE, ids_of
from s3_retention.core.decider import Decider
from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.core.orphans import PlannedRows
from s3_retention.core.policy import Mode
from s3_retention.core.verdict import Candidate, RowFacts
from s3_retention.errors import AuditRefusedError
from s3_retention.store import command_rows, corrections

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.audit import Difference
    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.sources.row_source import Looker
    from s3_retention.store.connection import Connection

CODE = "ObjectWithoutRow"
"""Our own code: an audit found no row that names the object."""


def find_interval(conn: Connection, policy: RetentionPolicy) -> int:
    """Find the interval in which what is put into quarantine counts: its id. Raises ``AuditRefusedError``."""
    if policy.source.rows is None:
        raise AuditRefusedError(
            f"policy {policy.name} reads no rows: there is no object without a row to put into quarantine"
        )
    if policy.mode is Mode.SIMULATE:
        raise AuditRefusedError(
            f"policy {policy.name} is in mode simulate: untick quarantine, or set enforce"
        )
    found = corrections.find_interval(conn, policy=policy.name)
    if found is None:
        raise AuditRefusedError(
            f"policy {policy.name} has no completed interval yet, in which a command could count: let its cleanup DAG "
            "run once, or untick quarantine"
        )
    return found


def look(
    store: Looker, policy: RetentionPolicy, found: Sequence[Difference], *, now: datetime
) -> list[Candidate]:
    """Give those of the objects without a row that are as old as an orphan must be, by a look at each.

    An object whose row is not written yet is young.
    """
    decider, bucket = Decider(policy), policy.source.bucket
    keys = [
        one.key
        for one in found
        if one.kind is Kind.OBJECT_WITHOUT_ROW and one.state is State.CONFIRMED and one.key is not None
    ]
    with ThreadPoolExecutor(max_workers=policy.batch.parallel, thread_name_prefix="look") as pool:
        looked = list(pool.map(store.look, [ObjectRef(bucket, key) for key in keys]))
    judged = [
        decider.candidate(facts, now=now, rows=RowFacts(facts.last_modified_at))
        for facts in looked
        if isinstance(facts, ObjectFacts)
    ]
    return [
        one for one in judged if isinstance(one, Candidate) and one.due_at is not None and one.due_at < now
    ]


def run(
    conn: Connection,
    policy: RetentionPolicy,
    found: Sequence[Candidate],
    holder: Holder,
    *,
    interval_id: int,
    acted_by: str | None,
    note: str | None,
) -> int:
    """Park each as a command that no plan holds; the number of those that did not wait already."""
    rows, num_parked = policy.source.rows, 0
    for one in found:
        facts, ref = one.facts, one.facts.ref
        ids = ids_of(facts, policy.version)
        if rows is None or one.due_at is None:
            continue
        is_new = corrections.park(
            conn,
            facts,
            policy=policy.name,
            policy_version=policy.version,
            interval_id=interval_id,
            ids=ids,
            tenant=one.tenant,
            due_at=one.due_at,
            code=CODE,
            holder=holder,
            acted_by=acted_by,
            note=note,
        )
        if is_new:
            planned = PlannedRows(write_named(policy.source, rows.key, ref.key), (), ())
            command_rows.insert(
                conn, interval_id=interval_id, generation=0, command_id=ids[:ID_SIZE], planned=planned
            )
            num_parked += 1
    return num_parked
