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

# Where an XML parser (https://www.w3.org/TR/xml/#charsets) would refuse a text; or, by a carriage return or the end of
# a CDATA section, would do more than to copy it. Other markup breaks the pattern.
_CONTROL = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0D})
_NO_CHAR = re.compile(b"\xef\xbf[\xbe\xbf]")
_QUOTES = ("&#34;", "&quot;")
# Without another encoding, text is UTF-8; other markup around the entries could say that they mean something else.
_DECLARATION = re.compile(rb'<\?xml version="1\.0"(?: encoding="(?i:utf-8)")?\?>')
_TOKEN = re.compile(r"<(/?)([A-Za-z]+)>([^<]*)")
_TEXT = "([^<]*)"
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
    is_more_than_text = (
        b"\r" in raw
        or (b"]" in raw and b"]]>" in raw)
        or not (raw.isascii() or _NO_CHAR.search(raw) is None)
        or len(raw.translate(None, _CONTROL)) != len(raw)
    )
    if is_more_than_text:
        raise NotUniformError
    try:
        run = raw.decode()
    except UnicodeDecodeError:
        raise NotUniformError from None
    # ETags come with their quotes written as references: text may have them as they are.
    for quote in _QUOTES:
        if quote in _first(run, tag):
            run = run.replace(quote, '"')
    paths, pattern, length = _pattern_of(
        tuple((bool(close), name) for close, name, _ in _TOKEN.findall(_first(run, tag)))
    )
    found = pattern.findall(run)
    columns: list[Sequence[str]] = list(zip(*found, strict=True)) if len(paths) > 1 else [found]
    # What was found does not overlap: when it is as long as the run, nothing stands between.
    if sum(sum(map(len, column)) for column in columns) + len(found) * length != len(run):
        raise NotUniformError
    if "&" in run:
        columns = [[_unescape(text) if "&" in text else text for text in column] for column in columns]
    return Uniform(head, tail, paths, columns)


def _first(run: str, tag: str) -> str:
    """Give the first entry of a run."""
    return run[: run.index(f"</{tag}>") + len(tag) + 3]


@lru_cache(maxsize=64)
def _pattern_of(tokens: tuple[tuple[bool, str], ...]) -> tuple[tuple[Path, ...], re.Pattern[str], int]:
    """Make the pattern of an entry from its tags; ``tokens`` are (is it an end, name) in order.

    Gives the paths of its texts, the pattern, and the length of an entry without its texts.
    """
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
                pattern += _TEXT
        elif path[-1:] == (name,):
            path = path[:-1]
            pattern += f"</{name}>"
        else:
            raise NotUniformError
    # A name that comes twice is for botocore to refuse; an entry without children has no column to count it by.
    if path or () in leaves or not leaves or len(set(opened)) != len(opened):
        raise NotUniformError
    return tuple(leaves), re.compile(pattern), len(pattern) - len(leaves) * len(_TEXT)


def _unescape(text: str) -> str:
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
