"""How a client of a store waits, retries and pools: the same whoever opens it."""

from __future__ import annotations

from botocore.config import Config

CONNECT_TIMEOUT_SECONDS = 10
READ_TIMEOUT_SECONDS = 60
BOTOCORE_ATTEMPTS = 1
"""The retries are ours, per key and per class: botocore's would not wait as long as the store asks for."""


def client_config(*, parallel: int) -> Config:
    """Give the settings of a client whose ``parallel`` threads each have a connection, and two to look with."""
    return Config(
        max_pool_connections=parallel + 2,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        retries={"mode": "standard", "total_max_attempts": BOTOCORE_ATTEMPTS},
    )
