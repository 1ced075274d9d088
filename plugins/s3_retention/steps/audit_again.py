"""The second look of an audit: whether what its two sides did not agree on is still so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from s3_retention.core.audit import Difference, Kind, State, read_named, write_named
from s3_retention.core.objects import ObjectRef
from s3_retention.core.orphans import FoundRow, PlannedRows, decide_rows
from s3_retention.core.outcome import Outcome
from s3_retention.core.verdict import Candidate
from s3_retention.s3.limits import RetryLimits
from s3_retention.sources.row_source import Looker
from s3_retention.sources.s3_listing import TagReader
from s3_retention.steps import tags

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.decider import Decider
    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.policy import RetentionPolicy

PARALLEL = 8
_OF_ROWS = frozenset({Kind.ROW_WITHOUT_OBJECT, Kind.ROW_MALFORMED, Kind.ROW_WITHOUT_KEY, Kind.ROW_ELSEWHERE})
_OF_OBJECTS = frozenset({Kind.OBJECT_WITHOUT_ROW, Kind.ROW_WITHOUT_OBJECT, Kind.OVERDUE})


class RowLooker(Protocol):
    """What the second look needs of a table of rows."""

    def look(self, *, row_ids: Sequence[str], names: Sequence[str]) -> tuple[list[FoundRow], set[str]]:
        """Find these rows, whatever else names these objects, and what another table names."""


class Store(Looker, TagReader, Protocol):
    """What the second look needs of a store."""


@dataclass(frozen=True, slots=True)
class Again:
    """Looks at differences once more, at rows and objects of this moment; the rows are None for a listing."""

    policy: RetentionPolicy
    store: Store
    rows: RowLooker | None
    due_before: datetime | None
    uploaded_before: datetime
    decider: Decider

    def look(self, kind: Kind, found: Sequence[Difference]) -> list[Difference]:
        """Give each with its state: first by the rows, in one look, then by the objects that are left, one by one.

        Raises what the rows raise. A store that would not say makes one ``unknown``, with its code.
        """
        if not found:
            return []
        looked = [replace(one, state=State.REFUTED) for one in found]
        still = self._by_rows(kind, found)
        with ThreadPoolExecutor(max_workers=PARALLEL, thread_name_prefix="audit") as pool:
            states = pool.map(self._by_object, [found[place] for place in still])
            for place, one in zip(still, states, strict=True):
                looked[place] = one
        return looked

    def _by_rows(self, kind: Kind, found: Sequence[Difference]) -> list[int]:
        """Give the places of those that are so by the rows of this moment."""
        source = self.policy.source
        if self.rows is None or source.rows is None:
            return list(range(len(found)))
        key = source.rows.key
        if kind in _OF_ROWS:
            rows, _ = self.rows.look(row_ids=[one.row_id for one in found if one.row_id], names=[])
            says = {row.row_id: read_named(source, key, row.named) for row in rows}
            return [
                place
                for place, one in enumerate(found)
                if (said := says.get(one.row_id or "")) is not None
                and said.key == one.key
                and (said.kind or Kind.ROW_WITHOUT_OBJECT) is kind
            ]
        names = [write_named(source, key, one.key or "") for one in found]
        rows, referenced = self.rows.look(row_ids=[], names=names)
        by_name: dict[str | None, list[FoundRow]] = {}
        for row in rows:
            by_name.setdefault(row.named, []).append(row)
        if kind is Kind.OBJECT_WITHOUT_ROW:
            return [place for place, name in enumerate(names) if name not in by_name]
        return [
            place
            for place, name in enumerate(names)
            if self._is_overdue(name, by_name.get(name, []), referenced)
        ]

    def _is_overdue(self, name: str, rows: Sequence[FoundRow], referenced: set[str]) -> bool:
        times = [row.detached_at for row in rows if row.detached_at is not None]
        if self.due_before is None or not rows or len(times) < len(rows):
            return False
        # As if a command had been planned by these very rows: what would keep its object now?
        planned = PlannedRows(name, tuple(row.row_id for row in rows), tuple(times))
        kept = decide_rows(
            planned,
            rows,
            referenced,
            retain=self.policy.age.retain,
            now=self.due_before,
            has_detach_time=True,
        )
        return kept is None

    def _by_object(self, one: Difference) -> Difference:
        if one.kind not in _OF_OBJECTS or one.key is None:
            return replace(one, state=State.CONFIRMED)
        seen = self.store.look(ObjectRef(self.policy.source.bucket, one.key, one.version_id))
        is_so = self._is_so(one, seen)
        if isinstance(is_so, Outcome):
            return replace(one, state=State.UNKNOWN, detail=is_so.code or is_so.kind.value)
        return replace(one, state=State.CONFIRMED if is_so else State.REFUTED)

    def _is_so(self, one: Difference, seen: ObjectFacts | Outcome) -> bool | Outcome:
        """Say whether a difference is so by a look; or why the store would not say."""
        if isinstance(seen, Outcome):
            return one.kind is Kind.ROW_WITHOUT_OBJECT if seen.is_final else seen
        if one.kind is Kind.OBJECT_WITHOUT_ROW:
            # One that was written again meanwhile may get its row yet.
            return seen.last_modified_at < self.uploaded_before
        if one.kind is not Kind.OVERDUE:
            return False
        if self.rows is not None or one.version_id is not None:
            return True
        # Of a listing: one that was written again meanwhile may be young.
        decided = tags.judge(self.store, self.decider.candidate, seen, limits=RetryLimits())
        if isinstance(decided, Outcome) and not decided.is_final:
            return decided
        due_at = decided.due_at if isinstance(decided, Candidate) else None
        return self.due_before is not None and due_at is not None and due_at < self.due_before
