# ruff: noqa: N803 - the names of the arguments are boto3's
"""A store in memory that does what AWS documents, behind the fake client: the contract holds it to that."""

from __future__ import annotations

import hashlib
import io
import itertools
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote_plus

from botocore.response import StreamingBody

from s3_retention.s3.keys import xml_can_carry
from tests.fakes import FakeClient, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.exceptions import ClientError
    from mypy_boto3_s3 import S3Client

AT = datetime(2020, 1, 1, tzinfo=timezone.utc)
MAX_KEYS = 1000
MAX_KEY_BYTES = 1024


@dataclass
class Version:
    """One version of a key; without a body it is a delete marker."""

    version_id: str
    body: bytes | None
    is_held: bool = False
    tags: list[dict[str, str]] = field(default_factory=list)

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.body or b"", usedforsecurity=False).hexdigest()}"'


@dataclass
class Held:
    """Versions by key, the newest last; ``versioning`` is None, "Enabled" or "Suspended"."""

    versioning: str | None = None
    denied: set[str] = field(default_factory=set)
    versions: dict[str, list[Version]] = field(default_factory=dict)

    def current(self, key: str) -> Version | None:
        """The object under a key, if there is one."""
        of_key = self.versions.get(key)
        return of_key[-1] if of_key and of_key[-1].body is not None else None

    def add(self, key: str, version: Version) -> None:
        """Put a version on top; the null version is replaced."""
        of_key = self.versions.setdefault(key, [])
        of_key[:] = [one for one in of_key if one.version_id != version.version_id]
        of_key.append(version)


@dataclass
class MemoryStore:
    """Buckets by name, and the operations of a boto3 client that the product and its tests need."""

    buckets: dict[str, Held] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def client(self) -> S3Client:
        """The fake client with this store behind it."""
        names = ("list_objects_v2", "head_object", "head_bucket", "delete_objects", "delete_object")
        more = ("list_object_versions", "get_object", "get_object_tagging")
        calls = {name: getattr(self, name) for name in (*names, *more)}
        return cast("S3Client", FakeClient(**calls))

    def create_bucket(self, *, Bucket: str, **_: Any) -> None:
        self.buckets[Bucket] = Held()

    def put_bucket_versioning(self, *, Bucket: str, VersioningConfiguration: dict[str, str]) -> None:
        self._bucket(Bucket).versioning = VersioningConfiguration["Status"]

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> dict[str, Any]:
        if len(Key.encode()) > MAX_KEY_BYTES:
            raise refusal("KeyTooLongError", 400)
        bucket = self._bucket(Bucket)
        version = Version(self._version_id(bucket), Body)
        bucket.add(Key, version)
        return {"VersionId": version.version_id, "ETag": version.etag}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        found = self._bucket(Bucket).current(Key)
        if found is None:
            raise refusal("NoSuchKey", 404)
        body = found.body or b""
        return _answer(ContentLength=len(body), Body=StreamingBody(io.BytesIO(body), len(body)))

    def put_object_tagging(self, *, Bucket: str, Key: str, Tagging: dict[str, list[dict[str, str]]]) -> None:
        found = self._bucket(Bucket).current(Key)
        assert found is not None
        found.tags = Tagging["TagSet"]

    def get_object_tagging(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        found = self._bucket(Bucket).current(Key)
        if found is None:
            raise (
                refusal("MethodNotAllowed", 405)
                if self.buckets[Bucket].versions.get(Key)
                else refusal("NoSuchKey", 404)
            )
        return _answer(TagSet=list(found.tags))

    def put_object_legal_hold(
        self, *, Bucket: str, Key: str, VersionId: str, LegalHold: dict[str, str]
    ) -> None:
        for one in self._bucket(Bucket).versions[Key]:
            if one.version_id == VersionId:
                one.is_held = LegalHold["Status"] == "ON"

    def list_object_versions(self, *, Bucket: str, Prefix: str = "", **more: Any) -> dict[str, Any]:
        is_url = more.get("EncodingType") == "url"
        entries = [
            (key, one, place == 0)
            for key, of_key in sorted(
                self._bucket(Bucket).versions.items(), key=lambda item: item[0].encode()
            )
            for place, one in enumerate(reversed(of_key))
            if key.startswith(Prefix)
        ]
        if "KeyMarker" in more:
            after = (more["KeyMarker"], more.get("VersionIdMarker"))
            names = [(key, one.version_id) for key, one, _ in entries]
            skipped = [key.encode() <= after[0].encode() for key, _ in names].count(True)
            entries = entries[names.index(after) + 1 if after in names else skipped :]
        page = entries[: more.get("MaxKeys", MAX_KEYS)]
        answer = _answer(IsTruncated=len(page) < len(entries), Versions=[], DeleteMarkers=[])
        answer |= {"EncodingType": "url"} if is_url else {}
        for key, one, is_latest in page:
            listed = _listed(quote_plus(key, safe="/") if is_url else key, one)
            marker = {name: listed[name] for name in ("Key", "LastModified")}
            kind = "DeleteMarkers" if one.body is None else "Versions"
            answer[kind].append(
                (marker if one.body is None else listed)
                | {"VersionId": one.version_id, "IsLatest": is_latest}
            )
        if answer["IsTruncated"]:
            key, one, _ = page[-1]
            answer["NextKeyMarker"] = quote_plus(key, safe="/") if is_url else key
            answer["NextVersionIdMarker"] = one.version_id
        return answer

    def list_objects_v2(self, *, Bucket: str, Prefix: str = "", **more: Any) -> dict[str, Any]:
        bucket = self._bucket(Bucket)
        after = more.get("ContinuationToken") or more.get("StartAfter") or ""
        keys = sorted(
            (key for key in bucket.versions if bucket.current(key) and key.startswith(Prefix)), key=str.encode
        )
        keys = [key for key in keys if key.encode() > after.encode()]
        page = keys[: more.get("MaxKeys", MAX_KEYS)]
        is_url = more.get("EncodingType") == "url"
        answer: dict[str, Any] = _answer(IsTruncated=len(page) < len(keys), KeyCount=len(page))
        if is_url:
            answer["EncodingType"] = "url"
        if page:
            answer["Contents"] = [
                _listed(quote_plus(key, safe="/") if is_url else key, bucket.current(key)) for key in page
            ]
        if len(page) < len(keys):
            answer["NextContinuationToken"] = page[-1]
        return answer

    def head_bucket(self, *, Bucket: str) -> dict[str, Any]:
        if Bucket not in self.buckets:
            raise refusal("404", 404)
        return _answer()

    def head_object(self, *, Bucket: str, Key: str, VersionId: str | None = None) -> dict[str, Any]:
        of_key = self.buckets[Bucket].versions.get(Key, []) if Bucket in self.buckets else []
        found = of_key[-1] if of_key else None
        if VersionId is not None:
            found = next((one for one in of_key if one.version_id == VersionId), None)
        if found is None or found.body is None:
            code = 404 if found is None or VersionId is None else 405
            raise refusal(str(code), code)  # a HEAD has no body, and so no code
        hold: dict[str, Any] = {"ObjectLockLegalHoldStatus": "ON"} if found.is_held else {}
        return _answer(ETag=found.etag, ContentLength=len(found.body or b""), LastModified=AT, **hold)

    def delete_objects(self, *, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:
        bucket = self._bucket(Bucket)
        objects = Delete["Objects"]
        if len(objects) > MAX_KEYS or any(_spoils_xml(one["Key"]) for one in objects):
            raise refusal("MalformedXML", 400)
        answer = _answer()
        for one in objects:
            key, version_id = one["Key"], one.get("VersionId")
            fault = self._delete(bucket, key, version_id, one.get("ETag"))
            name = {"Key": key} | ({"VersionId": version_id} if version_id else {})
            if fault is not None:
                code = fault.response["Error"]["Code"]
                answer.setdefault("Errors", []).append(name | {"Code": code, "Message": "no"})
            elif not Delete.get("Quiet"):
                answer.setdefault("Deleted", []).append(name | self._marker(bucket, key, version_id))
        return answer

    def delete_object(
        self, *, Bucket: str, Key: str, VersionId: str | None = None, IfMatch: str | None = None
    ) -> dict[str, Any]:
        fault = self._delete(self._bucket(Bucket), Key, VersionId, IfMatch)
        if fault is not None:
            raise fault
        marker = self._marker(self._bucket(Bucket), Key, VersionId)
        return _answer(status=204, **marker, VersionId=marker.get("DeleteMarkerVersionId", VersionId))

    def _delete(self, bucket: Held, key: str, version_id: str | None, etag: str | None) -> ClientError | None:
        of_key = bucket.versions.get(key, [])
        if key in bucket.denied or any(one.is_held for one in of_key if one.version_id == version_id):
            return refusal("AccessDenied", 403)
        if version_id is not None:
            of_key[:] = [one for one in of_key if one.version_id != version_id]
            return None
        current = bucket.current(key)
        if etag is not None and (current is None or current.etag != etag):
            return refusal("NoSuchKey", 404) if current is None else refusal("PreconditionFailed", 412)
        if bucket.versioning is None:
            bucket.versions.pop(key, None)
        else:
            bucket.add(key, Version(self._version_id(bucket), None))
        return None

    def _marker(self, bucket: Held, key: str, version_id: str | None) -> dict[str, Any]:
        """What an answer says of the marker that a delete without a version has put on top."""
        if bucket.versioning is None or version_id is not None:
            return {}
        return {"DeleteMarker": True, "DeleteMarkerVersionId": bucket.versions[key][-1].version_id}

    def _bucket(self, name: str) -> Held:
        if name not in self.buckets:
            raise refusal("NoSuchBucket", 404)
        return self.buckets[name]

    def _version_id(self, bucket: Held) -> str:
        return f"v{next(self._numbers)}" if bucket.versioning == "Enabled" else "null"


def _spoils_xml(key: str) -> bool:
    return not xml_can_carry(key.replace("\r", ""))


def _listed(key: str, version: Version | None) -> dict[str, Any]:
    assert version is not None
    return {"Key": key, "ETag": version.etag, "Size": len(version.body or b""), "LastModified": AT}


def _answer(status: int = 200, **more: Any) -> dict[str, Any]:
    return {"ResponseMetadata": {"RequestId": "M1", "HTTPStatusCode": status, "HTTPHeaders": {}}, **more}
