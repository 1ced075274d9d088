"""Which objects a pointer names: read strictly, since what is not read would not be kept."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from s3_retention.core.policy_pointers import EACH, PointerFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from s3_retention.core.policy_pointers import Pointer

MAX_BYTES = 4 * 1024**2
"""Of the pointers of a policy together: they are read into memory."""
MAX_SHOWN = 200
"""Characters of a name that are repeated."""
KEPT_POINTER = "kept_pointer"
"""The reason of an object that a pointer names, and of the pointer itself."""

# Spark and Hadoop write s3a and s3n for the same thing.
_URL = re.compile(r"s3[an]?://([^/]+)/(.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class UnreadablePointerError(ValueError):
    """What a pointer says cannot be told for certain; the text names what is wrong, and the fix."""


@dataclass(slots=True)
class Named:
    """What the pointers of a policy name. A name is that of an object, or of a folder with all that lies in it.

    A folder need not end in its slash: many tools write it without.
    """

    own: frozenset[str] = frozenset()
    """The keys of the pointers, which stay, too."""
    _names: dict[str, int] = field(default_factory=dict)

    def add(self, number: int, names: Iterable[str]) -> None:
        """Add what one pointer names."""
        for name in names:
            self._names[name] = self._names.get(name, 0) | 1 << number

    def by(self, key: str) -> int:
        """Give the pointers that name an object, as the bits of their numbers."""
        found = 0
        for name in names_of(key):
            found |= self._names.get(name, 0)
        return found

    def keeps(self, key: str) -> bool:
        """Tell whether an object stays."""
        return key in self.own or self.by(key) != 0


def names_of(key: str) -> Iterator[str]:
    """Give the names by which a pointer can mean an object: its key, and each folder that it lies in.

    One that ends in a carriage return can be meant without: a line may have lost it to its ending.
    """
    slashes = [place for place, char in enumerate(key) if char == "/"]
    for end in (*slashes, *(place + 1 for place in slashes), len(key)):
        yield key[:end]
        if key[:end].endswith("\r"):
            yield key[: end - 1]


def read_names(pointer: Pointer, body: bytes, *, bucket: str) -> list[str]:
    """Read the keys and folders that a pointer names in ``bucket``; names of other buckets are left out.

    Nothing is trimmed, decoded or guessed. Raises ``UnreadablePointerError`` where the text is no UTF-8, the document
    is not what the policy says, a name has an unknown form, or nothing is named: a manifest that is empty is one that
    is being written.
    """
    try:
        # A byte order mark is no part of the first name, nor of a document.
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadablePointerError("is not UTF-8; a compressed one cannot be read") from None
    found = _lines(text) if pointer.format is PointerFormat.LINES else _at_path(_document(text), pointer.path)
    names = [key for name in found if (key := _key(pointer, name, bucket)) is not None]
    if not names:
        raise UnreadablePointerError(
            "names nothing of this bucket; write it whole, or remove it from pointers"
        )
    return names


def _lines(text: str) -> list[str]:
    # By line feeds alone: a key may hold any of the other characters at which Python ends a line.
    return [line for one in text.split("\n") if (line := one.removesuffix("\r"))]


def _document(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_each_once)
    except UnreadablePointerError:
        raise
    except (ValueError, RecursionError):
        raise UnreadablePointerError("is no JSON document; correct it, or format") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UnreadablePointerError("has a field twice in one mapping; correct it")
    return found


def _at_path(document: Any, path: tuple[str, ...]) -> Iterator[str]:
    found = [document]
    for place, step in enumerate(path):
        found = [inner for one in found for inner in _inner(one, step, path[: place + 1])]
    for one in found:
        if not isinstance(one, str):
            raise UnreadablePointerError(f"has no text at {_spell(path)}; correct path, or the document")
        yield one


def _inner(value: Any, step: str, path: tuple[str, ...]) -> Iterable[Any]:
    if step == EACH and isinstance(value, list):
        return value
    if step == EACH and isinstance(value, dict):
        return value.values()
    if isinstance(value, dict) and step in value:
        return [value[step]]
    raise UnreadablePointerError(f"has nothing at {_spell(path)}; correct path, or the document")


def _spell(path: tuple[str, ...]) -> str:
    return ".".join(path)[:MAX_SHOWN] or "its top"


def _key(pointer: Pointer, name: str, bucket: str) -> str | None:
    url = _URL.fullmatch(name)
    if url is not None and url[2]:
        return url[2] if url[1] == bucket else None
    if _SCHEME.match(name):
        raise UnreadablePointerError(f"names {name[:MAX_SHOWN]!r}, which is not s3://bucket/key")
    key = pointer.base + name
    if not name or "\0" in key:
        raise UnreadablePointerError(f"names {name[:MAX_SHOWN]!r}, which is no key")
    return key
