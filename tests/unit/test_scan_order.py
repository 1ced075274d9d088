"""A scan knows that it named nothing twice only where its keys grew all the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.steps.scan import Order


def seen(*pages: list[str]) -> bool:
    order = Order()
    for page in pages:
        order.see(page)
    return order.is_strict


@pytest.mark.parametrize(
    ("pages", "is_strict"),
    [
        ([], True),
        ([[]], True),
        ([["a", "b"], [], ["c"]], True),
        ([["a", "a"]], False),
        ([["a", "b"], ["b", "c"]], False),
        ([["b", "a"]], False),
        ([["b"], ["a"], ["c", "d"]], False),
    ],
)
def test_keys_that_only_grow_are_distinct_over_the_borders_of_pages(
    pages: list[list[str]], is_strict: bool
) -> None:
    assert seen(*pages) is is_strict


def test_a_scan_that_may_name_a_key_twice_is_never_taken_for_a_distinct_one() -> None:
    order = Order(is_strict=False)
    order.see(["a", "b"])
    assert not order.is_strict


@given(st.lists(st.lists(st.text(max_size=3), max_size=5), max_size=5))
def test_no_order_of_keys_hides_one_that_comes_twice(pages: list[list[str]]) -> None:
    keys = [key for page in pages for key in page]
    assert not seen(*pages) or len(set(keys)) == len(keys)
