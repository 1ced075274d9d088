"""Which keys a keep rule spares in a scan of versions, in temporary tables of this session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.queries import query
from s3_retention.store.statements import fetch_one, run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from s3_retention.core.verdict import Candidate
    from s3_retention.store.connection import Connection

_TABLE = "plan_kept_keys"
_TYPES = ("text", "text", "timestamptz", "timestamptz", "text")


def begin(conn: Connection) -> None:
    """Start a scan from nothing."""
    for name in (
        "create_plan_currents",
        "clear_plan_currents",
        "create_plan_kept_keys",
        "clear_plan_kept_keys",
    ):
        run(conn, _TABLE, name)


def copy(conn: Connection, currents: Iterable[Candidate]) -> None:
    """Take in current objects, to be ranked."""
    with conn.cursor().copy(query(_TABLE, "copy_plan_currents")) as target:
        target.set_types(_TYPES)
        for one in currents:
            facts = one.facts
            target.write_row(
                (facts.ref.bucket, facts.ref.key, one.reference_at, facts.last_modified_at, one.group_key)
            )


def spare(conn: Connection, *, keep_latest: int) -> int:
    """Take the versions of the newest keys of each group out of the candidates; their number."""
    run(conn, _TABLE, "keep_newest_keys", keep_latest=keep_latest)
    row = fetch_one(conn, _TABLE, "drop_versions_of_kept_keys")
    run(conn, _TABLE, "free_groups_without_keeper")
    return int(row["num_dropped"]) if row else 0


def store(conn: Connection, *, interval_id: int, generation: int) -> None:
    """Write the kept objects of each group of which something is due: they are looked at before each delete."""
    run(conn, _TABLE, "insert_kept_keys", interval_id=interval_id, generation=generation)
