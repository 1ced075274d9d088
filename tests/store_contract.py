"""What the product needs to know of a store: what AWS documents, and where another store deviates.

The contract suite tries every row on every store; a deviation that has vanished fails it as one that is new does.
docs/stores.md shows these tables.
"""

from __future__ import annotations

from dataclasses import dataclass

SEAWEEDFS, MOTO, MEMORY = "SeaweedFS 4.48", "moto 5.2.5", "the tests' store in memory"
STORES = (SEAWEEDFS, MOTO, MEMORY)

_API = "https://docs.aws.amazon.com/AmazonS3/latest/API/"
_GUIDE = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
_DELETES = f"{_API}API_DeleteObjects.html"
_CONDITIONS = f"{_GUIDE}conditional-deletes.html"
_LISTING = f"{_API}API_ListObjectsV2.html"
_NAMES = f"{_GUIDE}object-keys.html"
_HISTORIES = f"{_API}API_ListObjectVersions.html"
_VERSIONS = f"{_GUIDE}DeleteMarker.html"
_XML = "https://www.w3.org/TR/xml/#charsets"

KEPT = "listed and deleted under its own name"
"""What must be said of a key: it came back as it went in, and the delete hit it and nothing else."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One thing that AWS documents: ``aws`` is what a look at a store must see."""

    name: str
    asked: str
    aws: str
    source: str


PROMISES: tuple[Promise, ...] = (
    # Deletes
    Promise("many", "1,000 keys in one DeleteObjects", "all deleted, each named once", _DELETES),
    Promise("too_many", "1,001 keys in one DeleteObjects", "400 MalformedXML", _DELETES),
    Promise("quiet", "Quiet", "names no key that is deleted", _DELETES),
    Promise("absent", "an absent key, without a condition", "Deleted", _DELETES),
    Promise(
        "denied", "a key that the bucket's policy denies, among others", "AccessDenied for it alone", _DELETES
    ),
    Promise("no_bucket", "DeleteObjects in a bucket that is missing", "404 NoSuchBucket", _DELETES),
    Promise("control_bulk", "a control character in DeleteObjects", "400 MalformedXML", _XML),
    # Conditions
    Promise("etag_same", "the right ETag, in DeleteObjects and as If-Match", "deleted, deleted", _CONDITIONS),
    Promise("etag_bulk", "another ETag, in DeleteObjects", "PreconditionFailed, still there", _CONDITIONS),
    Promise("etag_one", "another ETag, as If-Match", "412 PreconditionFailed, still there", _CONDITIONS),
    Promise("etag_absent_bulk", "an absent key with an ETag, in DeleteObjects", "NoSuchKey", _CONDITIONS),
    Promise("etag_absent_one", "an absent key with If-Match", "404 NoSuchKey", _CONDITIONS),
    # Listings
    Promise("pages", "5 keys in pages of 2", "2, 2, 1 keys, each once", _LISTING),
    Promise(
        "deleted_under",
        "the first page deleted before the second is asked for",
        "the rest, each once",
        _LISTING,
    ),
    Promise("order", "a listing of `a b`, `a-b`, `a.b`, `a/b`", "in UTF-8 byte order", _LISTING),
    Promise("start_after", "StartAfter a key that is a folder, too", "all that comes after it", _LISTING),
    Promise("empty", "a listing of nothing", "IsTruncated false, no keys", _LISTING),
    # Keys
    Promise(
        "plain_keys",
        "spaces, tab, quotes, `+ % & < ? # ~`, DEL, bidi marks, emoji",
        KEPT,
        _NAMES,
    ),
    Promise("two_forms", "`é` composed and decomposed", f"two keys, each {KEPT}", _NAMES),
    Promise("line_feed", "a line feed", KEPT, _NAMES),
    Promise("return", "a carriage return", KEPT, _NAMES),
    Promise("control", "U+0001, U+001F, U+FFFE", KEPT, _NAMES),
    Promise("slashes", "`//`", KEPT, _NAMES),
    Promise("leading_slash", "a leading `/`", KEPT, _NAMES),
    Promise("trailing_slash", "a trailing `/`", KEPT, _NAMES),
    Promise("backslash", "a backslash", KEPT, _NAMES),
    Promise("segment", "a segment of 256 bytes", KEPT, _NAMES),
    Promise("longest", "a key of 1,024 bytes", KEPT, _NAMES),
    Promise("too_long", "a key of 1,025 bytes", "refused: 400 KeyTooLongError", _NAMES),
    # What no listing tells
    Promise("body", "GET of an object", "its bytes, and their number", f"{_API}API_GetObject.html"),
    Promise("body_absent", "GET of an absent key", "404 NoSuchKey", f"{_API}API_GetObject.html"),
    Promise(
        "tags",
        "the tags of an object that has two, one empty, and of one without",
        "both, none",
        f"{_API}API_GetObjectTagging.html",
    ),
    Promise("tags_absent", "the tags of an absent key", "404 NoSuchKey", f"{_API}API_GetObjectTagging.html"),
    Promise(
        "tags_under_marker",
        "the tags of a key under a delete marker",
        "405 MethodNotAllowed",
        f"{_GUIDE}DeleteMarker.html",
    ),
    Promise(
        "tags_overwritten",
        "the tags of an object that was written anew without any",
        "none",
        f"{_GUIDE}object-tagging.html",
    ),
    # Versions
    Promise(
        "marker",
        "a delete in a versioned bucket",
        "a marker over the version, named in the answer",
        _VERSIONS,
    ),
    Promise("second_marker", "the same delete again", "a second marker", _VERSIONS),
    Promise(
        "one_version",
        "a delete that names a version",
        "that version alone is gone",
        f"{_GUIDE}DeletingObjectVersions.html",
    ),
    Promise(
        "held_version",
        "a version under a legal hold, in DeleteObjects",
        "AccessDenied, still there",
        f"{_GUIDE}object-lock.html",
    ),
    Promise(
        "version_pages",
        "3 versions and a marker of each of 4 keys, in pages of 3",
        "16 entries, those of a key together, one of them the latest",
        _HISTORIES,
    ),
    Promise(
        "version_border",
        "the same of `a`, `a-b`, `a/b`, `z`",
        "every key",
        _HISTORIES,
    ),
    Promise(
        "version_after",
        "a listing of versions behind a KeyMarker",
        "all 4 entries of the next key",
        _HISTORIES,
    ),
    Promise(
        "version_keys",
        "a control character in a listing of versions",
        "under its own name",
        _HISTORIES,
    ),
    Promise("marker_head", "HEAD of a delete marker", "405 405", _VERSIONS),
    Promise(
        "suspended",
        "a delete of the null version in a suspended bucket",
        "a null marker in its place",
        f"{_GUIDE}DeletingObjectsfromVersioningSuspendedBuckets.html",
    ),
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """What a store does instead, and what the product does about it."""

    store: str
    promise: str
    seen: str
    handling: str


_FROM_LISTING = "only names that a listing gave are planned, and by that name it is deleted"
_TOLD_BY_LOOK = "gone in either way: what AWS says is told from a store that knows no tags by a look"
_NO_SUCH_OBJECT = "no object there can have such a key"

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        SEAWEEDFS,
        "too_many",
        "400 InvalidArgument",
        "never met: the gateway refuses more than 1,000 keys before any request",
    ),
    Deviation(
        SEAWEEDFS, "etag_absent_one", "412 PreconditionFailed", "a look decides, and says `already_absent`"
    ),
    Deviation(
        SEAWEEDFS,
        "order",
        "`a/b` before `a b` before `a-b` before `a.b`",
        "no step relies on an order; what must be sorted is sorted in the ledger",
    ),
    Deviation(SEAWEEDFS, "start_after", "only b", "never asked for: a listing goes on by its own token"),
    Deviation(
        SEAWEEDFS,
        "slashes",
        "listed as `a/b`; a delete of its own name says Deleted, and it is gone",
        _FROM_LISTING,
    ),
    Deviation(
        SEAWEEDFS,
        "leading_slash",
        "listed as `a`; a delete of its own name says Deleted, and it is gone",
        _FROM_LISTING,
    ),
    Deviation(
        SEAWEEDFS,
        "backslash",
        "listed as `a/b`; a delete of its own name says Deleted, and it stays",
        _FROM_LISTING,
    ),
    Deviation(SEAWEEDFS, "segment", "refused: 400 KeyTooLongError", _NO_SUCH_OBJECT),
    Deviation(
        SEAWEEDFS,
        "version_border",
        "only `a/b`, `z`",
        "a key that a page leaves out is left out whole: it stays, and the next listing shows it where its pages end "
        "elsewhere",
    ),
    Deviation(
        SEAWEEDFS,
        "version_keys",
        "as U+FFFD",
        "its own name is lost: every version of such a key is kept as `key_not_recordable`",
    ),
    Deviation(SEAWEEDFS, "tags_under_marker", "404 NoSuchKey", _TOLD_BY_LOOK),
    Deviation(MOTO, "tags_under_marker", "404 NoSuchKey", _TOLD_BY_LOOK),
    Deviation(SEAWEEDFS, "marker_head", "404 404", "a marker is looked at by a listing of its key"),
    Deviation(
        MOTO,
        "version_after",
        "3 entries of it",
        "a history without its latest is not believed, and the key is looked at alone",
    ),
    Deviation(MOTO, "version_keys", "no listing", "the listing is refused, and nothing is planned"),
    Deviation(
        MOTO, "too_many", "accepted", "never met: the gateway refuses more than 1,000 keys before any request"
    ),
    Deviation(MOTO, "quiet", "names every key", "never asked for: each key must be named in the answer"),
    Deviation(MOTO, "control_bulk", "500 500", "such keys are deleted one by one, by DeleteObject"),
    Deviation(
        MOTO,
        "etag_bulk",
        "Deleted, gone",
        "the probe finds it out, and each object is looked at just before its delete",
    ),
    Deviation(
        MOTO,
        "etag_absent_bulk",
        "Deleted",
        "as above: a look says that it is gone, and `already_absent` is recorded",
    ),
    Deviation(MOTO, "line_feed", "refused: 404 404", _NO_SUCH_OBJECT),
    Deviation(MOTO, "too_long", KEPT, "deleted like any other"),
    Deviation(
        MOTO,
        "held_version",
        "NoAnswerForKey, still there",
        "its error names no version, so nothing was said of the one that was asked for: a look decides, and the "
        "command fails as `locked` there as elsewhere",
    ),
    Deviation(MOTO, "suspended", "nothing is left", "the ledger says `deleted`, and there is no marker"),
)


def seen_on(store: str, promise: Promise) -> str:
    """What must be seen on a store: what AWS documents, or its deviation."""
    found = [one.seen for one in DEVIATIONS if (one.store, one.promise) == (store, promise.name)]
    return found[0] if found else promise.aws
