"""Which keys may share a DeleteObjects request."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.s3.keys import xml_can_carry

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
