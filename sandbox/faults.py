"""What can go wrong between a client and a store: the faults, and the rules that say which requests they hit.

Values only; `sandbox.fault_server` puts them into effect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


class Way(str, Enum):
    """In which way a request fails."""

    ANSWER = "another answer"  # `status`, `headers` and `body` come in place of the store's
    KEYS = "errors for keys"  # the store's answer, with an `<Error>` for each of `keys`
    UNNAMED = "keys left out"  # the store's answer, which names none of `keys`
    RESET = "reset"  # the connection is reset, with RST
    CUT = "cut"  # half of the store's answer, then the end
    SILENCE = "silence"  # no answer for as long as the client waits


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to fail. ``is_acted_on`` says whether the store gets the request before that.

    With `KEYS` and `UNNAMED` it says so of the keys that are named; the others reach the store always.
    """

    way: Way
    is_acted_on: bool = False
    status: int = 200
    code: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    keys: frozenset[str] = frozenset()


def refusing(status: int, code: str, *, is_acted_on: bool = False, inside: str = "", **headers: str) -> Fault:
    """An error answer as S3 writes it; `inside` is XML beside code and message. `_` in a header stands for `-`."""
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>a fault was asked for'
        f"</Message>{inside}<RequestId>FAULT</RequestId></Error>"
    ).encode()
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Fault(Way.ANSWER, is_acted_on, status, code, named, body)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came: ``head`` is everything up to and with the empty line."""

    method: str
    target: str
    head: bytes
    body: bytes

    @property
    def operation(self) -> str:
        """The name of the S3 operation, or the bare method where it is none that the product asks for."""
        parts = urlsplit(self.target)
        names = {word.partition("=")[0] for word in parts.query.split("&")}
        has_key = "/" in parts.path.strip("/") or (parts.path.count("/") > 1 and not parts.path.endswith("/"))
        if self.method == "POST" and "delete" in names:
            return "DeleteObjects"
        if self.method == "GET" and "list-type" in names:
            return "ListObjectsV2"
        if self.method == "GET" and "versioning" in names:
            return "GetBucketVersioning"
        if self.method == "DELETE" and has_key:
            return "DeleteObject"
        if self.method == "HEAD":
            return "HeadObject" if has_key else "HeadBucket"
        return self.method

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the request names; of a listing and of a bucket none."""
        if self.operation == "DeleteObjects":
            named = ET.fromstring(self.body).iterfind(f"{NAMESPACE}Object/{NAMESPACE}Key")  # noqa: S314 - our own
            return tuple(one.text or "" for one in named)
        if self.operation in {"DeleteObject", "HeadObject"}:
            return (unquote(urlsplit(self.target).path).split("/", 2)[2],)
        return ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Which requests meet a fault: all of these must hold.

    ``nth`` counts, from 1, the requests that the rest of the rule is true of; ``probability`` is drawn last.
    """

    fault: Fault
    operation: str | None = None
    method: str | None = None
    key: str | None = None
    nth: frozenset[int] | None = None
    probability: float = 1.0

    def names(self, request: Request) -> bool:
        """Say whether operation, method and key are those of the rule."""
        return (
            self.operation in {None, request.operation}
            and self.method in {None, request.method}
            and (self.key is None or self.key in request.keys)
        )


@dataclass(frozen=True, slots=True)
class Passed:
    """What the server saw of one request. ``status`` is what the client was told: None where it was told nothing.

    ``is_acted_on``: the request, or a part of it, reached the store, and the store answered.
    """

    operation: str
    keys: tuple[str, ...]
    status: int | None
    is_acted_on: bool
    fault: Fault | None = field(default=None, repr=False)


def status_of(head: bytes) -> int:
    """The status of the first line of an answer."""
    found = re.match(rb"HTTP/1\.[01] (\d{3})", head)
    if found is None:
        raise ValueError(f"no status line: {head[:80]!r}")
    return int(found[1])
