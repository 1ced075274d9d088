"""The tables ``audits`` and ``audit_findings``: what each audit has found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from s3_retention.core.audit import Audit
    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


def insert(conn: Connection, audit: Audit, *, holder: Holder, acted_by: str | None, note: str | None) -> int:
    """Write an audit down, and what it has found: its id."""
    row = fetch_one(
        conn,
        "audits",
        "insert_audit",
        policy=audit.policy,
        policy_version=audit.policy_version,
        started_at=audit.started_at,
        due_before=audit.due_before,
        num_rows=audit.num_rows,
        num_objects=audit.num_objects,
        counts=Jsonb(audit.as_counts()),
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        acted_by=acted_by,
        note=note,
        num_parked=audit.num_parked,
    )
    if row is None:
        raise LookupError(audit.policy)
    audit_id: int = row["audit_id"]
    for kind in audit.counts:
        found = [one for one in audit.findings if one.kind is kind]
        run(
            conn,
            "audits",
            "insert_audit_findings",
            audit_id=audit_id,
            kind=kind.value,
            bucket=audit.bucket,
            keys=[one.key for one in found],
            version_ids=[one.version_id for one in found],
            row_ids=[one.row_id for one in found],
            sinces=[one.since for one in found],
            states=[one.state.value for one in found],
            reasons=[one.detail for one in found],
        )
    return audit_id


def list_newest(conn: Connection, *, policy: str, max_rows: int) -> list[Row]:
    """List the last audits of a policy, the newest first."""
    return fetch_all(conn, "audits", "list_audits", policy=policy, max_rows=max_rows)


def list_findings(conn: Connection, audit_id: int) -> list[Row]:
    """List what one audit has found, by kind."""
    return fetch_all(conn, "audits", "list_audit_findings", audit_id=audit_id)
