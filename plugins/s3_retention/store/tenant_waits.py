"""The table ``tenant_waits``: what a plan leaves of a tenant although it is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import run

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection

REASONS = frozenset({"tenant_paused", "over_tenant_cap"})
"""Why an object that is due waits, by its tenant."""


def insert(conn: Connection, *, interval_id: int, generation: int) -> None:
    """Write what waits by the decision of this session, in the transaction that marks its plan as stored."""
    run(conn, "tenant_waits", "insert_waits", interval_id=interval_id, generation=generation)
