"""Writes the long list of a DeleteObjects request in place of botocore's serializer, and leaves all else to it.

Of what the client does for a key, botocore's checks and serializer are a good part. They see the first key alone; the
others are written into the body that they made, before it is checksummed and signed. What is sent is, byte for byte,
what botocore would have sent.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SET_ASIDE = "s3_retention_objects"
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xD;", "\n": "&#xA;"}
_SPECIAL = tuple(_ESCAPES)


class Identifiers(list[Any]):
    """The objects of a request: each a ``Key`` that XML can carry, and a ``VersionId`` or an ``ETag`` behind it."""


def write_quickly(client: S3Client) -> None:
    """Let a client write ``Identifiers`` quickly. Doing it twice does nothing more."""
    events = client.meta.events
    events.register("before-parameter-build.s3.DeleteObjects", _set_aside, unique_id="s3_retention.set_aside")
    events.register("before-call.s3.DeleteObjects", _write, unique_id="s3_retention.write")


def _set_aside(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    delete = params.get("Delete", {})
    objects = delete.get("Objects")
    if isinstance(objects, Identifiers):
        context[_SET_ASIDE] = objects
        params["Delete"] = {**delete, "Objects": objects[:1]}


def _write(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    objects = context.pop(_SET_ASIDE, ())
    if len(objects) < 2:  # noqa: PLR2004 - what botocore wrote is all of it
        return
    body: bytes = params["body"]
    end = body.rindex(b"</Object>") + len(b"</Object>")
    params["body"] = body[:end] + _written(objects[1:]).encode() + body[end:]


def _written(objects: list[dict[str, str]]) -> str:
    plain = "".join(text for one in objects for text in one.values())
    if any(special in plain for special in _SPECIAL):
        objects = [{name: _escape(text) for name, text in one.items()} for one in objects]
    return "".join([_template(tuple(one)) % tuple(one.values()) for one in objects])


@lru_cache(maxsize=16)
def _template(names: tuple[str, ...]) -> str:
    return f"<Object>{''.join(f'<{name}>%s</{name}>' for name in names)}</Object>"


def _escape(text: str) -> str:
    for special, escaped in _ESCAPES.items():
        if special in text:
            text = text.replace(special, escaped)
    return text
