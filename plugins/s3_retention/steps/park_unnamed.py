"""Puts objects that no row names, as an audit found them, into quarantine, from where a redrive deletes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.core.audit import NO_ROW, DifferenceKind
from s3_retention.core.command import command_id, operation_id
from s3_retention.core.orphans import PlannedRows, name_of
from s3_retention.core.policy import Mode
from s3_retention.core.verdict import Candidate, Decider, RowFacts
from s3_retention.errors import AuditRefusedError
from s3_retention.store import audits, command_rows

if TYPE_CHECKING:
    from datetime import datetime

    from s3_retention.core.audit import AuditResult
    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.store.connection import Connection


@dataclass(frozen=True, slots=True)
class AuditForm:
    """What a person asks for: ``quarantines`` lets a redrive delete the objects without a row."""

    quarantines: bool = False
    note: str | None = None


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
    found = audits.find_interval(conn, policy=policy.name)
    if found is None:
        raise AuditRefusedError(
            f"policy {policy.name} has no completed interval yet, in which a command could count: let its cleanup DAG "
            "run once, or untick quarantine"
        )
    return found[0]


def run(
    conn: Connection,
    policy: RetentionPolicy,
    form: AuditForm,
    holder: Holder,
    acted_by: str | None,
    interval_id: int,
    found: AuditResult,
    now: datetime,
) -> int:
    """Put objects without a row into quarantine, where they are as old as an orphan must be; their number.

    An object whose row is not written yet is young.
    """
    rows, decider = policy.source.rows, Decider(policy)
    num_parked = 0
    for one in audits.differences_of(found.kept, DifferenceKind.OBJECT_WITHOUT_ROW):
        if rows is None or one.facts is None:
            continue
        judged = decider.candidate(one.facts, now=now, rows=RowFacts(one.facts.last_modified_at))
        if not isinstance(judged, Candidate) or judged.due_at is None or judged.due_at >= now:
            continue
        ids = (
            command_id(one.facts, policy.version),
            bytes.fromhex(operation_id(one.facts.ref.bucket, one.facts.ref.key, policy.version)),
        )
        is_new = audits.quarantine(
            conn,
            one.facts,
            policy=policy.name,
            policy_version=policy.version,
            interval_id=interval_id,
            ids=ids,
            tenant=judged.tenant,
            due_at=judged.due_at,
            code=NO_ROW,
            holder=holder,
            acted_by=acted_by,
            note=form.note,
        )
        if is_new:
            command_rows.insert(
                conn,
                interval_id=interval_id,
                generation=0,
                command_id=ids[0],
                planned=PlannedRows(name_of(rows.key, one.facts.ref), (), ()),
            )
            num_parked += 1
    return num_parked
