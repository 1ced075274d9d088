"""What a pointer names is read strictly: what could be taken in two ways is refused, and so nothing is deleted."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.pointers import Named, UnreadablePointerError, read_names
from s3_retention.core.policy import Pointer

BUCKET = "acme"


def pointer(**fields: Any) -> Pointer:
    return Pointer(key="dumps/latest", **fields)


def names(body: bytes | str, **fields: Any) -> list[str]:
    raw = body.encode() if isinstance(body, str) else body
    return read_names(pointer(**fields), raw, bucket=BUCKET)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("dumps/a", ["dumps/a"]),
        ("dumps/a\ndumps/b\n", ["dumps/a", "dumps/b"]),
        ("dumps/a\r\n\r\n\ndumps/b", ["dumps/a", "dumps/b"]),
        ("\ufeffdumps/a", ["dumps/a"]),
        (" dumps/a \n", [" dumps/a "]),
        ("dumps/a\u2028b\x85c\x0bd", ["dumps/a\u2028b\x85c\x0bd"]),
        ("dumps/a%20b", ["dumps/a%20b"]),
        ("dumps/2026-01/", ["dumps/2026-01/"]),
        ("s3://acme/dumps/a", ["dumps/a"]),
        ("s3a://acme/dumps/a\ns3n://acme/b/", ["dumps/a", "b/"]),
        ("s3://other/dumps/a\ndumps/b", ["dumps/b"]),
    ],
)
def test_lines_name_keys_as_they_are_written(body: str, found: list[str]) -> None:
    assert names(body) == found


def test_what_stands_before_a_name_is_put_before_all_but_urls() -> None:
    assert names("a\ns3://acme/b", base="dumps/") == ["dumps/a", "b"]


@pytest.mark.parametrize(
    ("document", "path", "found"),
    [
        ("dumps/a", [], ["dumps/a"]),
        ({"current": "dumps/a", "previous": "dumps/b"}, ["current"], ["dumps/a"]),
        ({"files": ["a", "b"]}, ["files", "*"], ["a", "b"]),
        ({"files": [{"key": "a", "size": 1}, {"key": "b"}]}, ["files", "*", "key"], ["a", "b"]),
        ({"by_name": {"x": "a", "y": "b"}}, ["by_name", "*"], ["a", "b"]),
        ([["a"], ["b", "c"], []], ["*", "*"], ["a", "b", "c"]),
        ({"*": {"k": "a"}}, ["*", "k"], ["a"]),
    ],
)
def test_json_names_the_texts_at_a_path(document: Any, path: list[str], found: list[str]) -> None:
    assert names(json.dumps(document), format="json", path=path) == found


@pytest.mark.parametrize(
    ("body", "fields", "says"),
    [
        (b"\x1f\x8b\x08", {}, "is not UTF-8"),
        ("", {}, "names nothing of this bucket"),
        ("\n\r\n", {}, "names nothing of this bucket"),
        ("s3://other/a", {}, "names nothing of this bucket"),
        (
            "https://acme.s3.amazonaws.com/a",
            {},
            "names 'https://acme.s3.amazonaws.com/a', which is not s3://",
        ),
        ("S3://acme/a", {}, "which is not s3://bucket/key"),
        ("s3://acme/", {}, "which is not s3://bucket/key"),
        ("s3://acme", {}, "which is not s3://bucket/key"),
        ("a\0b", {}, "which is no key"),
        ("{", {"format": "json"}, "is no JSON document"),
        ("[" * 100_000, {"format": "json"}, "is no JSON document"),
        ('{"a": "x"} trailing', {"format": "json", "path": ["a"]}, "is no JSON document"),
        ('{"a": "x", "a": "y"}', {"format": "json", "path": ["a"]}, "has a field twice"),
        ('{"a": {"b": 1, "b": 2}, "c": "x"}', {"format": "json", "path": ["c"]}, "has a field twice"),
        ('{"a": "x"}', {"format": "json", "path": ["b"]}, "has nothing at b"),
        ('{"a": ["x"]}', {"format": "json", "path": ["a"]}, "has no text at a"),
        ('{"a": "x"}', {"format": "json", "path": ["a", "*"]}, r"has nothing at a\.\*"),
        ('{"a": null}', {"format": "json", "path": ["a"]}, "has no text at a"),
        ('["x", 1]', {"format": "json", "path": ["*"]}, r"has no text at \*"),
        ('[{"k": "x"}, {}]', {"format": "json", "path": ["*", "k"]}, r"has nothing at \*\.k"),
        ("1", {"format": "json"}, "has no text at its top"),
        ('{"a": []}', {"format": "json", "path": ["a", "*"]}, "names nothing of this bucket"),
        ('[""]', {"format": "json", "path": ["*"], "base": "dumps/"}, "which is no key"),
    ],
)
def test_what_is_not_certain_is_refused_with_what_is_wrong(
    body: bytes | str, fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(UnreadablePointerError, match=says):
        names(body, **fields)


@given(body=st.binary(max_size=60), fields=st.sampled_from([{}, {"format": "json", "path": ["*"]}]))
def test_any_bytes_give_names_or_are_refused(body: bytes, fields: dict[str, Any]) -> None:
    with suppress(UnreadablePointerError):
        assert names(body, **fields)


@given(keys=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)))
def test_json_gives_every_key_back_byte_for_byte(keys: list[str]) -> None:
    plain = [key for key in keys if "://" not in key]
    if plain:
        assert names(json.dumps(plain), format="json", path=["*"]) == plain


def test_a_key_that_ends_in_a_carriage_return_is_kept_by_a_line_that_names_it() -> None:
    named = Named()
    named.add(0, names("dumps/a\r\ndumps/b\r"))
    named.add(1, names(json.dumps("dumps/c\r"), format="json"))
    for key in ("dumps/a", "dumps/a\r", "dumps/b\r", "dumps/b\r/x", "dumps/c\r"):
        assert named.keeps(key)
    for key in ("dumps/c", "dumps/a\r\r", "dumps/d\r"):
        assert not named.keeps(key)


def test_the_pointers_themselves_stay() -> None:
    named = Named(frozenset({"dumps/latest"}))
    assert named.keeps("dumps/latest")
    assert not named.by("dumps/latest")


def test_a_name_keeps_its_object_and_a_folder_all_that_lies_in_it() -> None:
    named = Named()
    named.add(0, ["dumps/a", "dumps/2026-01/"])
    named.add(1, ["dumps/2026-01/x"])
    assert named.by("dumps/a") == 0b01
    assert named.by("dumps/2026-01/y") == 0b01
    assert named.by("dumps/2026-01/x/z") == 0b11
    # A folder is written without its slash, too, and what is no folder of anything names itself alone.
    assert named.by("dumps/a/b") == 0b01
    for other in ("dumps/ab", "dumps/2026-01", "dumps/2026-010/y", "x/dumps/2026-01/y", "/dumps/a", ""):
        assert named.by(other) == 0
