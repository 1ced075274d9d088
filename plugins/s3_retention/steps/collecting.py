"""How often Python looks for cycles while a step works through its pages."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NUM_NEW = 10_000
"""Values made, and not yet dropped, before the collector looks."""


@contextmanager
def collects_rarely() -> Iterator[None]:
    """Let the garbage collector look rarely: a page is thousands of values, all dropped at its end and none in a cycle.

    By default it looks at each 700 new ones, for nothing, which was a quarter of the CPU time of a plan or a delete.
    What is dropped is freed at once as ever, so that memory stays flat.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(NUM_NEW, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
