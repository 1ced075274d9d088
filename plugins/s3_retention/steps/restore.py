"""Brings deleted objects of versioned buckets back: removes the markers that the ledger recorded, and no others.

A marker is looked at just before its removal, which is by its id: a second one changes nothing, and one that something
newer has come to lie on meanwhile is no longer what hides the object.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from s3_retention.core.outcome import FailureClass, Outcome
from s3_retention.core.restore import Restored, RestoreKind, decide_restore, decide_unmarked
from s3_retention.errors import ListingError, RestoreRefusedError
from s3_retention.s3.keys import xml_can_carry
from s3_retention.s3.version_listing import look_at_histories
from s3_retention.store import intervals, restores
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from s3_retention.core.holder import Holder
    from s3_retention.core.objects import ListedVersion, ObjectFacts, ObjectRef
    from s3_retention.core.restore import DeletedObject, RestoreForm
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.store.connection import Connection

PAGE_SIZE = 1000
PART_SIZE = 100
"""Objects of one request that removes; several are in flight."""
PARALLEL = 8
MAX_FAILED = 100
"""Failures from which on, with nothing brought back since, no object is to blame: of each key that an identity may not
remove, a store says so one by one."""
MAX_SAMPLE = 20

_NEVER = "Never"


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Counts by outcome over all tries of the run, and a sample; in a dry run ``restored`` is what would be.

    ``is_stopped``: the store or the identity is at fault, and what comes behind was not looked at.
    """

    num_by_kind: dict[str, int] = field(default_factory=dict)
    sample: tuple[Restored, ...] = ()
    first_failed: Restored | None = None
    is_limited: bool = False
    is_stopped: bool = False

    @property
    def num_failed(self) -> int:
        """How many could not be looked at, or whose marker could not be removed."""
        return self.num_by_kind.get(RestoreKind.FAILED.value, 0)


def run(
    conn: Connection, gateway: S3Gateway, form: RestoreForm, holder: Holder, *, acted_by: str | None
) -> RestoreResult:
    """Restore what the form selects, up to its limit, page by page; a dry run looks, and changes nothing.

    Each page is written down as soon as its markers are removed. A run that was cleared goes on behind what it has
    ended. Raises ``RestoreRefusedError`` when there is no such interval. Where the store or the identity is at fault,
    or so many fail that they must be, the page is the last one.
    """
    with transaction(conn):
        interval_id = _find_interval(conn, form)
        num_by_kind = {} if form.is_dry_run else restores.count(conn, holder=holder)
    limited = _limited(holder)
    num_left = form.max_objects - sum(num_by_kind.get(kind.value, 0) for kind in limited)
    num_failed, is_stopped = 0, False
    counted: dict[str, int] = {}
    sample: list[Restored] = []
    first_failed: Restored | None = None
    unversioned: dict[str, RestoreKind | Outcome] = {}
    after: DeletedObject | None = None
    with ThreadPoolExecutor(max_workers=PARALLEL, thread_name_prefix="restore") as pool:
        while num_left > 0 and not is_stopped:
            size = min(PAGE_SIZE, num_left)
            with transaction(conn):
                page = restores.list_deleted(
                    conn, form, interval_id=interval_id, after=after, max_rows=size, holder=holder
                )
            if not page:
                break
            for bucket in {one.facts.ref.bucket for one in page if _is_unmarked(one)} - unversioned.keys():
                unversioned[bucket] = _why_unmarked(gateway, bucket)
            restore_part = partial(_restore_part, gateway, unversioned, is_dry_run=form.is_dry_run)
            done = _once([one for part in pool.map(restore_part, _parts(page)) for one in part])
            if not form.is_dry_run:
                with transaction(conn):
                    restores.insert(conn, done, holder=holder, acted_by=acted_by or "unknown", note=form.note)
            for one in done:
                counted[one.kind.value] = counted.get(one.kind.value, 0) + 1
            num_left -= sum(one.kind in limited for one in done)
            sample += done[: MAX_SAMPLE - len(sample)]
            failed = [one for one in done if one.failure is not None]
            first_failed = first_failed or next(iter(failed), None)
            is_fruitless = all(one.kind is not RestoreKind.RESTORED for one in done)
            num_shown = sum(not _is_hidden(one.deleted.facts.ref.key) for one in failed)
            num_failed = num_failed + num_shown if is_fruitless else 0
            is_stopped = num_failed >= MAX_FAILED or any(
                one.failure.stops_batch for one in failed if one.failure
            )
            after = page[-1]
    if not form.is_dry_run:
        with transaction(conn):
            counted = restores.count(conn, holder=holder)
    return RestoreResult(
        counted, tuple(sample), first_failed, is_limited=num_left <= 0, is_stopped=is_stopped
    )


def _find_interval(conn: Connection, form: RestoreForm) -> int | None:
    if form.interval_key is None:
        return None
    found = intervals.find_by_key(conn, form.interval_key)
    if found is None:
        raise RestoreRefusedError(
            f"interval_key = {form.interval_key!r}: there is no such interval; s3_retention.intervals lists them"
        )
    return found.interval_id


def _limited(holder: Holder) -> set[RestoreKind]:
    """Say what counts towards the limit: from the second try on, what a lost one may have brought back, too."""
    return {RestoreKind.RESTORED} | ({RestoreKind.ALREADY_RESTORED} if holder.try_number > 1 else set())


def _once(done: Sequence[Restored]) -> list[Restored]:
    """Let one entry of a page alone have brought an object back, where several have recorded the same marker."""
    seen: set[ObjectRef] = set()
    told = []
    for one in done:
        marker = _marker(one.deleted).ref
        is_again = one.kind is RestoreKind.RESTORED and marker in seen
        told.append(replace(one, kind=RestoreKind.ALREADY_RESTORED) if is_again else one)
        seen |= {marker} if one.kind is RestoreKind.RESTORED else set()
    return told


def _parts(page: Sequence[DeletedObject]) -> Iterator[list[DeletedObject]]:
    """Cut a page into parts of one bucket, by key: keys that lie close together are seen a page at a time."""
    ordered = sorted(page, key=lambda one: (one.facts.ref.bucket, one.facts.ref.key))
    for _, of_bucket in groupby(ordered, key=lambda one: one.facts.ref.bucket):
        rows = list(of_bucket)
        yield from (rows[at : at + PART_SIZE] for at in range(0, len(rows), PART_SIZE))


def _restore_part(
    gateway: S3Gateway,
    unversioned: dict[str, RestoreKind | Outcome],
    part: Sequence[DeletedObject],
    *,
    is_dry_run: bool,
) -> list[Restored]:
    """Look at the keys of a part and remove the markers that may go; touches the store alone."""
    bucket = part[0].facts.ref.bucket
    marked = [one for one in part if decide_unmarked(one) is None and one.marker_version_id is not None]
    seen = _look(gateway, bucket, {one.facts.ref.key for one in marked})
    decided: list[Restored] = []
    for one in part:
        known = decide_unmarked(one)
        if known is None:
            found = unversioned[bucket] if _is_unmarked(one) else seen[one.facts.ref.key]
            if isinstance(found, Outcome):
                decided.append(Restored(one, RestoreKind.FAILED, found))
                continue
            known = found if isinstance(found, RestoreKind) else decide_restore(one, found)
        decided.append(Restored(one, known))
    return decided if is_dry_run else _remove_markers(gateway, decided)


def _look(gateway: S3Gateway, bucket: str, keys: set[str]) -> dict[str, list[ListedVersion] | Outcome]:
    """Look at keys, apart from those that a store may never show: some in a row would pass for a store at fault."""
    hidden = {key for key in keys if _is_hidden(key)}
    return look_at_histories(gateway, bucket, keys - hidden) | look_at_histories(gateway, bucket, hidden)


def _is_hidden(key: str) -> bool:
    """Say whether no XML can show a key; a carriage return comes as it is, or encoded."""
    return not xml_can_carry(key.replace("\r", ""))


def _remove_markers(gateway: S3Gateway, decided: Sequence[Restored]) -> list[Restored]:
    going = [place for place, one in enumerate(decided) if one.kind is RestoreKind.RESTORED]
    done = list(decided)
    if going:
        markers = [_marker(decided[place].deleted) for place in going]
        for place, outcome in zip(going, gateway.delete_chunk(markers), strict=True):
            if not outcome.is_final:
                done[place] = replace(done[place], kind=RestoreKind.FAILED, failure=outcome)
    return done


def _marker(deleted: DeletedObject) -> ObjectFacts:
    ref = replace(deleted.facts.ref, version_id=deleted.marker_version_id)
    # A marker has no ETag and no size: so it is told from a version.
    return replace(deleted.facts, ref=ref, etag=None, size=0)


def _is_unmarked(deleted: DeletedObject) -> bool:
    return deleted.facts.ref.version_id is None and deleted.marker_version_id is None


def _why_unmarked(gateway: S3Gateway, bucket: str) -> RestoreKind | Outcome:
    """Say why a delete left no marker in this bucket: by what the bucket is today."""
    try:
        status = gateway.ask_versioning(bucket).status
    except ListingError as error:
        return Outcome(FailureClass.UNKNOWN, code="ListingError", message=str(error))
    return RestoreKind.BUCKET_UNVERSIONED if status == _NEVER else RestoreKind.NO_MARKER_RECORDED
