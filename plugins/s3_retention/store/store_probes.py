"""The table ``store_probes``: what stores do with the condition of a delete."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from s3_retention.core.condition import EtagCondition
from s3_retention.store.statements import fetch_one, run

if TYPE_CHECKING:
    from datetime import timedelta

    from s3_retention.store.connection import Connection


@dataclass(frozen=True, slots=True)
class ProbedStore:
    """What a probe holds for: another endpoint, identity or versioning may behave otherwise."""

    endpoint: str
    aws_conn_id: str
    bucket: str
    versioning: str


def find(conn: Connection, store: ProbedStore) -> EtagCondition | None:
    """Find what is known of a store; None when it was never probed, or too long ago."""
    row = fetch_one(conn, "store_probes", "find_condition", **asdict(store))
    return EtagCondition(row["etag_condition"]) if row else None


def remember(conn: Connection, store: ProbedStore, condition: EtagCondition, *, valid_for: timedelta) -> None:
    """Write down what a probe found."""
    run(
        conn,
        "store_probes",
        "remember_condition",
        etag_condition=condition.value,
        valid_for=valid_for,
        **asdict(store),
    )
