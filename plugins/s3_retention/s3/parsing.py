"""Reads the long lists of S3 answers quicker than botocore does, and leaves all else to it.

Reading a page of a listing is most of what the client's CPU does (per key 43 us with botocore, of which 30 are its
timestamps). The hooks take the entries of a list out of the body, parse them, and let botocore parse what is left, so
that signing, errors, retries and every other field stay its own. What they give is what botocore would have given;
where anything about a body is not as expected, the body is left alone.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from botocore.parsers import ResponseParserError
from botocore.utils import parse_timestamp

from s3_retention.s3.uniform_entries import NotUniformError, read_uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_s3 import S3Client

    from s3_retention.s3.uniform_entries import Path, Uniform

    Reader = Callable[[str], Any] | None
    Readers = dict[str, Reader | "Readers"]
    Named = dict[str, tuple[str, Reader | "Named"]]
    Lists = dict[str, tuple[str, Readers]]

_ISO_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3}|\.\d{6})?Z", re.ASCII)
_OK = 200


class _UnexpectedError(Exception):
    """An entry is not of the known form."""


def quicken(client: S3Client) -> None:
    """Let a client read listings and DeleteObjects answers quickly. Doing it twice does nothing more."""
    events = client.meta.events
    # By the wildcard they come before botocore's own, one of which parses the whole body to look at its root.
    events.register("before-parse.*.ListObjectsV2", _read_listing, unique_id="s3_retention.listing")
    events.register("before-parse.*.DeleteObjects", _read_deletes, unique_id="s3_retention.deletes")


def refuse_other_answers(client: S3Client) -> None:
    """Let a client raise ``ResponseParserError`` for a 200 to DeleteObjects that is the answer to something else.

    botocore finds nothing in it, which would say of each key alone that nobody knows: it is the store, or something
    before it, that is at fault.
    """
    events = client.meta.events
    events.register("before-parse.*.DeleteObjects", _refuse_other, unique_id="s3_retention.other")


def _refuse_other(response_dict: dict[str, Any], **_: Any) -> None:
    body = response_dict["body"]
    if response_dict["status_code"] != _OK or not body:
        return
    try:
        root = _parse(body)
    except ET.ParseError:
        return
    if root.tag.rpartition("}")[2] not in {"DeleteResult", "Error"}:
        raise ResponseParserError("a 200 to DeleteObjects is no DeleteResult")


@lru_cache(maxsize=4096)
def read_timestamp(text: str) -> datetime:
    """Read a timestamp as botocore does; the form that S3 sends, without its detour.

    That one in Python's own UTC, which costs less than dateutil's wherever a time is compared, shifted or stored.
    """
    if _ISO_UTC.fullmatch(text):
        return datetime.fromisoformat(text[:-1]).replace(tzinfo=timezone.utc)
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
    "Owner": _OWNER,
}
_DELETED: Readers = {
    "Key": None,
    "VersionId": None,
    "DeleteMarker": _is_true,
    "DeleteMarkerVersionId": None,
}
_ERROR: Readers = {"Key": None, "VersionId": None, "Code": None, "Message": None}
_LISTING: Lists = {"Contents": ("Contents", _OBJECT)}
_DELETES: Lists = {"Deleted": ("Deleted", _DELETED), "Error": ("Errors", _ERROR)}


def _read_listing(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    _take_out(response_dict, customized_response_dict, "ListBucketResult", _LISTING)


def _read_deletes(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    _take_out(response_dict, customized_response_dict, "DeleteResult", _DELETES)


def _take_out(response: dict[str, Any], parsed: dict[str, Any], root_tag: str, lists: Lists) -> None:
    """Move the entries of these lists from the body of an answer to what is parsed of it.

    The entries of the first list, which is the long one, are read without an XML parser where they are all alike.
    """
    body = response["body"]
    if response["status_code"] != _OK or not body:
        return
    main_tag, (_, readers) = next(iter(lists.items()))
    try:
        try:
            uniform = read_uniform(body, main_tag)
            around = uniform.head + f"<{main_tag}/>".encode() + uniform.tail
            rest, found = _read_around(around, root_tag, lists, run=_rows(uniform, readers))
        except NotUniformError:
            rest, found = _read_around(body, root_tag, lists)
    except (ET.ParseError, ValueError, RecursionError, _UnexpectedError):
        return
    response["body"] = rest
    parsed.update(found)


def _rows(uniform: Uniform, readers: Readers) -> list[dict[str, Any]]:
    """Make the entries from the columns of their texts."""
    names: dict[str, dict[Path, Sequence[str]]] = {}
    for path, column in zip(uniform.paths, uniform.columns, strict=True):
        names.setdefault(path[0], {})[path[1:]] = column
    columns: list[Sequence[Any]] = []
    for name, parts in names.items():
        if name not in readers:
            raise NotUniformError
        reader = readers[name]
        if isinstance(reader, dict):
            if not all(len(path) == 1 and path[0] in reader for path in parts):
                raise NotUniformError
            inner = [path[0] for path in parts]
            columns.append(
                [dict(zip(inner, texts, strict=True)) for texts in zip(*parts.values(), strict=True)]
            )
        elif () not in parts:
            raise NotUniformError
        else:
            columns.append([reader(text) for text in parts[()]] if reader else parts[()])
    return [dict(zip(names, values)) for values in zip(*columns, strict=True)]  # noqa: B905 - as many as names


def _read_around(
    body: bytes, root_tag: str, lists: Lists, run: list[dict[str, Any]] | None = None
) -> tuple[bytes, dict[str, list[dict[str, Any]]]]:
    """Give a body without the entries of these lists, and the entries.

    Where the ``run`` of the first list is read already, one empty entry stands for it in the body.
    """
    root = _parse(body)
    space, brace, name = root.tag.rpartition("}")
    if name != root_tag:
        raise _UnexpectedError
    prefix = space + brace
    known = {
        f"{prefix}{tag}": (member, _in_space(prefix, readers)) for tag, (member, readers) in lists.items()
    }
    run_tag = f"{prefix}{next(iter(lists))}"
    if run is not None and sum(child.tag == run_tag for child in root) != 1:
        raise NotUniformError
    rest = []
    found: dict[str, list[dict[str, Any]]] = {}
    for child in root:
        if child.tag not in known:
            if child.tag.rpartition("}")[2] in lists:
                raise _UnexpectedError  # of another namespace, which botocore does not mind
            rest.append(child)
            continue
        member, readers = known[child.tag]
        if run is not None and child.tag == run_tag:
            found[member] = run
        else:
            found.setdefault(member, []).append(_read(child, readers))
    root[:] = rest
    # A carriage return that came as a reference would be read as a line feed if it were written as it is.
    return ET.tostring(root).replace(b"\r", b"&#13;"), found


def _parse(body: bytes) -> ET.Element:
    # As botocore does: UTF-8, whatever the XML declaration says.
    parser = ET.XMLParser(target=ET.TreeBuilder(), encoding="utf-8")  # noqa: S314 - parser and body are botocore's
    return ET.XML(body, parser=parser)


def _in_space(prefix: str, readers: Readers) -> Named:
    return {
        f"{prefix}{name}": (name, _in_space(prefix, reader) if isinstance(reader, dict) else reader)
        for name, reader in readers.items()
    }


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
