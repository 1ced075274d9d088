"""What an audit of rows and objects can find, and how it says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from s3_retention.core.objects import ObjectFacts

MAX_KEPT = 1000
"""Differences of each kind that are looked at once more, and kept."""
MAX_SHOWN = 20
"""Differences of each kind that a log shows."""
NO_ROW = "ObjectWithoutRow"
"""Our own code: an audit found no row that names the object."""


class DifferenceKind(str, Enum):
    """How rows, objects and deadlines can differ. What to do about each stands in docs/runbook.md."""

    OBJECT_WITHOUT_ROW = "object_without_row"
    ROW_WITHOUT_OBJECT = "row_without_object"
    ROW_MALFORMED = "row_malformed"
    ROW_WITHOUT_KEY = "row_without_key"
    OVERDUE = "overdue"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: ``key`` of the object, or what a malformed row says; ``facts`` where the object was listed."""

    kind: DifferenceKind
    key: str | None
    row_id: str | None = None
    facts: ObjectFacts | None = None
    due_at: datetime | None = None

    def __str__(self) -> str:
        """Say it in one line."""
        where = "" if self.row_id is None else f"  row {self.row_id}"
        due = "" if self.due_at is None else f"  due since {self.due_at:%Y-%m-%d %H:%M:%S} UTC"
        return f"  {self.kind.value}  {self.key or '-'}{where}{due}"


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit saw, how many differences it found of each kind, and the first of them."""

    num_objects: int
    num_rows: int
    num_by_kind: dict[str, int]
    num_quarantined: int = 0
    kept: list[Difference] = field(default_factory=list, compare=False)

    def __str__(self) -> str:
        """Print one screen for a task log."""
        lines = [f"{self.num_objects:,} objects and {self.num_rows:,} rows were held against each other"]
        for kind in DifferenceKind:
            if not (count := self.num_by_kind.get(kind.value, 0)):
                continue
            lines.append(f"  {kind.value:<20} {count:>12,}")
            shown = [one for one in self.kept if one.kind is kind][:MAX_SHOWN]
            lines += [f"  {one}" for one in shown]
            if count > len(shown):
                lines.append(f"    and {count - len(shown):,} more")
        if not self.num_by_kind:
            lines.append("  no difference")
        if self.num_quarantined:
            lines.append(f"  put into quarantine for a redrive: {self.num_quarantined:,}")
        return "\n".join(lines)
