"""Which keys and sizes a policy selects, compiled once: the hot path of a listing of millions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from s3_retention.core.faults import clip
from s3_retention.core.globs import expression, read_glob

if TYPE_CHECKING:
    from s3_retention.core.policy import Select

# Keys as they are found in most buckets. Not one is strange on purpose: a rule that takes all of these would
# empty a bucket, whatever it says of line breaks.
_USUAL_KEYS = (
    "README",
    "a.txt",
    "exports/2026-06/customer-1842.json",
    "Logs/x/y/z_0.log.gz",
    "data/",
    "0/1/2",
)


def compile_regex(regex: str) -> re.Pattern[str]:
    """Compile an operator's regular expression, flags as written in it (``.`` does not match a line break).

    Raises ValueError, with the fix, for what Python cannot compile or warns of.
    """
    try:
        return re.compile(regex)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        # Warning: where warnings are errors, a doubtful set such as [[a] is one too.
        raise ValueError(f"does not compile: {clip(str(error))}; correct the regular expression") from error


def compile_glob(glob: str) -> re.Pattern[str]:
    """Compile a glob for ``fullmatch`` over a whole key. Raises ValueError as ``read_glob`` does."""
    return re.compile(expression(read_glob(glob)))


class Selection:
    """The compiled ``select`` of a policy, with the prefix that every key must have."""

    __slots__ = ("_exclude", "_include", "_max_size", "_min_size", "_prefix")

    def __init__(self, select: Select, *, prefix: str = "") -> None:
        """Compile the patterns. Raises ValueError for a pattern that a validated policy cannot hold."""
        patterns = [compile_glob(glob) for glob in select.include]
        if select.regex is not None:
            patterns.append(compile_regex(select.regex))
        self._include = tuple(pattern.fullmatch for pattern in patterns)
        self._exclude = tuple(compile_glob(glob).fullmatch for glob in select.exclude)
        self._prefix = prefix
        self._min_size = select.min_size or 0
        self._max_size = select.max_size

    def match(self, key: str) -> re.Match[str] | None:
        """Match a whole key: the match of the regex (its groups name the keep group) or of the first glob.

        None when the key lies outside the prefix, matches nothing, or is excluded.
        """
        if not key.startswith(self._prefix):
            return None
        for include in self._include:
            match = include(key)
            if match is not None:
                break
        else:
            return None
        for exclude in self._exclude:
            if exclude(key) is not None:
                return None
        return match

    def size_reason(self, size: int) -> str | None:
        """Return why an object of ``size`` bytes is kept, ``too_small`` or ``too_large``; else None."""
        if size < self._min_size:
            return "too_small"
        if self._max_size is not None and size > self._max_size:
            return "too_large"
        return None


def takes_every_key(select: Select) -> bool:
    """Tell whether include or regex takes every usual key. What exclude and the sizes spare does not count:
    a bucket that is emptied but for one README is emptied.
    """  # noqa: D205 - one thought
    bare = select.model_copy(update={"exclude": ()})
    return all(map(Selection(bare).match, _USUAL_KEYS))
