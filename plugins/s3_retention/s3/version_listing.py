"""Lists the versions and delete markers of a bucket, key by key, and looks at single keys again.

Versions and markers come as two lists, whose order within a key is lost, and the order of keys differs from store to
store. All that is relied on is that the entries of one key stand together, over the borders of pages, too.
"""

from __future__ import annotations

from dataclasses import replace
from os.path import commonprefix
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from s3_retention.core.objects import NULL_VERSION, ListedVersion, ObjectFacts, Versioning
from s3_retention.core.outcome import FailureClass, Final, Outcome
from s3_retention.errors import ListingError
from s3_retention.s3.answers import (
    STORE_ERRORS,
    broken_off,
    facts_of_listed,
    is_empty,
    may_pass,
    no_end_told,
    nothing_said,
    outcome_of_error,
)
from s3_retention.s3.recheck import Faults

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from s3_retention.s3.gateway import S3Gateway

    History = list[ListedVersion]

MIN_SEEN_PER_PAGE = 50
"""Wanted entries on a page from which on the next page is worth it; below, one request for each key is."""
_LISTS = (("Versions", False), ("DeleteMarkers", True))
# What a store puts in the place of a byte that XML cannot carry, where it does not encode its keys.
_LOST = "\ufffd"
_LOST_AS_SURROGATE = "\udcff"


class _UnansweredError(Exception):
    """A page did not come; the outcome says why."""

    def __init__(self, outcome: Outcome) -> None:
        """Keep the outcome."""
        super().__init__(outcome.code)
        self.outcome = outcome


def list_histories(gateway: S3Gateway, bucket: str, prefix: str) -> Iterator[list[History]]:
    """List everything under a prefix, some whole histories of keys at a time.

    Raises ``ListingError`` whenever the answer cannot be trusted: a part of a listing is no listing.
    """
    try:
        for _, whole in _histories(gateway, bucket, prefix):
            yield whole
    except _UnansweredError as error:
        what = f"listing the versions of s3://{bucket}/{prefix} broke off with"
        raise broken_off(what, error.outcome) from None


def look_at_histories(gateway: S3Gateway, bucket: str, keys: Collection[str]) -> dict[str, History | Outcome]:
    """Look at the whole history of each key: empty where it has none, or why the store would not say.

    Keys that lie close together are seen a page at a time, the others by one request each. Where the store or the
    identity is at fault it is not asked for each of them; one key that the store never shows is no such fault.
    """
    found: dict[str, History | Outcome] = {}
    wanted = set(keys)
    if len(wanted) >= MIN_SEEN_PER_PAGE:
        found |= _seen_on_pages(gateway, bucket, wanted)
    faults = Faults()
    for key in sorted(wanted - found.keys()):
        seen = faults.of_all or _look_at_one(gateway, bucket, key)
        found[key] = faults.see(seen) or seen
    return found


def look_at_marker(gateway: S3Gateway, planned: ObjectFacts) -> ObjectFacts | Outcome:
    """Look at one delete marker, which no HEAD shows on every store: its facts, or ``already_absent``."""
    history = _look_at_one(gateway, planned.ref.bucket, planned.ref.key)
    if isinstance(history, Outcome):
        return history
    found = [one.facts for one in history if one.facts.ref == planned.ref]
    return found[0] if found else Outcome(Final.ALREADY_ABSENT)


def ask_versioning(gateway: S3Gateway, bucket: str) -> Versioning:
    """Ask whether a bucket has versions (``s3:GetBucketVersioning``); raises ``ListingError`` without an answer."""

    def ask() -> dict[str, Any] | Outcome:
        try:
            answer = dict(gateway.client.get_bucket_versioning(Bucket=bucket))
        except STORE_ERRORS as error:
            return outcome_of_error(error, whole_request=True)
        # A 200 without a body reads like a bucket that never had versions.
        return nothing_said(answer) if is_empty(answer) else answer

    answer = gateway.limits.retrying(may_pass)(ask)
    if isinstance(answer, Outcome):
        what = f"whether s3://{bucket} has versions was not answered:"
        raise broken_off(what, answer, then="; it takes s3:GetBucketVersioning; nothing was planned")
    return Versioning(str(answer.get("Status") or "Never"), answer.get("MFADelete") == "Enabled")


def _seen_on_pages(gateway: S3Gateway, bucket: str, wanted: set[str]) -> dict[str, History | Outcome]:
    found: dict[str, History | Outcome] = {}
    prefix = commonprefix(list(wanted))  # noqa: RUF071 - of characters: an S3 prefix knows no folders
    # The key without its last character sorts before the key, whatever the store's order is.
    marker = min(wanted, key=str.encode)[:-1]
    try:
        for page, whole in _histories(gateway, bucket, prefix, after=marker):
            # moto begins a page behind a key without the first entry that comes: such a history is looked at again.
            found |= {
                one[0].facts.ref.key: one
                for one in whole
                if one[0].facts.ref.key in wanted and sum(entry.is_latest for entry in one) == 1
            }
            num_seen = sum(one.facts.ref.key in wanted for one in page)
            if len(found) == len(wanted) or num_seen < MIN_SEEN_PER_PAGE:
                break
    except (_UnansweredError, ListingError):
        pass  # the looks at single keys say what is wrong, each for its own
    return found


def _look_at_one(gateway: S3Gateway, bucket: str, key: str) -> History | Outcome:
    try:
        for _, whole in _histories(gateway, bucket, key):
            for history in whole:
                if history[0].facts.ref.key == key:
                    return history
    except _UnansweredError as error:
        return error.outcome
    except ListingError as error:
        return Outcome(FailureClass.UNKNOWN, code="ListingError", message=str(error))
    return []


def _histories(
    gateway: S3Gateway, bucket: str, prefix: str, *, after: str = ""
) -> Iterator[tuple[History, list[History]]]:
    """Give each page, and the histories that are whole with it: none of them can go on with the next one."""
    held: dict[str, History] = {}
    arguments: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix, "EncodingType": "url"}
    arguments |= {"KeyMarker": after} if after else {}
    markers: dict[str, str] | None = {}
    while markers is not None:
        answer = gateway.limits.retrying(may_pass)(_page, gateway, arguments | markers)
        if isinstance(answer, Outcome):
            raise _UnansweredError(answer)
        page: History = []
        # The next marker is the last key of the page, or so it is written.
        going_on = set()
        for name, is_marker in _LISTS:
            entries = [
                _listed(bucket, prefix, one, answer, is_marker=is_marker) for one in answer.get(name, [])
            ]
            going_on |= {one.facts.ref.key for one in entries[-1:]}
            page += entries
        for one in page:
            held.setdefault(one.facts.ref.key, []).append(one)
        last, markers = markers, _next_markers(bucket, prefix, answer)
        if markers is None:
            going_on = set()
        elif markers == last:
            raise ListingError(
                f"listing the versions of s3://{bucket}/{prefix}: more was promised without a new marker"
            )
        else:
            going_on.add(markers["KeyMarker"])
        yield page, [held.pop(key) for key in list(held) if key not in going_on]


def _page(gateway: S3Gateway, arguments: dict[str, Any]) -> dict[str, Any] | Outcome:
    try:
        answer = dict(gateway.client.list_object_versions(**arguments))
    except STORE_ERRORS as error:
        return outcome_of_error(error, whole_request=True)
    return answer if "IsTruncated" in answer else no_end_told(answer)


def _listed(
    bucket: str, prefix: str, entry: dict[str, Any], answer: dict[str, Any], *, is_marker: bool
) -> ListedVersion:
    facts = facts_of_listed(bucket, prefix, {"Size": 0} | entry, answer)
    key = facts.ref.key
    if answer.get("EncodingType") != "url":
        # Some other character stood there: kept as no UTF-8 is, so that the policy keeps the object and counts it.
        key = key.replace(_LOST, _LOST_AS_SURROGATE)
    ref = replace(facts.ref, key=key, version_id=entry.get("VersionId") or NULL_VERSION)
    return ListedVersion(replace(facts, ref=ref), bool(entry.get("IsLatest")), is_marker)


def _next_markers(bucket: str, prefix: str, answer: dict[str, Any]) -> dict[str, str] | None:
    """Give where the next page begins; None at the end."""
    if not answer["IsTruncated"]:
        return None
    key = str(answer.get("NextKeyMarker") or "")
    if answer.get("EncodingType") == "url":
        key = unquote_plus(key)
    elif _LOST in key:
        raise ListingError(
            f"listing the versions of s3://{bucket}/{prefix}: a page ends with a key that the store cannot write, so "
            "that nobody can ask for the next one; nothing was planned"
        )
    version_id = answer.get("NextVersionIdMarker")
    return {"KeyMarker": key} | ({"VersionIdMarker": str(version_id)} if version_id else {})
