"""The table ``chunks``: the commands of a batch, as arrays of up to 1,000."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from s3_retention.core.command import DeleteCommand, ids_of_each
from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.store.statements import fetch_all, fetch_arrays

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


def to_command(row: Row) -> DeleteCommand:
    """Make a command of one row of the table ``quarantine``."""
    ref = ObjectRef(row["bucket"], row["key"], row["version_id"])
    return DeleteCommand(
        ids=row["command_id"] + row["operation_id"],
        facts=ObjectFacts(ref, row["etag"], row["size"], row["last_modified_at"]),
        due_at=row["due_at"],
        interval_id=row["interval_id"],
        generation=row["generation"],
        policy_version=row["policy_version"],
        group_key=row["group_key"],
        tenant=row["tenant"],
        num_attempts=row["num_attempts"],
        quarantine_id=row.get("quarantine_id"),
    )


def list_open(conn: Connection, *, batch_id: int) -> dict[int, str | None]:
    """List the ids of the chunks of a batch that are not closed, in order, each with its tenant."""
    rows = fetch_all(conn, "chunks", "list_open_chunks", batch_id=batch_id)
    return {row["chunk_id"]: row["tenant"] for row in rows}


def list_unfinished(conn: Connection, *, chunk_id: int, fence: int) -> list[DeleteCommand]:
    """List the commands of a chunk that are neither settled nor in quarantine: at most 1,000.

    ``fence`` is that of the claim on its batch: nothing was, while the first one stands.
    """
    row = fetch_arrays(conn, "chunks", "load_unfinished_commands", chunk_id=chunk_id, fence=fence)
    if row is None:
        return []
    # By maps, and not in a loop: this is done for each object. The table holds all its arrays to one length.
    refs = map(ObjectRef, repeat(row["bucket"]), row["keys"], row["version_ids"])
    facts = list(map(ObjectFacts, refs, row["etags"], row["sizes"], row["last_modified_ats"]))
    places: Sequence[int] = range(1, len(facts) + 1)
    due_ats, group_keys = row["due_ats"], row["group_keys"]
    if not row["is_first_delivery"]:
        places = row["places"] or ()
        facts, due_ats, group_keys = (
            [column[place - 1] for place in places] for column in (facts, due_ats, group_keys)
        )
    attempts = dict(zip(row["failed_places"] or (), row["attempts"] or (), strict=True))
    return list(
        map(
            DeleteCommand,
            ids_of_each(facts, row["policy_version"]),
            facts,
            due_ats,
            repeat(row["interval_id"]),
            repeat(row["generation"]),
            repeat(row["policy_version"]),
            group_keys,
            repeat(row["tenant"]),
            map(attempts.get, places, repeat(0)),
            repeat(None),
            places,
        )
    )


def list_keepers(
    conn: Connection, *, interval_id: int, generation: int, group_keys: Collection[str]
) -> dict[str, list[ObjectRef]]:
    """List per group the objects whose presence allows its deletes."""
    keepers: dict[str, list[ObjectRef]] = {key: [] for key in group_keys}
    rows = fetch_all(
        conn,
        "chunks",
        "list_keepers",
        interval_id=interval_id,
        generation=generation,
        group_keys=list(group_keys),
    )
    for row in rows:
        keepers[row["group_key"]].append(ObjectRef(row["bucket"], row["key"]))
    return keepers
