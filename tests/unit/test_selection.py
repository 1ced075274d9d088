from __future__ import annotations

import re
import time
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from s3_retention.core.globs import MAX_DEEP, reaches, read_glob
from s3_retention.core.policy import Select
from s3_retention.core.selection import Selection, compile_glob, takes_every_key


def selects(key: str, *, prefix: str = "", **select: Any) -> bool:
    return Selection(Select(**select), prefix=prefix).match(key) is not None


@pytest.mark.parametrize(
    ("glob", "taken", "left"),
    [
        ("exports/*.json", ["exports/a.json", "exports/.json", "exports/a b+c.json"], ["exports/a/b.json"]),
        ("exports/*/c-*.json", ["exports/2026/c-1.json"], ["exports/c-1.json", "exports/a/b/c-1.json"]),
        (
            "exports/**",
            ["exports/a", "exports/a/b", "exports/"],
            ["exports", "exports-archive/a", "a/exports/b"],
        ),
        ("exports/**.json", ["exports/a/b.json", "exports/.json"], ["exports/a.jsonx"]),
        ("**/keep/*", ["keep/a", "x/keep/a", "x/y/keep/a", "/keep/a"], ["xkeep/a", "keep/a/b"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b", "a//b"], ["ab", "a/xb", "a/b/c"]),
        ("**", ["", "a", "a/b", "\n/"], []),
        ("*", ["", "a", "a\nb"], ["a/b", "/"]),
        ("a?c", ["abc", "a\nc", "aéc", "a😀c"], ["ac", "a/c", "abbc"]),
        ("[ab]x", ["ax", "bx"], ["cx", "abx", "x"]),
        ("[!ab]x", ["cx", "\nx"], ["ax", "/x", "x"]),
        ("[^ab]x", ["cx"], ["ax", "/x"]),
        ("[a-c]", ["a", "b", "c"], ["d", "-", "A"]),
        ("[+-9]", ["0", "."], ["/"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[!]a]", ["b"], ["]", "a"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[*]", ["*"], ["a"]),
        ("[[]", ["["], ["]"]),
        ("[\\w]", ["\\", "w"], ["a"]),
        ("[&&~~||^]", ["&", "~", "|", "^"], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
        ("a\\*b", ["a\\b", "a\\xb"], ["a*b"]),
        ("{a,b}", ["{a,b}"], ["a"]),
        ("É", ["É"], ["E\u0301", "é"]),
        ("A", ["A"], ["a"]),
        ("(a|b)+$", ["(a|b)+$"], ["a"]),
    ],
)
def test_a_glob_takes_whole_keys_and_stars_stay_between_slashes(
    glob: str, taken: list[str], left: list[str]
) -> None:
    pattern = compile_glob(glob)
    assert [key for key in taken if not pattern.fullmatch(key)] == []
    assert [key for key in left if pattern.fullmatch(key)] == []


@pytest.mark.parametrize(
    "glob", ["", "[", "[]", "[!]", "a[b", "[z-a]", "[/]", "[a/]", "[[:alpha:]]", "**a**b**c**d"]
)
def test_a_glob_that_cannot_be_meant_is_refused(glob: str) -> None:
    with pytest.raises(ValueError, match=r"glob|class|range|its|wildcards"):
        read_glob(glob)


def reference(glob: str, key: str) -> bool:
    """Match by trying everything: a second opinion that shares no line with the translator."""

    @cache
    def matches(at: int, place: int) -> bool:  # noqa: PLR0911 - one return for each token
        rest, left = glob[at:], key[place:]
        if not rest:
            return not left
        if rest.startswith("**/") and (at == 0 or glob[at - 1] == "/"):
            slashes = [number for number, char in enumerate(left) if char == "/"]
            return matches(at + 3, place) or any(matches(at + 3, place + slash + 1) for slash in slashes)
        if rest.startswith("**"):
            return matches(at + 2, place) or (bool(left) and matches(at, place + 1))
        if rest[0] == "*":
            return matches(at + 1, place) or (bool(left) and left[0] != "/" and matches(at, place + 1))
        if not left or (rest[0] == "/") != (left[0] == "/"):
            return False
        if rest[0] == "[":
            negated = rest[1] == "!"
            members = rest[1 + negated : rest.index("]")]
            return ((left[0] in members) != negated) and matches(at + 2 + negated + len(members), place + 1)
        return rest[0] in ("?", left[0]) and matches(at + 1, place + 1)

    return matches(0, 0)


PARTS = st.sampled_from(["a", "b", "/", "*", "**", "**/", "/**/", "?", "[ab]", "[!a]", "\n", "."])
GLOBS = st.lists(PARTS, min_size=1, max_size=8).map("".join).filter(lambda glob: "***" not in glob)
KEYS = st.text(alphabet="ab/\n.", max_size=10)


@given(GLOBS, KEYS)
@example("*a*b*a/**", "aabba/")
@example("a**/b", "a/b")
def test_a_glob_means_what_trying_everything_says(glob: str, key: str) -> None:
    try:
        pattern = compile_glob(glob)
    except ValueError as error:
        assert f"more than {MAX_DEEP} wildcards" in str(error)  # noqa: PT017 - any other refusal is a fault
        return
    assert (pattern.fullmatch(key) is not None) == reference(glob, key)


@given(GLOBS, KEYS, st.integers(min_value=0, max_value=10))
def test_a_prefix_of_a_matching_key_is_never_called_out_of_reach(glob: str, key: str, length: int) -> None:
    try:
        tokens = read_glob(glob)
    except ValueError:
        return
    if compile_glob(glob).fullmatch(key):
        assert reaches(tokens, key[:length])


@pytest.mark.parametrize(
    ("glob", "prefix", "reached"),
    [
        ("exports/*.json", "exports/", True),
        ("exports/*.json", "exports/2026/", False),
        ("exports/**", "exports/2026/", True),
        ("**/x", "exports/", True),
        ("exports", "exports/", False),
        ("exports/*", "export", True),
        ("export/*", "exports/", False),
        ("e?port[r-t]/*", "exports/", True),
        ("", "", True),
    ],
)
def test_a_glob_is_held_against_the_prefix(glob: str, prefix: str, reached: bool) -> None:
    assert reaches(read_glob(glob) if glob else (), prefix) is reached


@pytest.mark.parametrize(
    ("glob", "key"),
    [
        ("*a*a*a*a*a*a*a*a*b", "a" * 1024),
        ("**/a/**/a/**/b", "a/" * 512),
        ("**a**a**b", "a" * 1024),
        ("**/*a*a*a*a*a*b", "a/" * 512),
    ],
)
def test_a_hostile_key_costs_no_more_than_a_moment(glob: str, key: str) -> None:
    pattern = compile_glob(glob)
    before = time.process_time()
    assert pattern.fullmatch(key) is None
    assert time.process_time() - before < 5


def test_exclude_takes_out_of_globs_and_of_a_regex() -> None:
    for select in ({"include": ("a/**",)}, {"regex": "a/.*"}):
        assert selects("a/b", exclude=("**/keep*",), **select)
        assert not selects("a/keep.txt", exclude=("**/keep*",), **select)


def test_a_regex_matches_the_whole_key_or_nothing() -> None:
    assert selects("exports/1.json", regex=r"exports/\d\.json")
    assert not selects("exports/1.json.bak", regex=r"exports/\d\.json")
    assert not selects("x/exports/1.json", regex=r"exports/\d\.json")
    assert not selects("exports/1.json\n", regex=r"exports/\d\.json$")


def test_a_dot_in_a_regex_matches_a_line_break_only_when_it_says_so() -> None:
    assert not selects("a\nb", regex="a.b")
    assert selects("a\nb", regex="(?s)a.b")


def test_a_sibling_of_the_prefix_is_never_selected() -> None:
    assert selects("exports/a", prefix="exports/", include=("**",))
    assert not selects("exports-archive/a", prefix="exports/", include=("**",))
    assert not selects("exports-archive/a", include=("exports/**",))


def test_sizes_are_bounds_that_belong_to_the_selection() -> None:
    selection = Selection(Select(include=("**",), min_size=10, max_size=20))
    assert [selection.size_reason(size) for size in (9, 10, 20, 21)] == ["too_small", None, None, "too_large"]
    unbounded = Selection(Select(include=("**",)))
    assert unbounded.size_reason(0) is unbounded.size_reason(2**50) is None
    assert Selection(Select(include=("**",), max_size=0)).size_reason(1) == "too_large"


def test_the_match_carries_the_groups_of_the_regex() -> None:
    match = Selection(Select(regex="exports/(?P<customer>[^/]+)")).match("exports/é")
    assert isinstance(match, re.Match)
    assert match["customer"] == "é"


def test_what_takes_every_usual_key_is_known() -> None:
    assert takes_every_key(Select(include=("**",)))
    assert takes_every_key(Select(regex=".*", exclude=("README",)))
    assert not takes_every_key(Select(include=("*/**",)))
    assert not takes_every_key(Select(regex=".*json"))
