"""Holds the rows of a policy and its objects against each other, and looks for objects past their deadline.

Both sides stream into tables of this session, where they are sorted and joined; only the first differences of each kind
come back, and each of these is looked at once more. Nothing is deleted, claimed or parked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from s3_retention.core.audit import MAX_KEPT, Audit, Kind, KindCount, State, read_named
from s3_retention.core.decider import Decider
from s3_retention.core.interval import BEGINNING
from s3_retention.core.selection import Selection
from s3_retention.core.verdict import is_recordable
from s3_retention.sources.read_ahead import read_ahead
from s3_retention.steps import decide, park_unnamed, scan
from s3_retention.steps.audit_again import Again
from s3_retention.steps.collecting import collects_rarely
from s3_retention.steps.decide import Bounds
from s3_retention.store import audit_sides, audits, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.core.orphans import OrphanRow
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.sources.s3_listing import CandidateSource
    from s3_retention.steps.audit_again import RowLooker, Store
    from s3_retention.store.connection import Connection

_WAITING = ("in_quarantine", "in_other_plan", "tenant_paused")


class AuditedRows(Protocol):
    """What an audit needs of a table of rows."""

    def pages(self, *, are_all: bool = False) -> Iterator[list[OrphanRow]]:
        """Read the orphaned rows, or all, page by page."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What is held against each other; without ``rows``, deadlines alone are looked at.

    ``rows_again`` and ``store`` are asked for the second look.
    """

    listing: CandidateSource
    store: Store
    rows: AuditedRows | None = None
    rows_again: RowLooker | None = None


@collects_rarely()
def run(
    conn: Connection,
    sides: Sides,
    policy: RetentionPolicy,
    holder: Holder,
    *,
    acted_by: str | None = None,
    note: str | None = None,
    is_parking: bool = False,
) -> Audit:
    """Audit a policy, and write down what was found. An audit that breaks off leaves nothing.

    ``is_parking``: objects without a row that are old enough are put into quarantine, for a redrive.
    Raises ``AuditRefusedError`` where they cannot be, ``StoreError`` where the listing is not complete, ``RowsError``
    where the database of the rows refuses, ``RowsUnavailableError`` where it goes away, ``PlanRefusedError`` where the
    clocks disagree.
    """
    interval_id = park_unnamed.find_interval(conn, policy) if is_parking else None
    with transaction(conn):
        audit_sides.begin(conn)
    started = (
        _compare_rows(conn, sides, policy) if sides.rows is not None else _list_overdue(conn, sides, policy)
    )
    with transaction(conn):
        num_by_kind = audit_sides.count(conn)
    again = Again(
        policy, sides.store, sides.rows_again, started.due_before, started.uploaded_before, Decider(policy)
    )
    counts, findings = {}, []
    for kind in started.kinds:
        with transaction(conn):
            first = audit_sides.list_first(conn, kind, max_rows=MAX_KEPT)
        looked = again.look(kind, first)
        num = {state: sum(one.state is state for one in looked) for state in State}
        counts[kind] = KindCount(
            num_by_kind.get(kind, 0) - num[State.REFUTED],
            num[State.CONFIRMED],
            num[State.REFUTED],
            num[State.UNKNOWN],
        )
        findings += [one for one in looked if one.state is not State.REFUTED]
    audit = Audit(
        policy.name,
        policy.version,
        policy.source.bucket,
        started.at,
        started.due_before,
        started.num_rows,
        started.num_objects,
        counts,
        tuple(findings),
        started.num_waiting,
        started.why_not_due,
    )
    parked = []
    if interval_id is not None:
        parked = park_unnamed.look(sides.store, policy, audit.findings, now=started.at)
    with transaction(conn):
        if interval_id is not None:
            num_parked = park_unnamed.run(
                conn, policy, parked, holder, interval_id=interval_id, acted_by=acted_by, note=note
            )
            audit = replace(audit, num_parked=num_parked)
        audits.insert(conn, audit, holder=holder, acted_by=acted_by, note=note)
    return audit


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read, and by which times it was compared."""

    at: datetime
    kinds: tuple[Kind, ...]
    num_rows: int | None
    num_objects: int
    due_before: datetime | None
    uploaded_before: datetime
    num_waiting: dict[str, int]
    why_not_due: str | None = None


def _compare_rows(conn: Connection, sides: Sides, policy: RetentionPolicy) -> _Read:
    source, rows = policy.source, sides.rows
    assert source.rows is not None  # noqa: S101 - there are rows
    assert rows is not None  # noqa: S101 - as above
    now, store_now = watermarks.read_clock(conn), sides.listing.read_clock()
    # By the earlier of the two clocks: what came in while the audit read is not reported, whichever is ahead.
    uploaded_before = min(now, store_now or now) - policy.window.safety_delay
    has_times = source.rows.detached_at is not None
    due_before = now - policy.window.safety_delay if has_times else None
    # The rows first: what comes in meanwhile, file and row, is then a young file, and not a row without one.
    num_rows = 0
    for page in read_ahead(rows.pages()) if has_times else ():
        orphans = [(read_named(source, source.rows.key, one.named), one) for one in page]
        with transaction(conn):
            audit_sides.copy_orphans(
                conn,
                (
                    (named.key, one.detached_at, one.kept_by)
                    for named, one in orphans
                    if named.kind is None and named.key is not None
                ),
            )
    for page in read_ahead(rows.pages(are_all=True)):
        num_rows += len(page)
        read = [(one.row_id, read_named(source, source.rows.key, one.named)) for one in page]
        with transaction(conn):
            audit_sides.copy_rows(
                conn,
                ((row_id, one.key, one.kind and one.kind.value, one.detail) for row_id, one in read),
            )
    num_objects = _copy_objects(conn, sides.listing, policy)
    with transaction(conn):
        audit_sides.compare(
            conn,
            policy=policy.name,
            bucket=source.bucket,
            uploaded_before=uploaded_before,
            due_before=due_before,
            retain=policy.age.retain,
        )
    why = (
        None if has_times else "source.rows.detached_at is not set, so no row says since when it is orphaned"
    )
    kinds = tuple(kind for kind in Kind if has_times or kind is not Kind.OVERDUE)
    return _Read(now, kinds, num_rows, num_objects, due_before, uploaded_before, {}, why)


def _copy_objects(conn: Connection, listing: CandidateSource, policy: RetentionPolicy) -> int:
    selection = Selection(policy.select, prefix=policy.source.prefix)
    num_objects = 0
    for page in read_ahead(listing.pages()):
        num_objects += len(page)
        with transaction(conn):
            audit_sides.copy_objects(
                conn,
                (
                    (
                        one.ref.key,
                        selection.match(one.ref.key) is not None and selection.size_reason(one.size) is None,
                        one.last_modified_at,
                    )
                    for one in page
                    # No text of Postgres can name the others: neither row nor ledger does.
                    if is_recordable(one.ref.key)
                ),
            )
    return num_objects


def _list_overdue(conn: Connection, sides: Sides, policy: RetentionPolicy) -> _Read:
    """Decide the whole listing as a simulation does, up to where the policy has decided everything."""
    now = watermarks.read_clock(conn)
    position = watermarks.find_position(conn, policy=policy.name)
    # A cap and a refusal are brakes on a delete; here they would hide what is there.
    bare = policy.model_copy(
        update={
            "limits": policy.limits.model_copy(
                update={"allow_expire_everything": True, "max_commands_per_tenant": None}
            )
        }
    )
    scanned = scan.run(conn, sides.listing, bare, lambda: None)
    if position is None:
        why = "the policy has never been enforced, so nothing of it was to be gone yet"
        return _Read(now, (), None, scanned.num_scanned, None, now, {}, why)
    due_before = min(position, now - policy.window.safety_delay)
    with transaction(conn):
        decided = decide.run(conn, bare, scanned, Bounds(policy.start_at or BEGINNING, due_before))
        audit_sides.take_due(conn)
    kept = decided.num_kept_by_reason
    waiting = {why: kept[why] for why in _WAITING if why in kept}
    return _Read(now, (Kind.OVERDUE,), None, scanned.num_scanned, due_before, now, waiting)
