"""The table ``watch_passes``: what each pass of the watch did, and by its gaps when nothing was scheduled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from s3_retention.store.statements import run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.store.connection import Connection


def insert(conn: Connection, *, run_id: str, did: Mapping[str, object]) -> None:
    """Append what a pass did."""
    run(conn, "watch_passes", "insert_pass", run_id=run_id, did=Jsonb(dict(did)))
