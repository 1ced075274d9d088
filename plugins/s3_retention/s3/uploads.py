"""Lists unfinished multipart uploads, and aborts them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from s3_retention.core.objects import Upload
from s3_retention.core.outcome import Final, Outcome
from s3_retention.errors import ListingError
from s3_retention.s3.answers import (
    STORE_ERRORS,
    broken_off,
    clock_of,
    may_pass,
    no_end_told,
    outcome_of_error,
    request_id_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_retention.s3.gateway import S3Gateway

_MARKERS = (("NextKeyMarker", "KeyMarker"), ("NextUploadIdMarker", "UploadIdMarker"))
_GONE = "NoSuchUpload"


def list_uploads(
    gateway: S3Gateway, bucket: str, prefix: str
) -> Iterator[tuple[list[Upload], datetime | None]]:
    """List the unfinished uploads under a prefix, a page of up to 1,000 at a time, in the store's own order.

    With each page comes the clock of the store, None where it tells none.

    Keys are asked for as they are: SeaweedFS says that it has encoded them, and has not. Each page is asked for by the
    markers that the store gave and by no other: SeaweedFS gives no key, and loses uploads when it is given one.
    Raises ``ListingError`` where the answer cannot be trusted.
    """
    arguments: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
    markers: dict[str, str] = {}
    while True:
        answer = gateway.limits.retrying(may_pass)(_page, gateway, arguments | markers)
        if isinstance(answer, Outcome):
            what = f"listing the unfinished uploads of s3://{bucket}/{prefix} broke off with"
            raise broken_off(what, answer, then="")
        # One that a page names twice is one.
        page = list(dict.fromkeys(_upload(bucket, prefix, one) for one in answer.get("Uploads", [])))
        if any(not upload.key.startswith(prefix) for upload in page):
            raise ListingError(
                f"listing the unfinished uploads of s3://{bucket}/{prefix} named another prefix's"
            )
        yield page, clock_of(answer)
        if not answer["IsTruncated"]:
            return
        last, markers = markers, {ours: answer[theirs] for theirs, ours in _MARKERS if answer.get(theirs)}
        if not markers or markers == last:
            raise ListingError(
                f"listing the unfinished uploads of s3://{bucket}/{prefix}: more was promised without a new marker"
            )


def abort_upload(gateway: S3Gateway, bucket: str, upload: Upload) -> Outcome:
    """Abort one upload: ``deleted``, ``already_absent`` where it has ended by itself, or why it did not work."""

    def abort() -> Outcome:
        try:
            answer = gateway.client.abort_multipart_upload(
                Bucket=bucket, Key=upload.key, UploadId=upload.upload_id
            )
        except STORE_ERRORS as error:
            fault = outcome_of_error(error, whole_request=False)
            if fault.code == _GONE:
                return Outcome(Final.ALREADY_ABSENT, code=_GONE, request_id=fault.request_id)
            return fault
        return Outcome(Final.DELETED, request_id=request_id_of(dict(answer)))

    # An abort that was carried out, and whose answer was lost, is answered as gone the next time.
    ended: Outcome = gateway.limits.retrying(lambda outcome: outcome.is_retried)(abort)
    return ended


def _upload(bucket: str, prefix: str, entry: dict[str, Any]) -> Upload:
    key, upload_id, initiated_at = (entry.get(name) for name in ("Key", "UploadId", "Initiated"))
    if not (isinstance(key, str) and isinstance(upload_id, str) and isinstance(initiated_at, datetime)):
        raise ListingError(
            f"listing the unfinished uploads of s3://{bucket}/{prefix} named an upload without a key, an id and a "
            f"time: {entry!r:.200}"
        )
    return Upload(key, upload_id, initiated_at)


def _page(gateway: S3Gateway, arguments: dict[str, Any]) -> dict[str, Any] | Outcome:
    try:
        answer = dict(gateway.client.list_multipart_uploads(**arguments))
    except STORE_ERRORS as error:
        return outcome_of_error(error, whole_request=True)
    return answer if "IsTruncated" in answer else no_end_told(answer)
