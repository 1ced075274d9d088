"""Deleting or renaming a policy leaves its history readable and its open commands visible."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from tests.factories import NAME, a_policy

if TYPE_CHECKING:
    from sandbox.ledger import Ledger
    from tests.factories import World

A, B, C, D = (f"exports/2020-01/{name}.json" for name in "abcd")
READABLE = (
    "balance",
    "commands",
    "unfinished_commands",
    "intervals",
    "batches",
    "ledger_entries",
    "quarantine",
    "quarantine_events",
    "claims",
    "run_reports",
    "watermarks",
    "policy_versions",
)


@pytest.fixture
def retired(world: World) -> World:
    """A completed interval, a command in quarantine, and an interval of which one command has not ended."""
    world = world.under(batch={"size": 1})
    world.put(A, B)
    world.s3.deny(world.bucket, [B])
    world.clean()
    world.put(C, D)
    first, _ = world.planned("run-2").batches
    world.delete(first, "run-2")
    world.expire_leases()
    return world


def test_its_history_is_readable_by_who_may_only_read(retired: World, ledger: Ledger) -> None:
    retired.root.execute("CREATE ROLE t_auditor LOGIN IN ROLE s3_retention_reader")
    try:
        conninfo = ledger.postgres.conninfo("t_auditor", ledger.database)
        with closing(psycopg.connect(conninfo, autocommit=True)) as auditor:
            counts = {}
            for name in READABLE:
                query = sql.SQL("SELECT count(*) FROM s3_retention.{}").format(sql.Identifier(name))
                row = auditor.execute(query).fetchone()
                counts[name] = row[0] if row else 0
    finally:
        retired.root.execute("DROP ROLE t_auditor")
    assert {name: count for name, count in counts.items() if count == 0} == {}
    assert (counts["ledger_entries"], counts["quarantine"], counts["unfinished_commands"]) == (2, 1, 1)


def test_its_open_commands_and_its_quarantine_are_found_while_its_file_is_gone(retired: World) -> None:
    before = retired.rows("SELECT * FROM s3_retention.balance ORDER BY interval_id")
    retired.watch(a_policy(name="another"))
    found = retired.open_findings()
    assert found["no_policy_file", ""]["num_commands"] == 1
    assert found["quarantine_open", "permission"]["num_commands"] == 1
    assert retired.rows("SELECT * FROM s3_retention.balance ORDER BY interval_id") == before
    # Nothing of it was touched: with its file back, the next run ends what is open.
    retired.s3.allow(retired.bucket, [B])
    assert retired.clean("run-3").is_balanced
    assert retired.redrive().num_by_outcome == {"deleted": 1}
    retired.watch()
    assert {kind for kind, _ in retired.open_findings()} <= {"stragglers"}
    assert retired.keys() == set()


def test_a_renamed_policy_starts_its_own_watermark_and_leaves_the_rows_of_the_old_name_alone(
    retired: World,
) -> None:
    old = "SELECT * FROM s3_retention.{} WHERE policy = %(policy)s ORDER BY 1, 2"
    before = [
        retired.rows(old.format(name), policy=NAME) for name in ("watermarks", "intervals", "quarantine")
    ]
    renamed = retired.under(name="renamed")
    claimed = renamed.claim("renamed-1")
    assert claimed.interval_key is not None
    assert claimed.interval_key.startswith("cleanup:renamed:1970-01-01T00:00:00+00:00:")
    # What waits in the old quarantine is nothing to the new policy: it plans the object by its own rules.
    planned = renamed.plan("renamed-1", interval_id=claimed.interval_id)
    assert planned.num_discovered == len(retired.keys())
    after = [
        retired.rows(old.format(name), policy=NAME) for name in ("watermarks", "intervals", "quarantine")
    ]
    assert after == before
