"""How each promise of the contract is looked at: a look gives what was seen, in the words of the table."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from s3_retention.core.condition import Guard
from s3_retention.core.objects import ObjectRef
from s3_retention.core.outcome import FailureClass, Outcome
from s3_retention.errors import ListingError
from s3_retention.s3.gateway import MAX_CHUNK, S3Gateway
from tests.factories import NO_WAIT, facts
from tests.store_contract import KEPT, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from s3_retention.core.objects import ObjectFacts

TAGS = {"class": "temp + old", "empty": ""}


@dataclass(frozen=True)
class Store:
    """A store: a client as the product has it, one that may do everything, and an empty bucket."""

    name: str
    client: Any
    admin: Any
    deny: Callable[[str, Iterable[str]], None]
    bucket: str = ""

    @property
    def gateway(self) -> S3Gateway:
        return S3Gateway(self.client, NO_WAIT)

    def put(self, *keys: str, body: bytes = b"x") -> str:
        """Upload objects; the ETag of all of them."""

        def upload(key: str) -> str:
            return str(self.admin.put_object(Bucket=self.bucket, Key=key, Body=body)["ETag"])

        if len(keys) < MAX_CHUNK:
            return [upload(key) for key in keys][-1]
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(upload, keys))[-1]

    def listed(self) -> list[ObjectFacts]:
        return [one for page in self.gateway.list_pages(self.bucket, "") for one in page]

    def keys(self) -> list[str]:
        return [one.ref.key for one in self.listed()]

    def delete(self, *objects: dict[str, str], quiet: bool = False) -> Any:
        return self.client.delete_objects(
            Bucket=self.bucket, Delete={"Objects": list(objects), "Quiet": quiet}
        )

    def versions(self) -> list[tuple[str, str, str]]:
        """What is there of every key: kind, key and version id."""
        answer = self.admin.list_object_versions(Bucket=self.bucket)
        return [
            (kind, one["Key"], one["VersionId"])
            for kind in ("Versions", "DeleteMarkers")
            for one in answer.get(kind, [])
        ]

    def set_versioning(self, status: str) -> None:
        self.admin.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": status})

    def there(self, key: str) -> str:
        return "still there" if key in self.keys() else "gone"


def said(call: Callable[[], Any]) -> str:
    """The status and code of a refusal; "accepted" without one."""
    try:
        call()
    except ClientError as error:
        answer: Any = error.response
        return f"{answer['ResponseMetadata']['HTTPStatusCode']} {answer['Error']['Code']}"
    return "accepted"


def said_of(answer: Any, key: str) -> str:
    """What an answer to DeleteObjects says of a key: "Deleted", the code of its error, or "nothing"."""
    if any(one["Key"] == key for one in answer.get("Deleted", [])):
        return "Deleted"
    codes = [one["Code"] for one in answer.get("Errors", []) if one["Key"] == key]
    return str(codes[0]) if codes else "nothing"


def many(store: Store) -> str:
    *keys, last = (f"{number:04d}" for number in range(MAX_CHUNK + 1))
    store.put(*keys, last)
    assert sorted(store.keys()) == [*keys, last]  # two pages of a listing
    answer = store.delete(*({"Key": key} for key in keys))
    named = sorted(one["Key"] for one in answer["Deleted"])
    return "all deleted, each named once" if (named, store.keys()) == (keys, [last]) else "not all deleted"


def too_many(store: Store) -> str:
    return said(lambda: store.delete(*({"Key": f"{number:04d}"} for number in range(MAX_CHUNK + 1))))


def quiet(store: Store) -> str:
    store.put("a")
    answer = store.delete({"Key": "a"}, quiet=True)
    return "names no key that is deleted" if said_of(answer, "a") == "nothing" else "names every key"


def absent(store: Store) -> str:
    return said_of(store.delete({"Key": "a"}), "a")


def denied(store: Store) -> str:
    store.put("a", "b", "c")
    store.deny(store.bucket, ["b"])
    answer = store.delete({"Key": "a"}, {"Key": "b"}, {"Key": "c"})
    if store.keys() == ["b"] and said_of(answer, "b") == "AccessDenied":
        return "AccessDenied for it alone"
    return f"{said_of(answer, 'b')}, {store.there('b')}"


def no_bucket(store: Store) -> str:
    return said(lambda: replace(store, bucket="t-never").delete({"Key": "a"}))


def control_bulk(store: Store) -> str:
    return said(lambda: store.delete({"Key": "a"}, {"Key": "\x01"}))


def etag_same(store: Store) -> str:
    etag = store.put("a", "b")
    bulk = said_of(store.delete({"Key": "a", "ETag": etag}), "a")
    one = said(lambda: store.client.delete_object(Bucket=store.bucket, Key="b", IfMatch=etag))
    return (
        "deleted, deleted" if (bulk, one, store.keys()) == ("Deleted", "accepted", []) else f"{bulk}, {one}"
    )


OTHER = '"00000000000000000000000000000000"'


def etag_bulk(store: Store) -> str:
    store.put("a")
    answer = said_of(store.delete({"Key": "a", "ETag": OTHER}), "a")
    return f"{answer}, {store.there('a')}"


def etag_one(store: Store) -> str:
    store.put("a")
    answer = said(lambda: store.client.delete_object(Bucket=store.bucket, Key="a", IfMatch=OTHER))
    return f"{answer}, {store.there('a')}"


def etag_absent_bulk(store: Store) -> str:
    return said_of(store.delete({"Key": "a", "ETag": OTHER}), "a")


def etag_absent_one(store: Store) -> str:
    return said(lambda: store.client.delete_object(Bucket=store.bucket, Key="a", IfMatch=OTHER))


def _pages(store: Store, *, delete: bool = False) -> list[list[str]]:
    pages: list[list[str]] = []
    more: dict[str, str] = {}
    while True:
        answer = store.client.list_objects_v2(Bucket=store.bucket, MaxKeys=2, **more)
        pages.append([one["Key"] for one in answer.get("Contents", [])])
        if delete:
            store.delete(*({"Key": key} for key in pages[-1]))
        if not answer["IsTruncated"]:
            return pages
        more = {"ContinuationToken": answer["NextContinuationToken"]}


def pages(store: Store) -> str:
    store.put(*"abcde")
    found = _pages(store)
    once = ", each once" if sorted(itertools.chain(*found)) == list("abcde") else f": {found}"
    return f"{', '.join(str(len(page)) for page in found if page)} keys{once}"


def deleted_under(store: Store) -> str:
    store.put(*"abcde")
    found = list(itertools.chain(*_pages(store, delete=True)))
    return "the rest, each once" if sorted(found) == list("abcde") else f"only {found}"


def order(store: Store) -> str:
    keys = ["a b", "a-b", "a.b", "a/b"]
    store.put(*keys)
    found = store.keys()
    return "in UTF-8 byte order" if found == keys else " before ".join(f"`{key}`" for key in found)


def start_after(store: Store) -> str:
    store.put("a", "a/b", "a/c", "b")
    answer = store.client.list_objects_v2(Bucket=store.bucket, StartAfter="a")
    found = [one["Key"] for one in answer.get("Contents", [])]
    return "all that comes after it" if found == ["a/b", "a/c", "b"] else f"only {', '.join(found)}"


def empty(store: Store) -> str:
    answer = store.client.list_objects_v2(Bucket=store.bucket)
    is_so = (answer["IsTruncated"], answer["KeyCount"], "Contents" in answer) == (False, 0, False)
    return "IsTruncated false, no keys" if is_so else repr(answer)


def _life(store: Store, *keys: str) -> str:
    """What becomes of keys between PUT, listing and delete, beside one that must survive."""
    store.put("bystander")
    for key in keys:
        if (refused := said(lambda key=key: store.put(key))) != "accepted":  # type: ignore[misc]
            return f"refused: {refused}"
    listed = {one.ref.key: one for one in store.listed() if one.ref.key != "bystander"}
    if set(listed) == set(keys):
        outcomes = {one.kind.value for one in store.gateway.delete_chunk(list(listed.values()))}
        done = (outcomes, store.keys()) == ({"deleted"}, ["bystander"])
        return KEPT if done else f"{', '.join(sorted(outcomes))}; left: {store.keys()}"
    # It was stored under another name. What does its own one do?
    (etag,) = {one.etag or "" for one in listed.values()}
    answer = store.delete(*({"Key": key, "ETag": etag} for key in keys))
    left = [one for one in store.listed() if one.ref.key != "bystander"]
    if left:
        assert {one.kind.value for one in store.gateway.delete_chunk(left)} == {"deleted"}
    assert store.keys() == ["bystander"]
    names = ", ".join(f"`{key}`" for key in sorted(listed))
    answers = ", ".join(said_of(answer, key) for key in keys)
    end = "and it stays" if left else "and it is gone"
    return f"listed as {names}; a delete of its own name says {answers}, {end}"


def plain_keys(store: Store) -> str:
    names = ["a b", "a+b", "a%20b", "a%2Fb", '"q"', "'", "&amp;", "<x>", "]]>", "?a=b", "#h", "~*!()", "{x}"]
    names += ["tab\tx", "\x7f", "\u200b", "\u202e", "😀", " lead", "trail ", "NULL", "$$", ";--", "a,b"]
    return _life(store, *names)


def two_forms(store: Store) -> str:
    found = _life(store, "é", "e\u0301")
    return f"two keys, each {KEPT}" if found == KEPT else found


def line_feed(store: Store) -> str:
    return _life(store, "new\nline")


def carriage_return(store: Store) -> str:
    return _life(store, "cr\rx")


def control(store: Store) -> str:
    return _life(store, "\x01", "\x1f", "\ufffe")


def slashes(store: Store) -> str:
    return _life(store, "a//b")


def leading_slash(store: Store) -> str:
    return _life(store, "/a")


def trailing_slash(store: Store) -> str:
    return _life(store, "a/")


def backslash(store: Store) -> str:
    return _life(store, "a\\b")


def segment(store: Store) -> str:
    return _life(store, "x" * 256)


def longest(store: Store) -> str:
    return _life(store, "/".join(["x" * 204] * 5))


def too_long(store: Store) -> str:
    return _life(store, "/".join(["x" * 204] * 4 + ["x" * 205]))


def body(store: Store) -> str:
    content = bytes(range(256)) * 40
    store.put("a", body=content)
    found = store.gateway.read_body(ObjectRef(store.bucket, "a"), max_bytes=len(content))
    too_small = store.gateway.read_body(ObjectRef(store.bucket, "a"), max_bytes=len(content) - 1)
    assert isinstance(too_small, Outcome)
    return "its bytes, and their number" if found == content else repr(found)


def body_absent(store: Store) -> str:
    return said(lambda: store.client.get_object(Bucket=store.bucket, Key="a"))


def _tags(store: Store, key: str) -> str:
    found = store.gateway.read_tags(ObjectRef(store.bucket, key))
    if found == TAGS:
        return "both"
    return "none" if found == {} else repr(found)


def tags(store: Store) -> str:
    store.put("a", "b")
    pairs = [{"Key": name, "Value": value} for name, value in TAGS.items()]
    store.admin.put_object_tagging(Bucket=store.bucket, Key="a", Tagging={"TagSet": pairs})
    return f"{_tags(store, 'a')}, {_tags(store, 'b')}"


def tags_absent(store: Store) -> str:
    return said(lambda: store.client.get_object_tagging(Bucket=store.bucket, Key="a"))


def tags_under_marker(store: Store) -> str:
    store.set_versioning("Enabled")
    store.put("a")
    store.delete({"Key": "a"})
    found = store.gateway.read_tags(ObjectRef(store.bucket, "a"))
    assert isinstance(found, Outcome)
    assert found.is_gone
    return tags_absent(store)


def tags_overwritten(store: Store) -> str:
    tags(store)
    store.put("a", body=b"new")
    return _tags(store, "a")


def _kinds(store: Store) -> str:
    return ", ".join(sorted(kind for kind, _, _ in store.versions()))


def marker(store: Store) -> str:
    store.set_versioning("Enabled")
    store.put("a", "cr\rx")  # the second one goes by DeleteObject
    for one in store.listed():
        (outcome,) = store.gateway.delete_chunk([one], guard=Guard(looks_first=True))
        assert outcome.kind.value == "deleted"
        there = [version_id for kind, _, version_id in store.versions() if kind == "DeleteMarkers"]
        if outcome.marker_version_id not in there:
            return f"{outcome.marker_version_id} named, of {store.versions()}"
    is_so = (_kinds(store), store.keys()) == ("DeleteMarkers, DeleteMarkers, Versions, Versions", [])
    return "a marker over the version, named in the answer" if is_so else _kinds(store)


def second_marker(store: Store) -> str:
    store.set_versioning("Enabled")
    store.put("a")
    for _ in range(2):
        store.delete({"Key": "a"})
    return "a second marker" if _kinds(store) == "DeleteMarkers, DeleteMarkers, Versions" else _kinds(store)


def one_version(store: Store) -> str:
    store.set_versioning("Enabled")
    store.put("a", body=b"old")
    old = store.versions()[0][2]
    store.put("a", body=b"new")
    (one,) = store.listed()
    named = replace(one, ref=replace(one.ref, version_id=old))
    assert [outcome.kind.value for outcome in store.gateway.delete_chunk([named])] == ["deleted"]
    left = store.versions()
    is_so = len(left) == 1 and left[0][2] != old and store.listed() == [one]
    return "that version alone is gone" if is_so else repr(left)


def held_version(store: Store) -> str:
    locked = replace(store, bucket=f"{store.bucket}-lock")
    store.admin.create_bucket(Bucket=locked.bucket, ObjectLockEnabledForBucket=True)
    locked.set_versioning("Enabled")
    etag = locked.put("a")
    ((_, key, version_id),) = locked.versions()
    name: Any = {"Bucket": locked.bucket, "Key": key, "VersionId": version_id}
    store.admin.put_object_legal_hold(**name, LegalHold={"Status": "ON"})
    held = facts("a", bucket=locked.bucket, version_id=version_id, etag=etag)
    (outcome,) = locked.gateway.delete_chunk([held])
    assert outcome.kind is FailureClass.LOCKED
    seen = f"{outcome.code}, {locked.there('a')}"
    store.admin.put_object_legal_hold(**name, LegalHold={"Status": "OFF"})
    (outcome,) = locked.gateway.delete_chunk([held])
    assert (outcome.kind.value, locked.versions()) == ("deleted", [])
    if store.name != MEMORY:
        store.admin.delete_bucket(Bucket=locked.bucket)
    return seen


def _entries(store: Store, *keys: str, size: int) -> list[list[tuple[str, bool]]]:
    """The pages of a listing of three versions and a marker of each key: key, and whether it is the latest."""
    store.set_versioning("Enabled")
    for body in (b"1", b"2", b"3"):
        store.put(*keys, body=body)
    for key in keys:
        store.admin.delete_object(Bucket=store.bucket, Key=key)
    found: list[list[tuple[str, bool]]] = []
    more: dict[str, str] = {}
    while True:
        answer = store.client.list_object_versions(Bucket=store.bucket, MaxKeys=size, **more)
        entries = [*answer.get("Versions", []), *answer.get("DeleteMarkers", [])]
        found.append([(one["Key"], one["IsLatest"]) for one in entries])
        if not answer["IsTruncated"]:
            return found
        more = {"KeyMarker": answer["NextKeyMarker"], "VersionIdMarker": answer["NextVersionIdMarker"]}


def version_pages(store: Store) -> str:
    found = _entries(store, "a", "b", "c/d", "e", size=3)
    order = [key for page in found for key in dict.fromkeys(key for key, _ in page)]
    runs = [key for key, _ in itertools.groupby(order)]
    counts = {key: [one for page in found for one in page].count((key, True)) for key in runs}
    num = sum(len(page) for page in found)
    together = ", those of a key together, one of them the latest"
    is_so = len(runs) == len(set(runs)) and set(counts.values()) == {1}
    return f"{num} entries{together if is_so else f': {found}'}"


def version_border(store: Store) -> str:
    found = _entries(store, "a", "a-b", "a/b", "z", size=3)
    seen = {key for page in found for key, _ in page}
    return "every key" if len(seen) == 4 else f"only {', '.join(f'`{key}`' for key in sorted(seen))}"


def version_keys(store: Store) -> str:
    store.set_versioning("Enabled")
    store.put("a\x01b")
    try:
        ((history,),) = store.gateway.list_histories(store.bucket, "a")
    except ListingError:
        return "no listing"
    key = history[0].facts.ref.key
    return "under its own name" if key == "a\x01b" else "as U+FFFD"


def version_after(store: Store) -> str:
    found = _entries(store, "a", "b", size=100)
    assert len(found) == 1
    answer = store.client.list_object_versions(Bucket=store.bucket, KeyMarker="a0")
    num = sum(len(answer.get(name, [])) for name in ("Versions", "DeleteMarkers"))
    return "all 4 entries of the next key" if num == 4 else f"{num} entries of it"


def marker_head(store: Store) -> str:
    store.set_versioning("Enabled")
    store.put("a")
    marker = store.admin.delete_object(Bucket=store.bucket, Key="a")["VersionId"]
    return said(lambda: store.client.head_object(Bucket=store.bucket, Key="a", VersionId=marker))


def suspended(store: Store) -> str:
    store.set_versioning("Enabled")
    store.set_versioning("Suspended")
    store.put("a")
    store.delete({"Key": "a"})
    left = [(kind, version_id) for kind, _, version_id in store.versions()]
    if not left:
        return "nothing is left"
    return "a null marker in its place" if left == [("DeleteMarkers", "null")] else repr(left)


CHECKS: dict[str, Callable[[Store], str]] = {
    "return": carriage_return,
    **{
        check.__name__: check
        for check in (
            *(many, too_many, quiet, absent, denied, no_bucket, control_bulk),
            *(etag_same, etag_bulk, etag_one, etag_absent_bulk, etag_absent_one),
            *(pages, deleted_under, order, start_after, empty),
            *(plain_keys, two_forms, line_feed, control, slashes, leading_slash, trailing_slash),
            *(backslash, segment, longest, too_long),
            *(body, body_absent, tags, tags_absent, tags_under_marker, tags_overwritten),
            *(marker, second_marker, one_version, held_version, suspended),
            *(version_pages, version_border, version_keys, version_after, marker_head),
        )
    },
}
