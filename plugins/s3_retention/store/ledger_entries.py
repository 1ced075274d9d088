"""The table ``ledger_entries``: one appended row per settled command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.errors import ClaimLostError
from s3_retention.store.statements import fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.outcome import Outcome
    from s3_retention.store.batches import ClaimedBatch
    from s3_retention.store.connection import Connection


def ensure_partition(conn: Connection, *, interval_id: int) -> None:
    """Make the partition to which the entries of this interval belong."""
    run(conn, "ledger_entries", "ensure_partition", interval_id=interval_id)


def settle(
    conn: Connection,
    batch: ClaimedBatch,
    settled: Sequence[tuple[DeleteCommand, Outcome, int]],
    *,
    lease: timedelta,
) -> int:
    """Append final outcomes with their number of attempts; give the number that was not there already.

    The same statement locks the batch row and repeats the fence. Raises ``ClaimLostError``, with nothing
    written, when another worker has the batch.
    """
    row = fetch_one(
        conn,
        "ledger_entries",
        "settle_outcomes",
        batch_id=batch.batch_id,
        fence=batch.fence,
        lease=lease,
        interval_ids=[command.interval_id for command, _, _ in settled],
        generations=[command.generation for command, _, _ in settled],
        command_ids=[command.command_id for command, _, _ in settled],
        operation_ids=[command.operation_id for command, _, _ in settled],
        tenants=[command.tenant for command, _, _ in settled],
        buckets=[command.ref.bucket for command, _, _ in settled],
        keys=[command.ref.key for command, _, _ in settled],
        version_ids=[command.ref.version_id for command, _, _ in settled],
        etags=[command.facts.etag for command, _, _ in settled],
        sizes=[command.facts.size for command, _, _ in settled],
        last_modified_ats=[command.facts.last_modified_at for command, _, _ in settled],
        due_ats=[command.due_at for command, _, _ in settled],
        outcomes=[outcome.kind.value for _, outcome, _ in settled],
        reasons=[outcome.reason for _, outcome, _ in settled],
        attempts=[num_attempts for _, _, num_attempts in settled],
        request_ids=[outcome.request_id for _, outcome, _ in settled],
        marker_version_ids=[outcome.marker_version_id for _, outcome, _ in settled],
    )
    if row is None or not row["has_claim"]:
        raise ClaimLostError
    return int(row["num_appended"])
