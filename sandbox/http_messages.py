"""HTTP/1.1 messages as bytes, as far as a server between a client and a store has to know them (RFC 9112)."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING

from sandbox.faults import Request, status_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BODILESS = frozenset({204, 304})
_MAX_LINE = 65_536


def read_request(stream: IO[bytes]) -> Request | None:
    """Read one request; None where the client has left."""
    head = _read_head(stream)
    if not head:
        return None
    method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    length = int(dict(headers_of(head)).get("content-length", "0"))
    return Request(method, target, head, stream.read(length))


def read_answer(stream: IO[bytes], *, has_body: bool) -> tuple[bytes, bytes]:
    """Read one answer of the store; one that comes in chunks is put together, and gets its length.

    Raises ``ConnectionError`` where the store has left.
    """
    head = _read_head(stream)
    if not head:
        raise ConnectionError("the store has closed the connection")
    headers = dict(headers_of(head))
    if not has_body or status_of(head) in _BODILESS:
        return head, b""
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return head, stream.read(int(headers.get("content-length", "0")))
    body = b"".join(_chunks(stream))
    head = re.sub(rb"(?i)transfer-encoding:[^\r]*", b"Content-Length: %d" % len(body), head)
    return head, body


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while size := int(stream.readline(_MAX_LINE).split(b";")[0], 16):
        yield stream.read(size)
        stream.readline(_MAX_LINE)
    stream.readline(_MAX_LINE)


def _read_head(stream: IO[bytes]) -> bytes:
    lines: list[bytes] = []
    while (line := stream.readline(_MAX_LINE)) not in {b"", b"\r\n"}:
        lines.append(line)
    return b"".join([*lines, b"\r\n"]) if lines and line else b""


def headers_of(head: bytes) -> Sequence[tuple[str, str]]:
    """The headers of a message in their order, names in lower case."""
    lines = head.decode("latin-1").split("\r\n")[1:-2]
    return [
        (name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)
    ]
