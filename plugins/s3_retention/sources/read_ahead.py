"""Reads the next page of a source while the one before is worked on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


def read_ahead(pages: Iterator[T]) -> Iterator[T]:
    """Give the pages in their order, each read by a thread of its own while its reader has the one before.

    One page is held besides, whatever the number of pages. What ``pages`` raises is raised where its page would have
    come. A reader that stops early waits for nothing: the page that is on its way is dropped.
    """
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead")
    try:
        upcoming = pool.submit(_next, pages)
        while (page := upcoming.result()) is not None:
            upcoming = pool.submit(_next, pages)
            yield page[0]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _next(pages: Iterator[T]) -> tuple[T] | None:
    # In a tuple, so that no page can look like the end.
    for page in pages:
        return (page,)
    return None
