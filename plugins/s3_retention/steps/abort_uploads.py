"""Aborts multipart uploads that were begun long ago and never ended: their parts are paid for and shown nowhere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from s3_retention.core.selection import Selection
from s3_retention.core.verdict import is_recordable
from s3_retention.s3.uploads import abort_upload, list_uploads
from s3_retention.steps.breaker import find_brake
from s3_retention.store import aborted_uploads, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from s3_retention.core.holder import Holder
    from s3_retention.core.objects import Upload
    from s3_retention.core.outcome import Outcome
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.store.connection import Connection

_LOST = "\ufffd"  # what a store writes for a byte that XML cannot carry


@dataclass(frozen=True, slots=True)
class AbortResult:
    """What became of the uploads of a run: ``failed`` is the first one that could not be aborted, and why."""

    num_aborted: int = 0
    num_already_absent: int = 0
    num_failed: int = 0
    failed: str | None = None


def run(
    conn: Connection, gateway: S3Gateway, policy: RetentionPolicy, holder: Holder, interval_id: int
) -> AbortResult:
    """Abort the uploads that the policy selects and that began more than ``abort_incomplete_after`` ago.

    By the earlier one of two clocks, the ledger's and the store's, which has stamped them.

    Each page is written down as soon as its uploads are aborted; a run aborts as many as it may delete. Does nothing
    where the policy has no such age, is in mode simulate, or has other rules than its version was first used with, and
    nothing more while a kill switch is set.
    Raises ``ListingError`` when the listing breaks off: what was aborted by then is in the ledger.
    """
    if policy.abort_incomplete_after is None:
        return AbortResult()
    with transaction(conn):
        if find_brake(conn, policy) is not None:
            return AbortResult()
        now = watermarks.read_clock(conn)
    result, bucket = AbortResult(), policy.source.bucket
    with ThreadPoolExecutor(max_workers=policy.batch.parallel, thread_name_prefix="abort") as pool:
        for page in _due_pages(gateway, policy, policy.abort_incomplete_after, now):
            outcomes = list(pool.map(partial(abort_upload, gateway, bucket), page))
            done = [(upload, one) for upload, one in zip(page, outcomes, strict=True) if one.is_final]
            with transaction(conn):
                aborted_uploads.insert(
                    conn, done, policy=policy.name, bucket=bucket, interval_id=interval_id, holder=holder
                )
                brake = find_brake(conn, policy)
            result = _add(result, page, outcomes)
            if brake is not None or any(one.stops_batch for one in outcomes):
                break
    return result


def _due_pages(
    gateway: S3Gateway, policy: RetentionPolicy, age: timedelta, now: datetime
) -> Iterator[list[Upload]]:
    """Give the uploads to abort, page by page, up to the limit of a run."""
    source, left = policy.source, policy.limits.max_commands_per_run
    selection = Selection(policy.select, prefix=source.prefix)
    for page, store_now in list_uploads(gateway, source.bucket, source.prefix):
        before = min(now, store_now or now) - age
        due = [
            upload
            for upload in page
            if upload.initiated_at < before
            and _LOST not in upload.key
            and is_recordable(upload.key)
            and selection.match(upload.key) is not None
        ][:left]
        yield due
        left -= len(due)
        if not left:
            return


def _add(result: AbortResult, page: list[Upload], outcomes: list[Outcome]) -> AbortResult:
    kinds = [outcome.kind.value for outcome in outcomes]
    failed = [
        (upload, outcome) for upload, outcome in zip(page, outcomes, strict=True) if not outcome.is_final
    ]
    first = result.failed
    if first is None and failed:
        upload, outcome = failed[0]
        first = f"{upload.key!r}: {outcome.kind.value} ({outcome.code or 'no code'})"
    return AbortResult(
        result.num_aborted + kinds.count("deleted"),
        result.num_already_absent + kinds.count("already_absent"),
        result.num_failed + len(failed),
        first,
    )
