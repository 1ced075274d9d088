"""The story of attachments whose e-mails were deleted, whole: on a real table with ON DELETE SET NULL."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from s3_retention.__main__ import app as shell
from s3_retention.core.holder import Holder
from s3_retention.core.redrive import Selection
from s3_retention.sources.row_source import RowSource
from s3_retention.steps import redrive, reread
from s3_retention.store import histories
from tests.app_database import AppDatabase, orphans_of
from tests.factories import REDRIVE
from tests.integration.test_orphaned_rows import RULES, row_outcomes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sandbox.ledger import Ledger
    from sandbox.postgres import Postgres
    from tests.factories import World

NUM_ATTACHMENTS, NUM_ORPHANED, NUM_REATTACHED = 3000, 1200, 20
SHARED, MALFORMED, DENIED = "sfs/00000", "sfs/00005", "sfs/00006"


@pytest.fixture
def app(postgres_server: Postgres) -> Iterator[AppDatabase]:
    made = AppDatabase.create(postgres_server, "attachments")
    made.attach_triggers()
    yield made
    made.drop()


def fill(app: AppDatabase, bucket: str) -> list[str]:
    """3,000 attachments, each of an e-mail of its own, two of one object; 1,200 of the e-mails are deleted."""
    app.run("INSERT INTO mail.emails SELECT FROM generate_series(1, %s)", NUM_ATTACHMENTS)
    app.run(
        "INSERT INTO mail.attachments (email_id, sfs_key) "
        "SELECT id, 's3://' || %s || '/sfs/' || lpad(greatest(id - 2, 0)::text, 5, '0') FROM mail.emails ORDER BY id",
        bucket,
    )
    app.run("DELETE FROM mail.emails WHERE id <= %s", NUM_ORPHANED)
    app.run("UPDATE mail.attachments SET orphaned_at = orphaned_at - interval '90 days'")
    return [f"sfs/{number:05d}" for number in range(NUM_ATTACHMENTS - 1)]


def reread_and_redrive(world: World, run: str, **what: Any) -> Any:
    """A whole redrive run, as its DAG does it."""
    policy, rows = world.policy, world.orphans
    assert rows is not None
    selection, who = Selection(**what), Holder(REDRIVE, run, "select")
    selected = redrive.list_selected(world.conn, selection)[policy.name]
    found = reread.find(world.conn, RowSource(rows, world.gateway), policy, selected)
    reread.supersede(world.conn, found, who, acted_by="ann", note="corrected")
    return world.redrive(run, operation_ids=reread.with_successors(world.conn, selection).operation_ids)


def operation_of(world: World, key: str) -> str:
    found: str = world.value(
        "SELECT encode(operation_id, 'hex') FROM s3_retention.quarantine WHERE key = %(key)s AND resolved_at IS NULL",
        key=key,
    )
    return found


def test_nothing_referenced_is_lost_and_every_row_is_accounted_for(
    world: World, app: AppDatabase, ledger: Ledger, tmp_path: Path
) -> None:
    keys = fill(app, world.bucket)
    world.put(*keys)
    broken = f"{world.bucket}/{MALFORMED}"
    app.run("UPDATE mail.attachments SET sfs_key = %s WHERE sfs_key = %s", broken, f"s3://{broken}")
    world.s3.deny(world.bucket, [DENIED])
    orphaned = world.under(**RULES, source=orphans_of(world.bucket, key={"url": "sfs_key"}))
    orphaned = replace(orphaned, orphans=app.rows(orphaned.policy))

    planned = orphaned.planned()
    assert planned.num_discovered == NUM_ORPHANED - 1, "two rows are of one object"
    assert planned.num_kept_by_reason["attached"] == NUM_ATTACHMENTS - NUM_ORPHANED
    again = [row[0] for row in app.run("SELECT id FROM mail.attachments WHERE id BETWEEN 101 AND 120")]
    app.attach(*again)
    for batch in planned.batches:
        orphaned.delete(batch)
    orphaned.sweep(failed=range(len(planned.batches)))
    report = orphaned.report()

    num_deleted = NUM_ORPHANED - 1 - 2 - NUM_REATTACHED
    assert report.is_balanced
    assert report.num_by_outcome == {"deleted": num_deleted, "kept": NUM_REATTACHED, "quarantined": 2}
    named = {str(key).removeprefix(f"s3://{world.bucket}/") for key in app.left().values()}
    assert named - {broken} | {MALFORMED} == world.keys(), (
        "no row without its object, no object without its row"
    )
    assert {SHARED}.isdisjoint(world.keys())
    assert list(row_outcomes(orphaned).values()) == ["deleted"] * (num_deleted + 1)

    wrong, denied = operation_of(orphaned, broken), operation_of(orphaned, DENIED)
    app.run("UPDATE mail.attachments SET sfs_key = %s WHERE sfs_key = %s", f"s3://{broken}", broken)
    world.s3.allow(world.bucket, [DENIED])
    assert reread_and_redrive(orphaned, "redrive-1", operation_ids=(denied,)).num_by_outcome == {"deleted": 1}
    assert reread_and_redrive(orphaned, "redrive-2", operation_ids=(wrong,)).num_by_outcome == {"deleted": 1}
    assert {MALFORMED, DENIED}.isdisjoint(world.keys())
    assert len(app.left()) == NUM_ATTACHMENTS - NUM_ORPHANED + NUM_REATTACHED

    (old,) = orphaned.rows("SELECT * FROM s3_retention.quarantine WHERE key = %(key)s", key=broken)
    (new,) = orphaned.rows("SELECT * FROM s3_retention.quarantine WHERE supersedes IS NOT NULL")
    assert (old["resolution"], new["resolution"]) == ("kept", "deleted")
    assert (old["superseded_by"], old["command_id"]) == (new["command_id"], new["supersedes"])
    assert new["operation_id"] != old["operation_id"], "it is a new operation"
    outcomes = orphaned.rows(
        "SELECT outcome, count(*) AS num FROM s3_retention.command_outcomes GROUP BY outcome ORDER BY outcome"
    )
    assert {row["outcome"]: row["num"] for row in outcomes} == {
        "deleted": num_deleted + 2,
        "kept": NUM_REATTACHED + 1,
    }
    told = histories.list_history(world.conn, bucket=world.bucket, key=MALFORMED)
    assert [row["event"] for row in told] == ["quarantined", "redriven", "deleted", "resolved", "row deleted"]
    exported = CliRunner().invoke(
        shell,
        ["export", orphaned.interval_key(), "--to", str(tmp_path / "out")],
        env={"S3_RETENTION_LEDGER_CONNINFO": ledger.writer_conninfo},
    )
    assert exported.exit_code == 0, exported.output
    lines = (tmp_path / "out" / "commands.csv").read_text(encoding="utf-8")
    assert len(lines.splitlines()) == NUM_ORPHANED + 1
    assert lines.count(" deleted") == NUM_ORPHANED - NUM_REATTACHED
    (balance,) = orphaned.rows("SELECT * FROM s3_retention.balance")
    assert (balance["num_pending"], balance["num_quarantined"]) == (0, 0)
    assert balance["num_discovered"] == NUM_ORPHANED, "and counts as one more command"


def test_a_redrive_that_was_killed_after_the_correction_takes_the_new_command_all_the_same(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    app.add("no url")
    app.run("UPDATE mail.attachments SET orphaned_at = now() - interval '90 days'")
    orphaned = world.under(**RULES, source=orphans_of(world.bucket, key={"url": "sfs_key"}))
    orphaned = replace(orphaned, orphans=app.rows(orphaned.policy))
    assert orphaned.clean().num_by_outcome == {"quarantined": 1}
    wrong = operation_of(orphaned, "no url")
    app.run("UPDATE mail.attachments SET sfs_key = %s", f"s3://{world.bucket}/sfs/a")
    rows = orphaned.orphans
    assert rows is not None
    source, who = RowSource(rows, world.gateway), Holder(REDRIVE, "redrive-1", "select")
    ids = redrive.list_selected(world.conn, Selection())[orphaned.policy.name]
    found = reread.find(world.conn, source, orphaned.policy, ids)
    assert reread.supersede(world.conn, found, who, acted_by="ann", note=None) == 1
    assert reread.supersede(world.conn, found, who, acted_by="ann", note=None) == 0, (
        "by another one meanwhile"
    )
    again = reread.with_successors(world.conn, Selection(operation_ids=(wrong,)))
    assert orphaned.redrive("redrive-1", operation_ids=again.operation_ids).num_by_outcome == {"deleted": 1}
    assert not world.keys()
    assert not app.left()


def test_a_row_that_names_an_object_which_another_row_needs_is_not_redriven(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    (row,) = app.add("no url")
    app.run("UPDATE mail.attachments SET orphaned_at = now() - interval '90 days'")
    orphaned = world.under(**RULES, source=orphans_of(world.bucket, key={"url": "sfs_key"}))
    orphaned = replace(orphaned, orphans=app.rows(orphaned.policy))
    orphaned.clean()
    url = f"s3://{world.bucket}/sfs/a"
    app.add(url, age=None)
    app.run("UPDATE mail.attachments SET sfs_key = %s WHERE id = %s", url, row)
    wrong = operation_of(orphaned, "no url")
    assert reread_and_redrive(orphaned, "redrive-1", operation_ids=(wrong,)).num_by_outcome == {"changed": 1}
    assert world.keys() == {"sfs/a"}
    assert len(app.left()) == 2
