"""Selects quarantined commands, shows them, and deals them to the same delete task that failed them; or waives them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import TYPE_CHECKING

from s3_retention.errors import RedriveRefusedError
from s3_retention.store import batches, intervals, ledger_entries, quarantine
from s3_retention.store.batches import DealtBatch
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.core.redrive import Selection
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


BATCH_SIZE = 1000
"""Commands of one mapped task of a redrive: each is looked at alone, so fewer than a cleanup batch holds."""
MAX_SHOWN = 20
"""Commands that a preview names."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a selection takes: counts by policy, class and code, the oldest failure, and the first of its commands.

    ``num_too_often`` were redriven as often as their policy allows, and are only taken by their operation id.
    """

    num_selected: int
    num_by_cause: Counter[tuple[str, str, str]]
    oldest_at: datetime | None
    shown: tuple[Row, ...]
    num_too_often: int = 0

    def __str__(self) -> str:
        """Print it for a task log."""
        lines = [f"{self.num_selected:,} commands selected"]
        if self.oldest_at is not None:
            lines[0] += f", the oldest failed at {self.oldest_at:%Y-%m-%d %H:%M:%S} UTC"
        for (policy, failure_class, code), count in sorted(self.num_by_cause.items()):
            lines.append(f"  {count:>9,}  {policy}  {failure_class}  {code}")
        lines += [
            f"  {row['operation_id']}  {row['failure_class']}  s3://{row['bucket']}/{row['key']}"
            for row in self.shown
        ]
        if self.num_selected > len(self.shown):
            lines.append(f"  and {self.num_selected - len(self.shown):,} more")
        if self.num_too_often:
            lines.append(
                f"{self.num_too_often:,} more were redriven limits.max_redrives times: only their operation ids "
                "take them"
            )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """What was dealt to this run; ``preview`` is None where it had been dealt before."""

    num_selected: int
    batches: tuple[DealtBatch, ...] = ()
    preview: Preview | None = field(default=None, compare=False)


def look(conn: Connection, selection: Selection, *, max_redrives: Mapping[str, int]) -> Preview:
    """Show what a selection takes at this moment; nothing is changed.

    Raises ``RedriveRefusedError`` when it names an interval that there is not.
    """
    with transaction(conn):
        return _preview(conn, selection, _select(conn, selection, max_redrives), max_redrives)


def list_selected(conn: Connection, selection: Selection) -> dict[str, list[int]]:
    """List the quarantine ids that a selection takes at this moment, by policy; nothing is held or changed."""
    with transaction(conn):
        rows = _select(conn, selection, {})
    selected: dict[str, list[int]] = {}
    for row in rows:
        selected.setdefault(row["policy"], []).append(row["quarantine_id"])
    return selected


def run(
    conn: Connection,
    selection: Selection,
    holder: Holder,
    *,
    acted_by: str | None,
    max_batches: int,
    max_redrives: Mapping[str, int] | None = None,
    note: str | None = None,
) -> RedriveResult:
    """Take the selected rows, each for this redrive alone, and deal them in batches of one policy each.

    A run that selected before gets the same batches again. Rows that another redrive holds are passed over, and so are
    those that were redriven as often as ``max_redrives`` says by policy, unless the selection names operations.
    Raises ``RedriveRefusedError`` when it names an interval that there is not.
    """
    allowed = max_redrives or {}
    with transaction(conn):
        earlier = batches.list_of_run(conn, holder=holder)
        if earlier:
            dealt = tuple(
                DealtBatch(one.batch_id, one.map_index + 1, one.num_commands, one.map_index)
                for one in earlier
            )
            return RedriveResult(sum(one.num_commands for one in dealt), dealt)
        rows = _select(conn, selection, allowed)
        preview = _preview(conn, selection, rows, allowed)
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
                note=note,
            )
            dealt_now.append(batch)
    return RedriveResult(sum(one.num_commands for one in dealt_now), tuple(dealt_now), preview)


def waive(conn: Connection, selection: Selection, holder: Holder, *, acted_by: str | None, note: str) -> int:
    """Close the selected rows undeleted, each with a ledger entry ``kept`` for the reason ``waived``; their number.

    How often a row was redriven is not asked. A run that has waived before waives nothing more.
    """
    with transaction(conn):
        earlier = quarantine.count_waived(conn, holder=holder)
        if earlier:
            return earlier
        rows = [row["quarantine_id"] for row in _select(conn, selection, {})]
        for interval_id in quarantine.list_intervals(conn, rows):
            ledger_entries.ensure_partition(conn, interval_id=interval_id)
        waived = quarantine.waive(conn, rows, holder=holder, acted_by=acted_by or "unknown", note=note)
        ledger_entries.append_kept(conn, waived, reason="waived")
        return len(waived)


def _select(conn: Connection, selection: Selection, max_redrives: Mapping[str, int]) -> list[Row]:
    key = selection.interval_key
    if key is not None and intervals.find_by_key(conn, key) is None:
        raise RedriveRefusedError(
            f"interval = {key[:200]!r}: there is none of this key; write it as s3_retention.intervals shows it"
        )
    return quarantine.select_for_redrive(conn, selection, max_redrives)


def _preview(
    conn: Connection, selection: Selection, rows: Sequence[Row], max_redrives: Mapping[str, int]
) -> Preview:
    too_often = 0
    if selection.operation_ids is None:
        too_often = quarantine.count_redriven_too_often(
            conn, policy=selection.policy, max_redrives=max_redrives
        )
    ids = [row["quarantine_id"] for row in rows]
    causes = quarantine.sum_by_cause(conn, ids)
    return Preview(
        len(rows),
        Counter({(row["policy"], row["failure_class"], row["code"]): row["num_commands"] for row in causes}),
        min((row["oldest_at"] for row in causes), default=None),
        tuple(quarantine.list_rows(conn, ids[:MAX_SHOWN])),
        too_often,
    )


def _parts(rows: Sequence[Row], size: int) -> Iterator[list[Row]]:
    """Cut rows, ordered by policy, into parts of one policy and at most ``size`` rows."""
    for _, of_policy in groupby(rows, key=lambda row: row["policy"]):
        while part := list(islice(of_policy, size)):
            yield part
