"""The table ``restores``: one appended row for each ledger entry that a restore has dealt with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.core.restore import DeletedObject
from s3_retention.store.statements import fetch_all, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.holder import Holder
    from s3_retention.core.restore import Restored, RestoreForm
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


def list_deleted(
    conn: Connection,
    form: RestoreForm,
    *,
    interval_id: int | None,
    after: DeletedObject | None,
    max_rows: int,
    holder: Holder,
) -> list[DeletedObject]:
    """List what the form selects behind ``after``, in the order of the ledger."""
    rows = fetch_all(
        conn,
        "restores",
        "list_restorable",
        operation_ids=None if form.operation_ids is None else list(form.operation_ids),
        only_interval_id=interval_id,
        only_bucket=form.bucket,
        only_prefix=form.prefix,
        deleted_from=form.deleted_from,
        deleted_before=form.deleted_before,
        after_interval_id=after.interval_id if after else 0,
        after_generation=after.generation if after else 0,
        after_command_id=after.command_id if after else b"",
        max_rows=max_rows,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
    )
    return [_deleted(row) for row in rows]


def insert(
    conn: Connection, done: Sequence[Restored], *, holder: Holder, acted_by: str, note: str | None
) -> None:
    """Append what became of some objects; what another run has restored first is ``already_restored``."""
    fetch_all(conn, "restores", "lock_run", dag_id=holder.dag_id, run_id=holder.run_id)
    run(
        conn,
        "restores",
        "insert_restores",
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        acted_by=acted_by,
        note=note,
        interval_ids=[one.deleted.interval_id for one in done],
        generations=[one.deleted.generation for one in done],
        command_ids=[one.deleted.command_id for one in done],
        operation_ids=[one.deleted.operation_id for one in done],
        buckets=[one.deleted.facts.ref.bucket for one in done],
        keys=[one.deleted.facts.ref.key for one in done],
        marker_version_ids=[one.deleted.marker_version_id for one in done],
        outcomes=[one.kind.value for one in done],
        failure_classes=[one.failure.kind.value if one.failure else None for one in done],
        codes=[one.failure.code if one.failure else None for one in done],
        request_ids=[one.failure.request_id if one.failure else None for one in done],
    )


def count(conn: Connection, *, holder: Holder) -> dict[str, int]:
    """Count what became of the objects of a run, by outcome, over all its tries."""
    rows = fetch_all(conn, "restores", "count_restores", dag_id=holder.dag_id, run_id=holder.run_id)
    return {row["outcome"]: row["num_objects"] for row in rows}


def _deleted(row: Row) -> DeletedObject:
    ref = ObjectRef(row["bucket"], row["key"], row["version_id"])
    return DeletedObject(
        interval_id=row["interval_id"],
        generation=row["generation"],
        command_id=row["command_id"],
        operation_id=row["operation_id"],
        facts=ObjectFacts(ref, row["etag"], row["size"], row["last_modified_at"]),
        marker_version_id=row["marker_version_id"],
    )
