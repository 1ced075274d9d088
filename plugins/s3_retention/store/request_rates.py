"""The table ``request_rates``: the pace of all workers that delete under one prefix of a store."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_one, run

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection

FIRST_RATE = 3500.0
"""Keys per second that AWS gives to each partition
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html); the first ``SlowDown``
halves it."""
STEP = 35.0
"""Keys per second by which the rate rises in each second without a ``SlowDown``."""
MIN_RATE = 10.0
"""Keys per second under which ``SlowDown`` takes nothing more."""
FREE_RATE = 4 * FIRST_RATE
"""Keys per second beyond which there is no rate any more, where the policy sets none."""


@dataclass(frozen=True, slots=True)
class PacedStore:
    """Whose keys share a pace."""

    endpoint: str
    bucket: str
    prefix: str


def start(conn: Connection, store: PacedStore, *, max_rate: float) -> None:
    """Let the rate begin at, or come down to, ``max_rate`` keys per second."""
    run(conn, "request_rates", "start_rate", max_rate=max_rate, **asdict(store))


def reserve(conn: Connection, store: PacedStore, *, num_keys: int, max_rate: float | None) -> float:
    """Reserve the store for a request of so many keys; give the seconds until its turn, 0.0 where none is set."""
    row = fetch_one(
        conn,
        "request_rates",
        "reserve_keys",
        num_keys=num_keys,
        max_rate=max_rate,
        step=STEP,
        free_rate=FREE_RATE,
        **asdict(store),
    )
    return float(row["seconds"]) if row else 0.0


def slow_down(conn: Connection, store: PacedStore, *, max_rate: float | None) -> None:
    """Halve the rate, once a second at most: the store asked for less."""
    run(
        conn,
        "request_rates",
        "slow_down",
        max_rate=max_rate,
        first_rate=FIRST_RATE,
        min_rate=MIN_RATE,
        **asdict(store),
    )
