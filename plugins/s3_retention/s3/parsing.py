"""Reads the long lists of S3 answers quicker than botocore does, and leaves all else to it.

Reading a page of a listing is most of what the client's CPU does (per key 43 us with botocore, of which 30 are its
timestamps). The hooks take the entries of a list out of the body, parse them, and let botocore parse what is left, so
that signing, errors, retries and every other field stay its own. What they give is what botocore would have given;
where anything about a body is not as expected, the body is left alone.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from botocore.utils import parse_timestamp
from dateutil.tz import tzutc  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_s3 import S3Client

    Reader = Callable[[str], Any] | None
    Readers = dict[str, Reader]
    Named = dict[str, tuple[str, Reader | "Named"]]

_UTC = tzutc()
_ISO_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3}|\.\d{6})?Z", re.ASCII)
_OK = 200


class _UnexpectedError(Exception):
    """An entry is not of the known form."""


def quicken(client: S3Client) -> None:
    """Let a client read listings and DeleteObjects answers quickly. Doing it twice does nothing more."""
    events = client.meta.events
    events.register("before-parse.s3.ListObjectsV2", _read_listing, unique_id="s3_retention.listing")
    events.register("before-parse.s3.DeleteObjects", _read_deletes, unique_id="s3_retention.deletes")


def read_timestamp(text: str) -> datetime:
    """Read a timestamp as botocore does; the form that S3 sends, without its detour."""
    if _ISO_UTC.fullmatch(text):
        return datetime.fromisoformat(text[:-1]).replace(tzinfo=_UTC)
    return parse_timestamp(text)


def _is_true(text: str) -> bool:
    return text == "true"


_OWNER: Readers = {"ID": None, "DisplayName": None}
_OBJECT: Readers = {
    "Key": None,
    "LastModified": read_timestamp,
    "ETag": None,
    "Size": int,
    "StorageClass": None,
    "ChecksumType": None,
}
_DELETED: Readers = {
    "Key": None,
    "VersionId": None,
    "DeleteMarker": _is_true,
    "DeleteMarkerVersionId": None,
}
_ERROR: Readers = {"Key": None, "VersionId": None, "Code": None, "Message": None}


def _read_listing(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    lists = {"Contents": ("Contents", _OBJECT)}
    _take_out(response_dict, customized_response_dict, "ListBucketResult", lists)


def _read_deletes(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    lists = {"Deleted": ("Deleted", _DELETED), "Error": ("Errors", _ERROR)}
    _take_out(response_dict, customized_response_dict, "DeleteResult", lists)


def _take_out(
    response: dict[str, Any], parsed: dict[str, Any], root_tag: str, lists: dict[str, tuple[str, Readers]]
) -> None:
    """Move the entries of these lists, by tag, from the body of an answer to what is parsed of it."""
    if response["status_code"] != _OK or not response["body"]:
        return
    try:
        # As botocore does: UTF-8, whatever the XML declaration says.
        parser = ET.XMLParser(target=ET.TreeBuilder(), encoding="utf-8")  # noqa: S314 - it has read this body so far
        root = ET.XML(response["body"], parser=parser)
        space, brace, name = root.tag.rpartition("}")
        if name != root_tag:
            return
        prefix = space + brace
        known = {
            f"{prefix}{tag}": (member, _in_space(prefix, readers)) for tag, (member, readers) in lists.items()
        }
        rest = []
        found: dict[str, list[dict[str, Any]]] = {}
        for child in root:
            if child.tag not in known:
                if child.tag.rpartition("}")[2] in lists:
                    return  # of another namespace, which botocore does not mind: a part of a list is no list
                rest.append(child)
                continue
            member, readers = known[child.tag]
            found.setdefault(member, []).append(_read(child, readers))
        root[:] = rest
        # A carriage return that was written as a reference would be read as a line feed when it is written as such.
        body = ET.tostring(root).replace(b"\r", b"&#13;")
    except (ET.ParseError, ValueError, RecursionError, _UnexpectedError):
        return
    response["body"] = body
    parsed.update(found)


def _in_space(prefix: str, readers: Readers) -> Named:
    named: Named = {f"{prefix}{name}": (name, reader) for name, reader in readers.items()}
    if readers is _OBJECT:
        owner = _in_space(prefix, _OWNER)
        named[f"{prefix}Owner"] = ("Owner", owner)
    return named


def _read(entry: ET.Element, readers: Named) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for child in entry:
        try:
            name, reader = readers[child.tag]
        except KeyError:
            raise _UnexpectedError from None
        if isinstance(reader, dict):
            values[name] = _read(child, reader)
        elif len(child):
            raise _UnexpectedError
        else:
            text = child.text or ""
            values[name] = reader(text) if reader else text
    if len(values) != len(entry):
        raise _UnexpectedError  # a tag came twice
    return values
