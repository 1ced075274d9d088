"""The two transactions round the delete of objects that orphaned rows name: a check before it, the rows after it.

Neither is open while the store is asked. What may happen between the two, and what closes that window, stands in
docs/guarantees.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.orphans import decide_rows, malformed, read_ref
from s3_retention.core.outcome import DATABASE_UNAVAILABLE, FailureClass, Outcome, kept
from s3_retention.errors import RowsError, RowsUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.orphans import FoundRow, PlannedRows
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.sources.postgres_rows import PostgresRows
    from s3_retention.steps.decide_again import Delivery
    from s3_retention.steps.retry import Attempted
    from s3_retention.store.row_entries import SettledRow

NO_ROWS = "rows_unknown"
"""The command has no rows on record: under another source, its policy has another version, too."""
REFUSED = "DatabaseRefused"


@dataclass(slots=True)
class RowChecks:
    """The rows of one delivery: what they decide, and after the delete what became of them."""

    rows: PostgresRows
    policy: RetentionPolicy
    delivery: Delivery
    _set_at: set[datetime] = field(default_factory=set)
    """When this delivery has set marks."""

    def check(self, commands: Sequence[DeleteCommand]) -> dict[bytes, Outcome]:
        """Give the outcome of each of these commands that must not go on by the rows of this moment; by command id.

        It is asked before each attempt. Where the database is at fault, no object is: the batch stops.
        """
        asked = [command for command in commands if self.delivery.spared(command, self.policy) is None]
        planned = self._planned(asked)
        decided = {
            command.command_id: kept(NO_ROWS) for command in asked if command.command_id not in planned
        }
        if planned:
            try:
                # Of those that may have been sent before: what the worker before has marked is no more its own to undo.
                self._set_at |= self.rows.check(
                    row_ids=[row_id for one in planned.values() for row_id in one.row_ids],
                    names=[one.named for one in planned.values()],
                    decide=lambda found, referenced: self._decide(planned, found, referenced, decided),
                    takes_over=self.delivery.is_again,
                )
            except RowsError as error:
                decided |= dict.fromkeys(planned, fault_of(error))
        return decided

    def finish(self, attempted: Sequence[Attempted]) -> tuple[list[Attempted], list[SettledRow]]:
        """Delete the rows whose objects are gone, and take back the marks of those whose objects stay.

        Gives the attempts, of which none is final whose rows could not be dealt with, and what became of each row.
        """
        try:
            # First those that stay: where the database is away, nothing of a person's is held up for longer.
            self.rows.unmark(self._marked(one[0] for one in attempted if _stays(*one)))
            if not self.delivery.is_again:
                # What was not sent may be in another worker's hands by now: its mark is that one's.
                self.rows.unmark(self._marked(self._unsent(attempted)), set_at=self._set_at)
            return list(attempted), self._delete([one for one in attempted if one[1].is_gone])
        except RowsError as error:
            fault = fault_of(error)
            return [(command, fault, num + 1) for command, _, num in attempted], []

    def _delete(self, gone: Sequence[Attempted]) -> list[SettledRow]:
        planned = self._planned(command for command, _, _ in gone)
        if not planned:
            return []
        deleted, left = self.rows.delete(
            row_ids=[row_id for one in planned.values() for row_id in one.row_ids],
            names=[one.named for one in planned.values() for _ in one.row_ids],
            detached_ats=[at for one in planned.values() for at in one.detached_ats],
        )
        return [
            (
                command,
                row_id,
                "deleted" if row_id in deleted else "left" if row_id in left else "already_absent",
            )
            for command, _, _ in gone
            if command.command_id in planned
            for row_id in planned[command.command_id].row_ids
        ]

    def _planned(self, commands: Iterable[DeleteCommand]) -> dict[bytes, PlannedRows]:
        known = self.delivery.rows or {}
        return {
            command.command_id: known[command.command_id]
            for command in commands
            if command.command_id in known
        }

    def _unsent(self, attempted: Sequence[Attempted]) -> Iterator[DeleteCommand]:
        ended = {command.command_id for command, _, _ in attempted}
        return (command for command in self.delivery.commands if command.command_id not in ended)

    def _marked(self, commands: Iterable[DeleteCommand]) -> Iterator[tuple[str, str | None]]:
        known = self.delivery.rows or {}
        for command in commands:
            planned = known.get(command.command_id)
            is_of_version = command.policy_version == self.policy.version
            for row_id in () if planned is None else planned.row_ids:
                yield row_id, None if planned is None or is_of_version else planned.named

    def _decide(
        self,
        planned: dict[bytes, PlannedRows],
        found: Sequence[FoundRow],
        referenced: AbstractSet[str],
        decided: dict[bytes, Outcome],
    ) -> list[str]:
        """Decide each command by its rows, into ``decided``; give the ids of the rows whose delete goes on."""
        source = self.policy.source
        assert source.rows is not None  # noqa: S101 - rows have been read
        by_id = {row.row_id: row for row in found}
        by_name: dict[str | None, list[FoundRow]] = {}
        for row in found:
            by_name.setdefault(row.named, []).append(row)
        going: list[str] = []
        for command_id, one in planned.items():
            own = [by_id[row_id] for row_id in one.row_ids if row_id in by_id]
            others = [row for row in by_name.get(one.named, ()) if row.row_id not in one.row_ids]
            outcome = decide_rows(
                one,
                [*own, *others],
                referenced,
                retain=self.policy.age.retain,
                now=self.delivery.now,
                has_detach_time=source.rows.detached_at is not None,
            )
            ref = read_ref(source.rows.key, one.named, source.bucket)
            if outcome is None and isinstance(ref, str):
                outcome = malformed(source.rows.key, one, ref)
            if outcome is None:
                going += [row.row_id for row in own]
            else:
                decided[command_id] = outcome
        return going


def fault_of(error: RowsError) -> Outcome:
    """Make the outcome of a database at fault: it stops the batch, and is tried again where that may help."""
    code = DATABASE_UNAVAILABLE if isinstance(error, RowsUnavailableError) else REFUSED
    return Outcome(FailureClass.CONFIG, code=code, message=str(error), whole_request=True)


def _stays(command: DeleteCommand, outcome: Outcome, num_attempts: int) -> bool:
    """Say whether the object is there for certain: of what the store did not answer, the mark stays.

    What was sent more than once was not answered at first, whatever came at last; what a request as a whole came to may
    be what a look told after no answer came; and where the database is at fault, an earlier try may have sent it.
    """
    if outcome.is_final:
        return not outcome.is_gone
    is_first = num_attempts - command.num_attempts <= 1
    return is_first and not outcome.is_retried and not outcome.whole_request
