"""How long one thread of a step may work while another waits for its turn."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TURN = 0.0005
"""Seconds."""


@contextmanager
def takes_short_turns() -> Iterator[None]:
    """Let threads change places often: what the store has answered is taken in, and the next request leaves, at once.

    By default a thread that has got its bytes waits up to 5 ms for one that decides or settles, several times in each
    answer, while the store has nothing to do: that was a tenth of the time of a plan.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(TURN, before))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
