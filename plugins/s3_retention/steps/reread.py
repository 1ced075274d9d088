"""Reads the rows of quarantined commands anew: where one was corrected, another command takes the place of its own.

Its key is another one, or the store shows an object that it did not show to the plan. The new command waits in the same
quarantine, and is redriven as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from s3_retention.core.command import ids_of
from s3_retention.core.decider import Decider
from s3_retention.core.objects import ObjectFacts
from s3_retention.core.orphans import PlannedRows, read_ref
from s3_retention.core.verdict import RowFacts, Verdict
from s3_retention.s3.limits import RetryLimits
from s3_retention.steps.retry import look_with_retries
from s3_retention.store import command_rows, corrections, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.holder import Holder
    from s3_retention.core.orphans import FoundRow
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.redrive import Selection
    from s3_retention.sources.row_source import RowSource
    from s3_retention.store.connection import Connection

MAX_LOOKED_UP = 1000
"""Commands whose rows are read together."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A command that waits, and the one that its row is for now."""

    waiting: DeleteCommand
    corrected: DeleteCommand
    planned: PlannedRows

    def __str__(self) -> str:
        """Say it in one line."""
        return (
            f"{self.waiting.ref} is {self.corrected.ref} now: operation {self.corrected.operation_id.hex()}"
        )


def find(
    conn: Connection, source: RowSource, policy: RetentionPolicy, quarantine_ids: Sequence[int]
) -> list[Correction]:
    """Find which of these waiting commands are for another object, or another incarnation, by their rows of now.

    What is not due by its rows and today's policy is left to the delivery, which ends it as kept. Touches nothing.
    Raises ``RowsError``.
    """
    waiting = [
        command
        for command in corrections.list_rereadable(conn, policy=policy.name, quarantine_ids=quarantine_ids)
        if command.policy_version == policy.version
    ]
    now = watermarks.read_clock(conn)
    found: list[Correction] = []
    for start in range(0, len(waiting), MAX_LOOKED_UP):
        part = waiting[start : start + MAX_LOOKED_UP]
        found += _corrections(source, policy, part, command_rows.list_of(conn, part), now)
    return found


def supersede(
    conn: Connection,
    found: Sequence[Correction],
    holder: Holder,
    *,
    acted_by: str | None,
    note: str | None,
) -> int:
    """Put each corrected command in the place of the one that waits, each in a transaction; their number."""
    num_superseded = 0
    for one in found:
        with transaction(conn):
            num_superseded += corrections.supersede(
                conn, one.waiting, one.corrected, one.planned, holder=holder, acted_by=acted_by, note=note
            )
    return num_superseded


def with_successors(conn: Connection, selection: Selection) -> Selection:
    """Let a selection of operations name those, too, that have taken the place of one."""
    named = selection.raw_operation_ids
    if named is None:
        return selection
    newer = corrections.list_successors(conn, named)
    ids = dict.fromkeys([*(one.hex() for one in named), *(one.hex() for one in newer)])
    return replace(selection, operation_ids=tuple(ids))


def _corrections(
    source: RowSource,
    policy: RetentionPolicy,
    waiting: Sequence[DeleteCommand],
    planned: dict[bytes, PlannedRows],
    now: datetime,
) -> Iterator[Correction]:
    ids = [row_id for command in waiting for row_id in planned[command.command_id].row_ids]
    rows, _ = source.rows.look(row_ids=ids, names=[])
    by_id = {row.row_id: row for row in rows}
    renamed: dict[bytes, str] = {}
    for command in waiting:
        own = [by_id[one] for one in planned[command.command_id].row_ids if one in by_id]
        names = {row.named for row in own}
        name = names.pop() if len(names) == 1 else None
        before = planned[command.command_id].named
        if name is not None and (name != before or command.facts.etag is None):
            renamed[command.command_id] = name
    if not renamed:
        return
    # All rows of the object that is named now: one that is attached, or referenced, keeps it.
    rows, referenced = source.rows.look(row_ids=[], names=list(renamed.values()))
    by_name: dict[str | None, list[FoundRow]] = {}
    for row in rows:
        by_name.setdefault(row.named, []).append(row)
    for command in waiting:
        name = renamed.get(command.command_id)
        own = by_name.get(name, [])
        if name is None or name in referenced or not referenced.isdisjoint(row.row_id for row in own):
            continue
        corrected = _plan(source, policy, command, name, own, now)
        if corrected is not None:
            yield corrected


def _plan(
    source: RowSource,
    policy: RetentionPolicy,
    waiting: DeleteCommand,
    name: str,
    rows: Sequence[FoundRow],
    now: datetime,
) -> Correction | None:
    of_rows = policy.source.rows
    if of_rows is None or not rows or not all(row.is_orphaned for row in rows):
        return None
    # Without a column, the time of the first sighting is that of the command.
    ats = tuple(row.detached_at or waiting.due_at - policy.age.retain for row in rows)
    planned = PlannedRows(name, tuple(row.row_id for row in rows), ats)
    ref = read_ref(of_rows.key, name, policy.source.bucket)
    if isinstance(ref, str):
        return None
    found = look_with_retries(source.store, ref, RetryLimits())
    if not isinstance(found, ObjectFacts):
        if not found.is_final or ref == waiting.ref:
            return None
        found = ObjectFacts(ref, None, 0, max(ats))
    judged = Decider(policy).candidate(found, now=now, rows=RowFacts(max(ats), waiting.tenant))
    if isinstance(judged, Verdict) or judged.due_at is None or judged.due_at >= now:
        return None
    corrected = replace(
        waiting,
        ids=ids_of(found, policy.version),
        facts=found,
        due_at=judged.due_at,
        tenant=judged.tenant,
    )
    return None if corrected.command_id == waiting.command_id else Correction(waiting, corrected, planned)
