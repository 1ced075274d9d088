"""Selects quarantined commands and deals them to the same delete task that failed them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING

from s3_retention.errors import S3RetentionError
from s3_retention.store import batches, quarantine
from s3_retention.store.batches import DealtBatch
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from s3_retention.core.holder import Holder
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


BATCH_SIZE = 1000
"""Commands of one mapped task of a redrive: each is looked at alone, so fewer than a cleanup batch holds."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which waiting commands to return: all that is given must match, and None matches everything."""

    policy: str | None = None
    failure_classes: tuple[str, ...] | None = None
    operation_ids: tuple[str, ...] | None = None
    max_commands: int = 10_000


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """What was dealt to this run."""

    num_selected: int
    batches: tuple[DealtBatch, ...] = ()


def run(
    conn: Connection,
    selection: Selection,
    holder: Holder,
    *,
    acted_by: str | None,
    max_batches: int,
) -> RedriveResult:
    """Take the selected rows, each for this redrive alone, and deal them in batches of one policy each.

    A run that selected before gets the same batches again. Rows that another redrive holds are passed over.
    Raises ``S3RetentionError`` when an operation id is not 64 hex digits.
    """
    operation_ids = (
        None if selection.operation_ids is None else [_to_bytes(one) for one in selection.operation_ids]
    )
    with transaction(conn):
        earlier = batches.list_of_run(conn, holder=holder)
        if earlier:
            dealt = tuple(
                DealtBatch(one.batch_id, one.map_index + 1, one.num_commands, one.map_index)
                for one in earlier
            )
            return RedriveResult(sum(one.num_commands for one in dealt), dealt)
        rows = quarantine.select_for_redrive(
            conn,
            policy=selection.policy,
            failure_classes=selection.failure_classes,
            operation_ids=operation_ids,
            max_commands=selection.max_commands,
        )
        dealt_now = []
        for number, part in enumerate(islice(_parts(rows, BATCH_SIZE), max_batches), start=1):
            batch = batches.insert_redrive(
                conn,
                policy=part[0]["policy"],
                batch_number=number,
                num_commands=len(part),
                num_bytes=sum(row["size"] for row in part),
                holder=holder,
            )
            quarantine.assign(
                conn,
                batch_id=batch.batch_id,
                quarantine_ids=[row["quarantine_id"] for row in part],
                holder=holder,
                acted_by=acted_by,
            )
            dealt_now.append(batch)
    return RedriveResult(sum(one.num_commands for one in dealt_now), tuple(dealt_now))


def _parts(rows: Sequence[Row], size: int) -> Iterator[list[Row]]:
    """Cut rows, ordered by policy, into parts of one policy and at most ``size`` rows."""
    for _, of_policy in groupby(rows, key=lambda row: row["policy"]):
        while part := list(islice(of_policy, size)):
            yield part


def _to_bytes(operation_id: str) -> bytes:
    try:
        raw = bytes.fromhex(operation_id.strip())
    except ValueError:
        raw = b""
    if len(raw) != 32:  # noqa: PLR2004 - SHA-256 gives 32 bytes
        raise S3RetentionError(
            f"operation id {operation_id[:80]!r} is not one: it has 64 hex digits, as the quarantine shows it"
        )
    return raw
