"""The next page of a source is on its way while the one before is worked on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.sources.read_ahead import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 10


@given(st.lists(st.one_of(st.none(), st.lists(st.integers()), st.just(()))))
def test_every_page_comes_once_and_in_order_whatever_it_is(pages: list[object]) -> None:
    assert list(read_ahead(iter(pages))) == pages


def test_the_next_page_is_read_before_the_one_at_hand_is_done_with_and_no_further_one() -> None:
    second, asked = threading.Event(), []

    def pages() -> Iterator[int]:
        for number in range(4):
            asked.append(number)
            if number == 1:
                second.set()
            yield number

    reader = read_ahead(pages())
    assert next(reader) == 0
    assert second.wait(PATIENCE)
    assert asked == [0, 1]
    assert list(reader) == [1, 2, 3]


def test_a_source_that_breaks_off_does_so_behind_the_pages_that_it_gave() -> None:
    def pages() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("broke off")

    reader = read_ahead(pages())
    assert [next(reader), next(reader)] == [1, 2]
    with pytest.raises(ValueError, match="broke off"):
        next(reader)


def test_a_reader_that_stops_early_does_not_wait_for_the_page_that_is_on_its_way() -> None:
    let_go = threading.Event()

    def pages() -> Iterator[int]:
        yield 1
        let_go.wait(PATIENCE)
        yield 2

    reader = read_ahead(pages())
    assert next(reader) == 1
    reader.close()  # type: ignore[attr-defined]
    assert not let_go.is_set()
    let_go.set()
