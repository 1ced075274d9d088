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
    from s3_retention.store.statements import Row

    Settled = Sequence[tuple[DeleteCommand, Outcome, int]]

_NO_IDS = bytes(64)


def ensure_partition(conn: Connection, *, interval_id: int) -> None:
    """Make the partition to which the entries of this interval belong."""
    run(conn, "ledger_entries", "ensure_partition", interval_id=interval_id)


def settle(
    conn: Connection,
    batch: ClaimedBatch,
    settled: Settled,
    *,
    chunk_id: int | None,
    lease: timedelta,
    is_whole: bool = False,
    may_be_there: bool = False,
) -> int:
    """Append final outcomes with their number of attempts; give the number that was not there already.

    The commands are those of the chunk, or of a redrive where it is None. ``is_whole``: of the chunk nothing else is
    unfinished, and it is closed. The same statement locks the batch row and repeats the fence. Raises
    ``ClaimLostError``, with nothing written, when another worker has the batch; and ``LedgerDuplicateError`` under the
    first fence of a batch, where something is there already all the same and ``may_be_there`` did not say so.
    """
    if chunk_id is None:
        row = _settle_redriven(conn, batch, settled, lease)
    else:
        row = _settle_chunk(
            conn, batch, settled, chunk_id, lease, is_whole=is_whole, may_be_there=may_be_there
        )
    if row is None or not row["has_claim"]:
        raise ClaimLostError
    return int(row["num_appended"])


def append_kept(conn: Connection, quarantine_ids: Sequence[int], *, reason: str) -> None:
    """End the commands of quarantine rows that the caller's transaction has closed undeleted."""
    run(conn, "ledger_entries", "append_kept", quarantine_ids=list(quarantine_ids), reason=reason)


def settle_rejected(conn: Connection, batch: ClaimedBatch, *, lease: timedelta) -> int:
    """End what is left of a batch of a rejected plan as kept: the number of commands. Raises ``ClaimLostError``."""
    row = fetch_one(
        conn,
        "ledger_entries",
        "settle_rejected",
        batch_id=batch.batch_id,
        fence=batch.fence,
        lease=lease,
    )
    if row is None or not row["has_claim"]:
        raise ClaimLostError
    return int(row["num_appended"])


def _settle_chunk(
    conn: Connection,
    batch: ClaimedBatch,
    settled: Settled,
    chunk_id: int,
    lease: timedelta,
    *,
    is_whole: bool,
    may_be_there: bool,
) -> Row | None:
    num_places = max((command.place for command, _, _ in settled), default=0)
    ids, answers = [_NO_IDS] * num_places, [0] * num_places
    markers: list[str | None] = []
    numbers: dict[tuple[str, str | None, int, str | None], int] = {}
    # Most outcomes are one and the same value, which is read once.
    number_of: dict[tuple[int, int], int] = {}
    for command, outcome, num_attempts in settled:
        number = number_of.get((id(outcome), num_attempts))
        if number is None:
            answer = (outcome.kind.value, outcome.reason, num_attempts, outcome.request_id)
            number = number_of[id(outcome), num_attempts] = numbers.setdefault(answer, len(numbers) + 1)
        place = command.place - 1
        answers[place] = number
        ids[place] = command.ids
        if outcome.marker_version_id is not None:
            markers = markers or [None] * num_places
            markers[place] = outcome.marker_version_id
    outcomes, reasons, attempts, request_ids = zip(*numbers, strict=True) if numbers else ((), (), (), ())
    return fetch_one(
        conn,
        "ledger_entries",
        "settle_outcomes",
        batch_id=batch.batch_id,
        fence=batch.fence,
        lease=lease,
        chunk_id=chunk_id,
        is_whole=is_whole,
        # While the first fence of a batch stands, nothing of it is settled.
        may_be_there=may_be_there or batch.fence > 1,
        ids=b"".join(ids),
        # As the text that Postgres reads: the driver looks at each number of a list several times.
        answers="{" + ",".join(map(str, answers)) + "}",
        outcomes=list(outcomes),
        reasons=list(reasons),
        attempts=list(attempts),
        request_ids=list(request_ids),
        marker_version_ids=markers,
    )


def _settle_redriven(conn: Connection, batch: ClaimedBatch, settled: Settled, lease: timedelta) -> Row | None:
    return fetch_one(
        conn,
        "ledger_entries",
        "settle_redriven",
        batch_id=batch.batch_id,
        fence=batch.fence,
        lease=lease,
        quarantine_ids=[command.quarantine_id for command, _, _ in settled],
        outcomes=[outcome.kind.value for _, outcome, _ in settled],
        reasons=[outcome.reason for _, outcome, _ in settled],
        attempts=[num_attempts for _, _, num_attempts in settled],
        request_ids=[outcome.request_id for _, outcome, _ in settled],
        marker_version_ids=[outcome.marker_version_id for _, outcome, _ in settled],
    )
