"""The table ``failures``: the last cause of each unfinished command of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.outcome import Outcome
    from s3_retention.store.connection import Connection


def record(conn: Connection, batch_id: int, failed: Sequence[tuple[DeleteCommand, Outcome, int]]) -> None:
    """Write down why these commands did not end, with their attempts so far; the caller holds the fence."""
    run(
        conn,
        "failures",
        "record_failures",
        batch_id=batch_id,
        command_ids=[command.command_id for command, _, _ in failed],
        failure_classes=[outcome.kind.value for _, outcome, _ in failed],
        codes=[outcome.code for _, outcome, _ in failed],
        messages=[outcome.message for _, outcome, _ in failed],
        request_ids=[outcome.request_id for _, outcome, _ in failed],
        not_befores=[outcome.not_before for _, outcome, _ in failed],
        attempts=[num_attempts for _, _, num_attempts in failed],
    )
