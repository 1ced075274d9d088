"""Reads a run of list entries that are all written alike, at a tenth of the cost of an XML parser.

A server writes each entry of a page by the same words in the same order. The first entry gives the pattern, and
the whole run must follow it, byte for byte; else nothing is read here, and an XML parser says what the body means.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from s3_retention.s3.keys import xml_can_carry

if TYPE_CHECKING:
    from collections.abc import Sequence

# Where an XML parser would do more than to copy: other markup, and a carriage return, which it reads as a line feed.
_MORE_THAN_TEXT = (b"<!", b"<?", b"]]>", b"\r", b"\xef\xbf\xbe", b"\xef\xbf\xbf")
# No XML 1.0 (https://www.w3.org/TR/xml/#charsets) has these; they are single bytes in UTF-8.
_CONTROL = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0D})
# Without another encoding, text is UTF-8; other markup around the entries could say that they mean something else.
_DECLARATION = re.compile(rb'<\?xml version="1\.0"(?: encoding="(?i:utf-8)")?\?>')
_TOKEN = re.compile(r"<(/?)([A-Za-z]+)>([^<]*)")
_REFERENCE = re.compile(r"&(?:([a-z]+)|#([0-9]{1,7})|#x([0-9a-fA-F]{1,6}));|&")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_CARRIAGE_RETURN = 0x0D
_MAX_TOKENS = 40


Path = tuple[str, ...]


class NotUniformError(Exception):
    """The entries are not of one form, or hold more than plain text."""


class Uniform(NamedTuple):
    """Entries of one form: the body before and after them, and their texts by path, one column for each leaf.

    A path is the names of the elements from below the entry: ``("Owner", "ID")``.
    """

    head: bytes
    tail: bytes
    paths: tuple[Path, ...]
    columns: Sequence[Sequence[str]]


def read_uniform(body: bytes, tag: str) -> Uniform:
    """Read the one run of ``<tag>`` entries in a body. Raises ``NotUniformError``.

    What stands around the run is barely looked at: an XML parser must find the run's place to be a list's.
    """
    start, end = body.find(f"<{tag}>".encode()), body.rfind(f"</{tag}>".encode())
    if start < 0 or end < start:
        raise NotUniformError
    end += len(tag) + 3
    head, raw, tail = body[:start], body[start:end], body[end:]
    around = _DECLARATION.sub(b"", head, count=1).lstrip() + tail
    if not around.startswith(b"<") or b"<?" in around or b"<!" in around:
        raise NotUniformError
    if any(more in raw for more in _MORE_THAN_TEXT) or len(raw.translate(None, _CONTROL)) != len(raw):
        raise NotUniformError
    try:
        # ETags come with their quotes written as references: text may have them as they are.
        run = raw.decode().replace("&#34;", '"').replace("&quot;", '"')
    except UnicodeDecodeError:
        raise NotUniformError from None
    first = run[: run.index(f"</{tag}>") + len(tag) + 3]
    paths, pattern = _pattern_of(tuple((bool(close), name) for close, name, _ in _TOKEN.findall(first)))
    rows = []
    place = 0
    for match in pattern.finditer(run):
        if match.start() != place:
            raise NotUniformError
        place = match.end()
        rows.append(match.groups())
    if place != len(run):
        raise NotUniformError
    columns: list[Sequence[str]] = list(zip(*rows, strict=True))
    if "&" in run:
        columns = [[unescape(text) if "&" in text else text for text in column] for column in columns]
    return Uniform(head, tail, paths, columns)


@lru_cache(maxsize=64)
def _pattern_of(tokens: tuple[tuple[bool, str], ...]) -> tuple[tuple[Path, ...], re.Pattern[str]]:
    """Make the pattern of an entry from its tags; ``tokens`` are (is it an end, name) in order."""
    if len(tokens) > _MAX_TOKENS:
        raise NotUniformError
    leaves: list[Path] = []
    opened: list[Path] = []
    path: Path = ()
    pattern = ""
    for (ends, name), (next_ends, _) in zip(tokens, (*tokens[1:], (False, "")), strict=True):
        if not ends:
            path = (*path, name)
            opened.append(path)
            pattern += f"<{name}>"
            if next_ends:
                leaves.append(path[1:])
                pattern += "([^<]*)"
        elif path[-1:] == (name,):
            path = path[:-1]
            pattern += f"</{name}>"
        else:
            raise NotUniformError
    # A name that comes twice is for botocore to refuse; an entry without children has no column to count it by.
    if path or () in leaves or not leaves or len(set(opened)) != len(opened):
        raise NotUniformError
    return tuple(leaves), re.compile(pattern)


def unescape(text: str) -> str:
    """Resolve the references of a text as an XML parser does. Raises ``NotUniformError`` for any it would not take."""
    return _REFERENCE.sub(_resolve, text)


def _resolve(match: re.Match[str]) -> str:
    name, decimal, hexadecimal = match.groups()
    if name in _NAMED:
        return _NAMED[name]
    if name is not None or (decimal or hexadecimal) is None:
        raise NotUniformError
    number = int(decimal) if decimal else int(hexadecimal, base=16)
    if number > sys.maxunicode or (number != _CARRIAGE_RETURN and not xml_can_carry(chr(number))):
        raise NotUniformError
    return chr(number)
