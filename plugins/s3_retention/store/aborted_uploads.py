"""The table ``aborted_uploads``: one appended row per unfinished upload that a run has aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.holder import Holder
    from s3_retention.core.objects import Upload
    from s3_retention.core.outcome import Outcome
    from s3_retention.store.connection import Connection


def insert(
    conn: Connection,
    done: Sequence[tuple[Upload, Outcome]],
    *,
    policy: str,
    bucket: str,
    interval_id: int,
    holder: Holder,
) -> None:
    """Append what was aborted, or found to be gone; one that is there already is left as it is."""
    if not done:
        return
    run(
        conn,
        "aborted_uploads",
        "insert_aborted_uploads",
        policy=policy,
        bucket=bucket,
        interval_id=interval_id,
        dag_id=holder.dag_id,
        run_id=holder.run_id,
        keys=[upload.key for upload, _ in done],
        upload_ids=[upload.upload_id for upload, _ in done],
        initiated_ats=[upload.initiated_at for upload, _ in done],
        outcomes=[
            "aborted" if outcome.kind.value == "deleted" else outcome.kind.value for _, outcome in done
        ],
        request_ids=[outcome.request_id for _, outcome in done],
    )


def count(conn: Connection, *, holder: Holder) -> int:
    """Count the uploads that a run has aborted."""
    row = fetch_one(
        conn, "aborted_uploads", "count_aborted_uploads", dag_id=holder.dag_id, run_id=holder.run_id
    )
    return int(row["num_aborted"]) if row else 0
