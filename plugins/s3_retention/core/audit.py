"""What an audit holds against each other, and what it says: rows and objects, and objects past their deadline."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from s3_retention.core.orphans import read_ref

if TYPE_CHECKING:
    from datetime import datetime

    from s3_retention.core.policy_rows import RowKey
    from s3_retention.core.policy_source import Source

MAX_KEPT = 1000
"""How many of each kind are looked at once more, and kept in the ledger."""
MAX_SHOWN = 20
_MAX_WIDTH = 200


class Kind(str, Enum):
    """What may be wrong with an object or a row."""

    OBJECT_WITHOUT_ROW = "object_without_row"
    ROW_WITHOUT_OBJECT = "row_without_object"
    OVERDUE = "overdue"
    ROW_MALFORMED = "row_malformed"
    ROW_WITHOUT_KEY = "row_without_key"
    ROW_ELSEWHERE = "row_elsewhere"


MEANINGS = {
    Kind.OBJECT_WITHOUT_ROW: "selected objects that no row names",
    Kind.ROW_WITHOUT_OBJECT: "rows whose object is not there",
    Kind.OVERDUE: "objects that are still there after their deadline",
    Kind.ROW_MALFORMED: "rows whose key has a form that the policy does not know",
    Kind.ROW_WITHOUT_KEY: "rows that name no object",
    Kind.ROW_ELSEWHERE: "rows that name an object outside of the bucket and prefix: not compared",
}


class State(str, Enum):
    """What a second look says."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Named:
    """What a row says: the key of its object; or with a ``kind``, why it cannot be compared, and what it says."""

    key: str | None
    kind: Kind | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """One of them. ``since``: when the object was last modified, or was due; ``row_id`` is None for an object."""

    kind: Kind
    key: str | None
    row_id: str | None = None
    version_id: str | None = None
    since: datetime | None = None
    detail: str | None = None
    state: State = State.CONFIRMED

    def __str__(self) -> str:
        """Print it on one line, whatever its key holds."""
        row = None if self.row_id is None else f"row {self.row_id}"
        key = None if self.key is None else repr(self.key[:_MAX_WIDTH])
        version = None if self.version_id is None else f"version {self.version_id}"
        since = None if self.since is None else f"since {self.since:%Y-%m-%d %H:%M:%S}"
        state = None if self.state is State.CONFIRMED else self.state.value
        return ", ".join(part for part in (row, key, version, since, self.detail, state) if part)


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many of one kind there are, and what the second look said of the first of them.

    What was refuted is not in ``num_found``.
    """

    num_found: int = 0
    num_confirmed: int = 0
    num_refuted: int = 0
    num_unknown: int = 0


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit has found. ``num_rows`` is None where the source has no rows.

    ``due_before`` is None where it cannot be told what is overdue, ``why_not_due`` why. ``num_waiting`` counts, for a
    listing, objects that are due and known to be waiting, by the reason. ``num_parked`` were put into quarantine.
    """

    policy: str
    policy_version: str
    bucket: str
    started_at: datetime
    due_before: datetime | None
    num_rows: int | None
    num_objects: int
    counts: dict[Kind, KindCount]
    findings: tuple[Difference, ...] = ()
    num_waiting: dict[str, int] = field(default_factory=dict)
    why_not_due: str | None = None
    num_parked: int = 0

    @property
    def num_found(self) -> int:
        """How many differences there are, of all kinds that are compared."""
        return sum(one.num_found for kind, one in self.counts.items() if kind is not Kind.ROW_ELSEWHERE)

    def as_counts(self) -> dict[str, dict[str, int]]:
        """Give the counts by kind, for the ledger."""
        return {
            kind.value: {
                "num_found": one.num_found,
                "num_confirmed": one.num_confirmed,
                "num_refuted": one.num_refuted,
                "num_unknown": one.num_unknown,
            }
            for kind, one in self.counts.items()
        }

    def __str__(self) -> str:
        """Print one screen: what was read, and of each kind the count and the first keys."""
        rows = "" if self.num_rows is None else f"{self.num_rows:,} rows and "
        lines = [f"audit of policy {self.policy}: {rows}{self.num_objects:,} objects were read"]
        for kind, one in self.counts.items():
            looked = f"{one.num_confirmed:,} confirmed"
            looked += f", {one.num_unknown:,} could not be looked at" if one.num_unknown else ""
            looked += f"; {one.num_refuted:,} more were settled meanwhile" if one.num_refuted else ""
            lines.append(f"{one.num_found:>12,} {kind.value}: {MEANINGS[kind]} ({looked})")
            shown = [each for each in self.findings if each.kind is kind][:MAX_SHOWN]
            lines += [f"{'':14}{each}" for each in shown]
            if one.num_found > len(shown):
                lines.append(f"{'':14}and {one.num_found - len(shown):,} more")
        if self.why_not_due is not None:
            lines.append(f"what is overdue cannot be told: {self.why_not_due}")
        lines += [f"{count:>12,} are due and wait: {why}" for why, count in sorted(self.num_waiting.items())]
        if self.num_parked:
            lines.append(
                f"{self.num_parked:>12,} objects without a row wait in quarantine now, for a redrive"
            )
        lines.append("nothing was deleted")
        return "\n".join(lines)


def read_named(source: Source, key: RowKey, named: str | None) -> Named:
    """Read what a row says of its object, where it can be held against a listing of the policy's prefix."""
    if named is None:
        return Named(None, Kind.ROW_WITHOUT_KEY)
    ref = read_ref(key, named, source.bucket)
    if isinstance(ref, str):
        return Named(named, Kind.ROW_MALFORMED, ref)
    if ref.bucket != source.bucket:
        return Named(named, Kind.ROW_ELSEWHERE, "in another bucket")
    if not ref.key.startswith(source.prefix):
        return Named(named, Kind.ROW_ELSEWHERE, "not under the prefix")
    return Named(ref.key)


def write_named(source: Source, key: RowKey, object_key: str) -> str:
    """Write what a row would say that names this object."""
    return object_key if key.url is None else f"s3://{source.bucket}/{object_key}"
