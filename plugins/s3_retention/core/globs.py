"""Globs over whole S3 keys: read once, turned into a regular expression, and held against a prefix.

* ``*`` stands for any run of characters without a slash, the empty run included; ``**`` crosses slashes.
* ``**/`` at the start of a segment stands for any number of folders, none included (as in .gitignore).
* ``?`` is one character but no slash; ``[abc]``, ``[a-z]``, ``[!a-z]`` and ``[^a-z]`` are classes, which
  never match a slash either. ``[*]``, ``[?]`` and ``[[]`` are the characters themselves.
* Everything else is itself: backslash, braces, dots, line breaks. Case counts; a key is never normalised.

fnmatch is no help here: its ``*`` crosses slashes, it folds case on some systems, and it takes an unclosed
``[`` for a letter, so that a slip of the pen selects something else in silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from itertools import count, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The places of a glob that can be tried at any length. Each multiplies the work for a key that does not
# match, and keys come from strangers: at three, the worst key of 1,024 bytes costs well under a second.
MAX_DEEP = 3


class Kind(Enum):
    """What a token of a glob stands for."""

    LITERAL = "the character itself"
    ONE = "?"
    CLASS = "[...]"
    STAR = "*"
    DEEP = "**"
    FOLDERS = "**/ at the start of a segment"


@dataclass(frozen=True, slots=True)
class Token:
    """One step of a glob. ``text`` is the character of a LITERAL, the expression of a CLASS, else empty."""

    kind: Kind
    text: str = ""


SLASH = Token(Kind.LITERAL, "/")
_EXPRESSIONS = {
    Kind.ONE: "[^/]",
    Kind.STAR: "[^/]*",
    Kind.DEEP: "(?s:.*)",
    Kind.FOLDERS: "(?:(?s:.*)/)?",
}


def read_glob(glob: str) -> tuple[Token, ...]:
    """Split a glob into tokens. Raises ValueError, with the fix, when it is empty, unclosed or too costly."""
    if not glob:
        raise ValueError("is an empty glob, which matches no object; write a pattern such as exports/*.json")
    tokens = tuple(_tokens(glob))
    if sum(_deep(segment) for segment in _segments(tokens)) > MAX_DEEP:
        raise ValueError(f"has more than {MAX_DEEP} wildcards around '**'; split it into several globs")
    return tokens


def _tokens(glob: str) -> Iterator[Token]:
    at = 0
    while at < len(glob):
        char = glob[at]
        if char == "*":
            stars = len(glob) - at - len(glob[at:].lstrip("*"))
            starts_segment = at == 0 or glob[at - 1] == "/"
            at += stars
            if stars == 1:
                yield Token(Kind.STAR)
            elif starts_segment and glob[at : at + 1] == "/":
                at += 1
                yield Token(Kind.FOLDERS)
            else:
                yield Token(Kind.DEEP)
        elif char == "[":
            end = _class_end(glob, at)
            yield Token(Kind.CLASS, _class_expression(glob[at + 1 : end]))
            at = end + 1
        else:
            yield Token(Kind.ONE) if char == "?" else Token(Kind.LITERAL, char)
            at += 1


def _class_end(glob: str, start: int) -> int:
    first = start + 1 + (glob[start + 1 : start + 2] in ("!", "^"))
    end = glob.find("]", first + 1)  # a ']' in the first place is a member
    if end < 0:
        raise ValueError("has a '[' without its ']'; close it, or write [[] for the character itself")
    return end


def _class_expression(body: str) -> str:
    negated = body[0] in "!^"
    members = body[negated:]
    if "[:" in members or "/" in members:
        raise ValueError(
            "has a class with '[:' or '/', which has no meaning here; name the characters one by one"
        )
    parts, at = [], 0
    while at < len(members):
        first, dash, last = members[at], members[at + 1 : at + 2], members[at + 2 : at + 3]
        if dash == "-" and last:
            if first > last:
                raise ValueError(f"has the range {first!r} to {last!r} in reverse; exchange the two")
            parts.append(f"{re.escape(first)}-{re.escape(last)}")
            at += 3
        else:
            parts.append(re.escape(first))
            at += 1
    # A range may run across the slash, and a negation always holds it.
    return f"(?!/)[{'^' * negated}{''.join(parts)}]"


def _segments(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Cut after each slash; the slash, or the FOLDERS that hold one, is the last token of its segment."""
    segment: list[Token] = []
    for token in tokens:
        segment.append(token)
        if token == SLASH or token.kind is Kind.FOLDERS:
            yield segment
            segment = []
    yield segment


def _deep(segment: Sequence[Token]) -> int:
    kinds = [token.kind for token in segment]
    if Kind.DEEP in kinds:
        return kinds.count(Kind.DEEP) + kinds.count(Kind.STAR)
    return kinds.count(Kind.FOLDERS)


def expression(tokens: Sequence[Token]) -> str:
    """Turn tokens into a regular expression for ``fullmatch``."""
    names = count()
    return "".join(_segment_expression(segment, names) for segment in _segments(tokens))


def _segment_expression(segment: Sequence[Token], names: Iterator[int]) -> str:
    parts = [_EXPRESSIONS.get(token.kind) or _exact(token) for token in segment]
    stars = [place for place, token in enumerate(segment) if token.kind is Kind.STAR]
    if any(token.kind is Kind.DEEP for token in segment):
        return "".join(parts)
    # Within one segment, the shortest match of each star but the last is always good enough. Committing to
    # it (a lookahead and its repetition: atomic groups came with Python 3.11) keeps a hostile key from
    # costing time to the power of the stars.
    for place, following in pairwise(stars):
        name = f"star{next(names)}"
        rest = "".join(parts[place + 1 : following])
        parts[place] = f"(?=(?P<{name}>[^/]*?{rest}))(?P={name})"
        parts[place + 1 : following] = [""] * (following - place - 1)
    return "".join(parts)


def _exact(token: Token) -> str:
    return token.text if token.kind is Kind.CLASS else re.escape(token.text)


def reaches(tokens: Sequence[Token], prefix: str) -> bool:
    """Tell whether any key that starts with ``prefix`` can match; if not, nothing under it is selected."""
    states = _spread({0}, tokens)
    for char in prefix:
        states = _spread({after for state in states for after in _step(state, char, tokens)}, tokens)
    return bool(states)


# A state is the number of tokens that are matched; -n - 1 is "inside the folders of token n".
def _spread(states: set[int], tokens: Sequence[Token]) -> set[int]:
    reached = set(states)
    for state in sorted(state for state in states if state >= 0):
        after = state
        while after < len(tokens) and tokens[after].kind in (Kind.STAR, Kind.DEEP, Kind.FOLDERS):
            after += 1
            reached.add(after)
    return reached


def _step(state: int, char: str, tokens: Sequence[Token]) -> Iterator[int]:
    if state < 0:
        yield state
        if char == "/":
            yield -state
        return
    if state == len(tokens):
        return
    token = tokens[state]
    if token.kind is Kind.FOLDERS:
        yield -state - 1
        if char == "/":
            yield state + 1
    elif token.kind is Kind.DEEP or (token.kind is Kind.STAR and char != "/"):
        yield state
    elif token.kind is not Kind.STAR and re.fullmatch(
        _EXPRESSIONS.get(token.kind) or _exact(token), char, re.DOTALL
    ):
        yield state + 1
