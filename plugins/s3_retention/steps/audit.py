"""Holds the rows of a policy and the objects of its bucket against each other, and finds what is overdue.

Nothing is deleted. Both sides are read page by page into the ledger's own session, and are sorted and compared there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from s3_retention.core.audit import MAX_KEPT, AuditResult, Difference, DifferenceKind
from s3_retention.core.objects import ObjectFacts, ObjectRef, is_same_incarnation
from s3_retention.core.orphans import name_of, read_ref
from s3_retention.core.selection import Selection
from s3_retention.sources.read_ahead import read_ahead
from s3_retention.sources.row_source import RowSource
from s3_retention.steps import decide, park_unnamed, scan
from s3_retention.steps.decide import Bounds
from s3_retention.store import audits, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.core.orphans import OrphanRow
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.policy_rows import RowKey
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.sources.row_source import PlanSource
    from s3_retention.steps.park_unnamed import AuditForm
    from s3_retention.store.connection import Connection


def run(
    conn: Connection,
    source: PlanSource,
    gateway: S3Gateway,
    policy: RetentionPolicy,
    form: AuditForm,
    holder: Holder,
    *,
    acted_by: str | None,
) -> AuditResult:
    """Audit a policy, and write down what was found; a run that is cleared gives what it had found before.

    Raises ``AuditRefusedError`` where what it finds cannot be put into quarantine, ``RowsError`` and ``StoreError``
    where one side cannot be read whole: nothing is written then.
    """
    before = audits.find_of_run(conn, holder=holder)
    if before is not None:
        return before
    interval_id = park_unnamed.find_interval(conn, policy) if form.quarantines else None
    now = watermarks.read_clock(conn)
    cutoff = _cutoff(conn, policy, now)
    if isinstance(source, RowSource):
        found = _compare(conn, source, gateway, policy, now, cutoff)
    else:
        found = _decide(conn, source, policy, cutoff)
    with transaction(conn):
        parked = 0
        if interval_id is not None:
            parked = park_unnamed.run(conn, policy, form, holder, acted_by, interval_id, found, now)
        found = replace(found, num_quarantined=parked)
        audits.insert(
            conn,
            found,
            policy=policy.name,
            policy_version=policy.version,
            bucket=policy.source.bucket,
            holder=holder,
            acted_by=acted_by,
            note=form.note,
            started_at=now,
        )
    return found


def _cutoff(conn: Connection, policy: RetentionPolicy, now: datetime) -> datetime:
    """Give the time before which all that was due should be gone."""
    return watermarks.find_completed_through(conn, policy=policy.name) or now - policy.window.safety_delay


def _decide(conn: Connection, source: PlanSource, policy: RetentionPolicy, cutoff: datetime) -> AuditResult:
    """Decide a listing as a simulation does, and find what should have gone by now."""
    scanned = scan.run(conn, source, policy, lambda: None)
    with transaction(conn):
        audits.begin(conn)
        decide.run(conn, policy, scanned, Bounds(cutoff, scanned.started_at - policy.window.safety_delay))
        audits.find_overdue(conn, ends_at=cutoff)
        kept = audits.list_found(conn, DifferenceKind.OVERDUE, bucket=policy.source.bucket, max_rows=MAX_KEPT)
        return AuditResult(scanned.num_scanned, 0, audits.count_found(conn), kept=kept)


def _compare(
    conn: Connection,
    source: RowSource,
    gateway: S3Gateway,
    policy: RetentionPolicy,
    now: datetime,
    cutoff: datetime,
) -> AuditResult:
    rows = policy.source.rows
    assert rows is not None  # noqa: S101 - its source has them
    selection = Selection(policy.select, prefix=policy.source.prefix)
    bucket = policy.source.bucket
    source.rows.refuse_unfit(is_deleting=False)
    with transaction(conn):
        audits.begin(conn)
    num_objects = num_rows = 0
    for page in read_ahead(gateway.list_pages(bucket, policy.source.prefix)):
        selected = [facts for facts in page if selection.match(facts.ref.key) is not None]
        num_objects += len(selected)
        with transaction(conn):
            audits.copy_objects(conn, selected)
    for rows_page in read_ahead(source.rows.pages(are_all=True)):
        named: list[tuple[OrphanRow, str | None]] = []
        for row in rows_page:
            ref = row.named if row.named is None else read_ref(rows.key, row.named, bucket)
            if not isinstance(ref, ObjectRef):
                named.append((row, None))
            elif ref.bucket == bucket and selection.match(ref.key) is not None:
                named.append((row, ref.key))
        num_rows += len(named)
        with transaction(conn):
            audits.copy_rows(conn, named)
    with transaction(conn):
        audits.compare(
            conn,
            started_at=now - policy.window.safety_delay,
            ends_at=cutoff,
            retain=policy.age.retain,
        )
        num_by_kind = audits.count_found(conn)
        first = [
            one
            for kind in DifferenceKind
            for one in audits.list_found(conn, kind, bucket=bucket, max_rows=MAX_KEPT)
        ]
    confirmed = list(_confirmed(source, gateway, policy, rows.key, first))
    for kind in DifferenceKind:
        gone = len(audits.differences_of(first, kind)) - len(audits.differences_of(confirmed, kind))
        if gone:
            num_by_kind[kind.value] -= gone
    return AuditResult(
        num_objects, num_rows, {kind: count for kind, count in num_by_kind.items() if count}, kept=confirmed
    )


def _confirmed(
    source: RowSource,
    gateway: S3Gateway,
    policy: RetentionPolicy,
    key: RowKey,
    found: list[Difference],
) -> Iterator[Difference]:
    """Look at each once more: what has come or gone while the two sides were read is no difference."""
    bucket = policy.source.bucket

    def is_there(one: Difference) -> bool:
        seen = gateway.look(ObjectRef(bucket, one.key or ""))
        if one.facts is None:
            return isinstance(seen, ObjectFacts) or not seen.is_final
        return isinstance(seen, ObjectFacts) and is_same_incarnation(one.facts, seen)

    looks: dict[DifferenceKind, Callable[[Difference], bool]] = {
        DifferenceKind.OBJECT_WITHOUT_ROW: is_there,
        DifferenceKind.ROW_WITHOUT_OBJECT: lambda one: not is_there(one),
    }
    with ThreadPoolExecutor(max_workers=policy.batch.parallel, thread_name_prefix="look") as pool:
        for kind in DifferenceKind:
            of_kind = audits.differences_of(found, kind)
            if kind in looks:
                told = pool.map(looks[kind], of_kind)
                of_kind = [one for one, is_so in zip(of_kind, told, strict=True) if is_so]
                names = {name_of(key, ObjectRef(bucket, one.key or "")): one for one in of_kind}
                rows, _ = source.rows.look(row_ids=[], names=list(names))
                named = {row.named for row in rows}
                has_row = kind is DifferenceKind.ROW_WITHOUT_OBJECT
                of_kind = [one for name, one in names.items() if (name in named) == has_row]
            yield from of_kind
