"""The tables ``audits`` and ``audit_differences``, and both sides of an audit in temporary tables of this session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from s3_retention.core.audit import AuditResult, Difference, DifferenceKind
from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.store.queries import query
from s3_retention.store.statements import fetch_all, fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from s3_retention.core.holder import Holder
    from s3_retention.core.orphans import OrphanRow
    from s3_retention.store.connection import Connection

_TABLE = "audits"


def begin(conn: Connection) -> None:
    """Start an audit from nothing."""
    for name in (
        "create_audit_objects",
        "clear_audit_objects",
        "create_audit_rows",
        "clear_audit_rows",
        "create_audit_found",
        "clear_audit_found",
    ):
        run(conn, _TABLE, name)


def copy_objects(conn: Connection, page: Iterable[ObjectFacts]) -> None:
    """Take in one page of objects."""
    with conn.cursor().copy(query(_TABLE, "copy_audit_objects")) as target:
        target.set_types(("text", "text", "int8", "timestamptz"))
        for facts in page:
            target.write_row((facts.ref.key, facts.etag, facts.size, facts.last_modified_at))


def copy_rows(conn: Connection, page: Iterable[tuple[OrphanRow, str | None]]) -> None:
    """Take in one page of rows, each with the key of its object, None where it names none."""
    with conn.cursor().copy(query(_TABLE, "copy_audit_rows")) as target:
        target.set_types(("text", "text", "text", "timestamptz", "bool"))
        for row, key in page:
            target.write_row((row.row_id, row.named, key, row.detached_at, row.kept_by is not None))


def compare(conn: Connection, *, started_at: datetime, ends_at: datetime, retain: timedelta) -> None:
    """Hold rows and objects against each other; overdue is what was due before ``ends_at``."""
    run(
        conn,
        _TABLE,
        "compare_rows_and_objects",
        started_at=started_at,
        ends_at=ends_at,
        retain=retain,
    )
    run(conn, _TABLE, "find_bad_rows")


def find_overdue(conn: Connection, *, ends_at: datetime) -> None:
    """Find what this session has decided to be due since before ``ends_at``."""
    run(conn, _TABLE, "find_overdue", ends_at=ends_at)


def count_found(conn: Connection) -> dict[str, int]:
    """Count the differences by kind."""
    return {row["kind"]: row["num_differences"] for row in fetch_all(conn, _TABLE, "count_found")}


def list_found(conn: Connection, kind: DifferenceKind, *, bucket: str, max_rows: int) -> list[Difference]:
    """List the first differences of a kind."""
    rows = fetch_all(conn, _TABLE, "list_found", kind=kind.value, max_rows=max_rows)
    return [
        Difference(
            kind,
            row["key"],
            row["row_id"],
            None
            if row["last_modified_at"] is None
            else ObjectFacts(
                ObjectRef(bucket, row["key"]), row["etag"], row["size"], row["last_modified_at"]
            ),
            row["due_at"],
        )
        for row in rows
    ]


def insert(
    conn: Connection,
    result: AuditResult,
    *,
    policy: str,
    policy_version: str,
    bucket: str,
    holder: Holder,
    acted_by: str | None,
    note: str | None,
    started_at: datetime,
) -> None:
    """Write down an audit with the first of what it found."""
    row = fetch_one(
        conn,
        _TABLE,
        "insert_audit",
        policy=policy,
        policy_version=policy_version,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        acted_by=acted_by,
        note=note,
        started_at=started_at,
        num_objects=result.num_objects,
        num_rows=result.num_rows,
        counts=Jsonb(result.num_by_kind),
        num_quarantined=result.num_quarantined,
    )
    found = result.kept
    run(
        conn,
        _TABLE,
        "insert_differences",
        audit_id=row["audit_id"] if row else None,
        bucket=bucket,
        kinds=[one.kind.value for one in found],
        keys=[one.key for one in found],
        row_ids=[one.row_id for one in found],
        sizes=[one.facts.size if one.facts else None for one in found],
        last_modified_ats=[one.facts.last_modified_at if one.facts else None for one in found],
        due_ats=[one.due_at for one in found],
    )


def find_of_run(conn: Connection, *, holder: Holder) -> AuditResult | None:
    """Find what a run found before it was cleared."""
    row = fetch_one(conn, _TABLE, "find_audit_of_run", dag_id=holder.dag_id, run_id=holder.run_id)
    if row is None:
        return None
    return AuditResult(row["num_objects"], row["num_rows"], row["counts"], row["num_quarantined"])


def find_interval(conn: Connection, *, policy: str) -> tuple[int, str] | None:
    """Find the newest completed interval of a policy: its id, and the version of the policy by which it was planned."""
    row = fetch_one(conn, _TABLE, "find_audited_interval", policy=policy)
    return None if row is None else (row["interval_id"], row["policy_version"])


def quarantine(
    conn: Connection,
    facts: ObjectFacts,
    *,
    policy: str,
    policy_version: str,
    interval_id: int,
    ids: tuple[bytes, bytes],
    tenant: str | None,
    due_at: datetime,
    code: str,
    holder: Holder,
    acted_by: str | None,
    note: str | None,
) -> bool:
    """Park an object as a command (``ids``: of the command, of the operation); False where it waits already."""
    row = fetch_one(
        conn,
        _TABLE,
        "quarantine_found",
        policy=policy,
        policy_version=policy_version,
        interval_id=interval_id,
        command_id=ids[0],
        operation_id=ids[1],
        tenant=tenant,
        bucket=facts.ref.bucket,
        key=facts.ref.key,
        etag=facts.etag,
        size=facts.size,
        last_modified_at=facts.last_modified_at,
        due_at=due_at,
        code=code,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        acted_by=acted_by,
        note=note,
    )
    return row is not None


def differences_of(found: Sequence[Difference], kind: DifferenceKind) -> list[Difference]:
    """Give those of one kind."""
    return [one for one in found if one.kind is kind]
