"""Which keys may share a DeleteObjects request."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.s3.keys import can_go_together, refuse_unsent, xml_can_carry
from tests.factories import facts

if TYPE_CHECKING:
    from s3_retention.core.objects import ObjectFacts

ALONE = [
    "\x00",
    "\x01",
    "\x08",
    "\x0b",
    "\x0c",
    "\r",
    "a\rb",
    "\x1b",
    "\x1f",
    "\ud800",
    "\udfff",
    "\ufffe",
    "\uffff",
]
TOGETHER = [
    "",
    "a",
    " ",
    "\t",
    "\n",
    "a\nb",
    "&<>\"'",
    "]]>",
    "\x7f",
    "\x85",
    "\ud7ff",
    "\ue000",
    "\ufffd",
    "😀",
]


@pytest.mark.parametrize("key", ALONE)
def test_what_xml_or_its_line_ends_would_change_goes_alone(key: str) -> None:
    assert not xml_can_carry(key)


@pytest.mark.parametrize("key", [*TOGETHER, "\U0010ffff"])
def test_everything_else_may_go_together(key: str) -> None:
    assert xml_can_carry(key)


@given(st.text())
def test_what_may_go_together_comes_through_an_xml_parser_unchanged(key: str) -> None:
    if xml_can_carry(key):
        element = ET.Element("Key")
        element.text = key
        parsed = ET.fromstring(ET.tostring(element, encoding="utf-8"))  # noqa: S314 - our own text
        assert (parsed.text or "") == key


@given(
    st.lists(
        st.tuples(st.text(), st.none() | st.sampled_from(['"e"', "e", "*", '"*"', "", '""', ' "" ', "W/1"]))
    )
)
def test_what_can_go_together_at_one_look_can_go_one_by_one(objects: list[tuple[str, str | None]]) -> None:
    targets = [facts(key, etag=etag) for key, etag in objects]
    if can_go_together(targets):
        assert all(refuse_unsent(one) is None and xml_can_carry(one.ref.key) for one in targets)


@pytest.mark.parametrize("odd", [facts(etag=None), facts(etag='"*"'), *map(facts, ALONE), facts("a\nb")])
def test_one_that_is_odd_is_seen_among_others(odd: ObjectFacts) -> None:
    assert can_go_together([facts("a"), facts("café/😀", etag="e")])
    assert not can_go_together([facts("a"), odd, facts("b")])
    assert not can_go_together([])
