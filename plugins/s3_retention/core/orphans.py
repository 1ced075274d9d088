"""Rows whose object is orphaned: which object a row names, and what its rows of now say to the delete of an object."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.core.objects import ObjectRef
from s3_retention.core.outcome import FailureClass, Final, Outcome, kept

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime, timedelta

    from s3_retention.core.policy_rows import RowKey

ATTACHED = "attached"
"""A row of the object has its parent."""
REFERENCED = "referenced"
"""Another table names the object, or one of its rows."""
TOO_YOUNG = "not_due"
"""A row of the object lost its parent too short a time ago."""
NO_KEY = "key_missing"
"""The row names no object."""
MALFORMED = "MalformedRow"
"""Our own code: a row names its object in a form that its policy does not know."""

MAX_KEY_BYTES = 1024
"""Of a key, by the documents of S3."""
MAX_SHOWN = 200
"""Characters of what a row says that are repeated."""
_URL = re.compile(r"s3://([^/]+)/(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OrphanRow:
    """One orphaned row, as a scan reads it.

    ``named`` is what its key columns say, None where one of them is empty. ``detached_at`` is aware, None where the
    table has no such column. ``kept_by`` is ``attached`` or ``referenced`` where its object must stay.
    """

    row_id: str
    named: str | None
    detached_at: datetime | None
    tenant: str | None = None
    kept_by: str | None = None


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One row that names an object, orphaned or not, as it is at this moment."""

    row_id: str
    named: str | None
    detached_at: datetime | None
    is_orphaned: bool


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """The rows for which a command was planned: ``detached_ats`` are theirs, in the order of ``row_ids``.

    There are none for an object without a row, which an audit has found.
    """

    named: str
    row_ids: tuple[str, ...]
    detached_ats: tuple[datetime, ...]

    @property
    def detached_at(self) -> datetime | None:
        """When the last of them lost its parent."""
        return max(self.detached_ats, default=None)


def read_ref(key: RowKey, named: str, bucket: str) -> ObjectRef | str:
    """Read which object a row names, or why that cannot be told. Nothing is decoded, trimmed or guessed."""
    ref = ObjectRef(bucket, named)
    if key.url is not None:
        match = _URL.fullmatch(named)
        if match is None:
            return "is not s3://bucket/key"
        ref = ObjectRef(match[1], match[2])
    elif named.startswith("s3://"):
        return "is a URL, and source.rows.key says that it is a key"
    if not ref.key:
        return "is empty"
    if len(ref.key.encode()) > MAX_KEY_BYTES:
        return f"is longer than the {MAX_KEY_BYTES} bytes of the longest key"
    return ref


def malformed(key: RowKey, planned: PlannedRows, why: str) -> Outcome:
    """Make the outcome of a command whose row names no object that there can be."""
    where = " and ".join(key.columns)
    return Outcome(
        FailureClass.MALFORMED,
        code=MALFORMED,
        message=f"row {', '.join(planned.row_ids[:1])}: {where} = {planned.named[:MAX_SHOWN]!r} {why}; correct the "
        "row, then redrive",
    )


def decide_rows(
    planned: PlannedRows,
    found: Sequence[FoundRow],
    referenced: AbstractSet[str],
    *,
    retain: timedelta,
    now: datetime,
    has_detach_time: bool,
) -> Outcome | None:
    """Decide by the rows of this moment what the delete of their object must come to; None where it may go on.

    ``found`` are the planned rows that are still there, and every other row that names the same object;
    ``referenced`` holds what of their ids and names another table names. A file that is referenced is never deleted:

    - a row of the object is attached, or referenced: ``kept``;
    - a planned row names another object now, or was attached and detached again, or a row has come that was not
      planned: ``changed``, and the next plan decides anew; where that one is too young: ``kept``;
    - no row is left: the object goes, unless it is referenced.
    """
    if planned.named in referenced or not referenced.isdisjoint(planned.row_ids):
        return kept(REFERENCED)
    # Not by the end of its age, which may lie behind the last year there is.
    young_from = now - retain
    planned_ats = dict(zip(planned.row_ids, planned.detached_ats, strict=True))
    is_changed = False
    for row in found:
        names_it = row.named == planned.named
        if names_it and not row.is_orphaned:
            return kept(ATTACHED)
        if row.row_id in referenced:
            return kept(REFERENCED)
        is_known = row.row_id in planned_ats
        if has_detach_time and names_it and row.detached_at is None:
            return kept(ATTACHED)
        is_same = is_known and names_it and row.is_orphaned
        if has_detach_time and is_same:
            is_same = row.detached_at == planned_ats[row.row_id]
        is_changed = is_changed or not is_same
        if names_it and row.detached_at is not None and row.detached_at >= young_from:
            return kept(TOO_YOUNG)
    return Outcome(Final.CHANGED) if is_changed else None
