"""Rows whose object is orphaned, on a real application's table: what is due, and what goes, object and rows."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from s3_retention.core.policy_rows import OrphanedSql
from s3_retention.errors import (
    BatchStoppedError,
    PlanRefusedError,
    PolicyError,
    RowsError,
    RowsUnavailableError,
)
from s3_retention.policy_files import load_policy
from sandbox.app_database import TRIGGERS
from tests.app_database import AppDatabase, orphans_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.postgres import Postgres
    from tests.factories import World

_numbers = itertools.count(1)
PAGE = Path(__file__).parents[2] / "docs" / "orphans.md"
RULES: dict[str, Any] = {
    "select": {"regex": r"(?s)sfs/.+"},
    "age": {"from": "detached_at", "retain": "7d"},
    "limits": {"allow_expire_everything": True},
}
YOUNG = timedelta(days=1)


@pytest.fixture
def app(postgres_server: Postgres) -> Iterator[AppDatabase]:
    made = AppDatabase.create(postgres_server, f"app_{next(_numbers)}")
    yield made
    made.drop()


def under(world: World, app: AppDatabase, **changes: Any) -> World:
    """The world under a policy of the application's orphans; `changes` replace fields of `source.rows`."""
    orphaned = world.under(**RULES, source=orphans_of(world.bucket, **changes))
    return replace(orphaned, orphans=app.rows(orphaned.policy))


def row_outcomes(world: World) -> dict[str, str]:
    rows = world.rows("SELECT row_id, outcome FROM s3_retention.row_entries")
    return {row["row_id"]: row["outcome"] for row in rows}


def test_an_orphaned_file_goes_and_its_row_after_it(world: World, app: AppDatabase) -> None:
    world.put("sfs/orphaned", "sfs/attached", "sfs/young")
    (orphan,) = app.add("sfs/orphaned")
    (attached,) = app.add("sfs/attached", age=None)
    (young,) = app.add("sfs/young", age=YOUNG)
    report = under(world, app).clean()
    assert report.is_balanced
    assert world.keys() == {"sfs/attached", "sfs/young"}
    assert app.left() == {attached: "sfs/attached", young: "sfs/young"}
    assert world.outcomes() == {"sfs/orphaned": "deleted"}
    assert row_outcomes(world) == {str(orphan): "deleted"}


def test_all_rows_of_one_object_go_by_one_command(world: World, app: AppDatabase) -> None:
    world.put("sfs/a")
    first, second = app.add("sfs/a", "sfs/a")
    assert under(world, app).clean().num_discovered == 1
    assert row_outcomes(world) == {str(first): "deleted", str(second): "deleted"}
    assert not app.left()


@pytest.mark.parametrize("age", [None, YOUNG], ids=["attached", "too young"])
def test_one_row_that_needs_it_keeps_an_object_and_all_its_rows(
    world: World, app: AppDatabase, age: timedelta | None
) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    app.add("sfs/a", age=age)
    assert under(world, app).planned().num_discovered == 0
    assert len(app.left()) == 2


@pytest.mark.parametrize("to", ["key", "id"])
def test_a_declared_reference_keeps_an_object(world: World, app: AppDatabase, to: str) -> None:
    world.put("sfs/a", "sfs/b")
    named, _ = app.add("sfs/a", "sfs/b")
    app.run("INSERT INTO mail.drafts (sfs_key, attachment_id) VALUES ('sfs/a', %s)", named)
    column = {"key": "sfs_key", "id": "attachment_id"}[to]
    references = [{"table": "mail.drafts", "column": column, "to": to}]
    report = under(world, app, references=references).clean()
    assert report.num_by_outcome == {"deleted": 1}
    assert world.keys() == {"sfs/a"}


def test_a_row_whose_object_is_gone_goes(world: World, app: AppDatabase) -> None:
    (row,) = app.add("sfs/gone")
    assert under(world, app).clean().num_by_outcome == {"already_absent": 1}
    assert row_outcomes(world) == {str(row): "deleted"}
    assert not app.left()


def test_an_object_whose_row_is_gone_by_then_goes(world: World, app: AppDatabase) -> None:
    world.put("sfs/a")
    (row,) = app.add("sfs/a")
    orphaned = under(world, app)
    (batch,) = orphaned.planned().batches
    app.run("DELETE FROM mail.attachments WHERE id = %s", row)
    orphaned.delete(batch)
    assert orphaned.report().num_by_outcome == {"deleted": 1}
    assert not world.keys()
    assert row_outcomes(world) == {str(row): "already_absent"}


def test_the_row_of_a_denied_object_stays(world: World, app: AppDatabase) -> None:
    world.put("sfs/denied", "sfs/a")
    denied, _ = app.add("sfs/denied", "sfs/a")
    world.s3.deny(world.bucket, ["sfs/denied"])
    report = under(world, app, soft_delete="deleting_at").clean()
    assert report.num_by_outcome == {"deleted": 1, "quarantined": 1}
    assert app.left() == {denied: "sfs/denied"}
    assert app.run("SELECT deleting_at FROM mail.attachments") == [(None,)]


def test_an_object_that_was_overwritten_since_the_plan_is_kept_with_its_row(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    orphaned = under(world, app)
    (batch,) = orphaned.planned().batches
    world.put("sfs/a", body=b"new")
    orphaned.delete(batch)
    assert orphaned.report().num_by_outcome == {"changed": 1}
    assert world.keys() == {"sfs/a"}
    assert len(app.left()) == 1


def test_an_object_that_came_after_the_plan_found_none_is_kept_with_its_row(
    world: World, app: AppDatabase
) -> None:
    app.add("sfs/a")
    orphaned = under(world, app)
    (batch,) = orphaned.planned().batches
    world.put("sfs/a")
    orphaned.delete(batch)
    assert orphaned.report().num_by_outcome == {"changed": 1}
    assert world.keys() == {"sfs/a"}
    assert len(app.left()) == 1


def test_a_row_without_a_key_is_counted_and_stays(world: World, app: AppDatabase) -> None:
    app.add(None)
    orphaned = under(world, app)
    orphaned.clean()
    (counted,) = world.rows("SELECT num_kept_by_reason FROM s3_retention.intervals")
    assert counted["num_kept_by_reason"] == {"key_missing": 1}
    assert len(app.left()) == 1


def test_what_the_policy_does_not_select_stays(world: World, app: AppDatabase) -> None:
    world.put("other/a")
    app.add("other/a")
    assert under(world, app).planned().num_discovered == 0
    assert world.keys() == {"other/a"}


def test_no_plan_takes_every_row_of_a_table_unless_it_may(world: World, app: AppDatabase) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    careful = under(world, app)
    careful = replace(careful, changes=careful.changes | {"limits": {}})
    with pytest.raises(PlanRefusedError, match="allow_expire_everything"):
        careful.planned()
    app.add("sfs/b", age=None)
    assert careful.plan().num_discovered == 1


def test_no_rows_go_where_most_objects_are_said_to_be_gone_unless_they_may(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a", "sfs/b")
    app.add("sfs/a", "sfs/b", *(f"sfs/gone-{number}" for number in range(20)))
    with pytest.raises(PlanRefusedError, match="20 of 22 objects"):
        under(world, app).planned()
    assert len(app.left()) == 22
    assert under(world, app, max_absent_share=0.95).clean().num_by_outcome == {
        "deleted": 2,
        "already_absent": 20,
    }


def test_tenants_come_from_a_column_and_two_of_them_keep_an_object(world: World, app: AppDatabase) -> None:
    world.put("sfs/a", "sfs/b", "sfs/shared")
    app.add("sfs/a", "sfs/shared", account="acme")
    app.add("sfs/b", "sfs/shared", account="bolt")
    orphaned = under(world, app).under(tenant={"column": "account"})
    orphaned = replace(orphaned, orphans=app.rows(orphaned.policy))
    orphaned.clean()
    found = world.rows("SELECT tenant, key FROM s3_retention.ledger_entries ORDER BY key")
    assert [(row["tenant"], row["key"]) for row in found] == [("acme", "sfs/a"), ("bolt", "sfs/b")]
    assert world.keys() == {"sfs/shared"}


def test_without_a_detach_time_a_row_is_as_old_as_its_first_sighting(world: World, app: AppDatabase) -> None:
    world.put("sfs/a", "sfs/b")
    first, second = app.add("sfs/a", "sfs/b")
    orphaned = under(world, app, detached_at=None, soft_delete="deleting_at")
    assert orphaned.planned().num_discovered == 0
    world.root.execute(
        "UPDATE s3_retention.orphan_sightings SET first_seen_at = first_seen_at - interval '8 days'"
    )
    app.attach(second)
    orphaned.report()
    assert orphaned.clean("run-2").num_by_outcome == {"deleted": 1}
    app.detach(second)
    assert orphaned.clean("run-3").num_discovered == 0
    assert app.left() == {second: "sfs/b"}
    assert str(first) in row_outcomes(world)


def test_keys_come_from_urls_and_from_templates(world: World, app: AppDatabase) -> None:
    world.put("sfs/a b", "sfs/acme/3.bin")
    app.add(f"s3://{world.bucket}/sfs/a b")
    app.add(f"s3://{world.bucket}-else/sfs/a b")
    under(world, app, key={"url": "sfs_key"}).clean()
    assert world.keys() == {"sfs/acme/3.bin"}
    app.add("no matter")
    under(world, app, key={"template": "sfs/{account}/{id}.bin"}).under(version="v2").clean("run-2")
    assert not world.keys()
    assert not app.left()


@pytest.mark.parametrize(
    ("breaking", "told"),
    [
        ("ALTER TABLE mail.attachments RENAME COLUMN orphaned_at TO detached", "has no column orphaned_at"),
        ("ALTER TABLE mail.attachments RENAME TO files", "mail.attachments is not in the database"),
        ("REVOKE DELETE ON mail.attachments FROM retention_rows", "GRANT DELETE"),
        ("REVOKE SELECT ON mail.attachments FROM retention_rows", "lacks a right"),
        ("ALTER TABLE mail.attachments ALTER orphaned_at TYPE timestamp", "make it timestamptz"),
        ("ALTER TABLE mail.attachments DROP CONSTRAINT attachments_pkey", "no unique index"),
        ("ALTER DATABASE {} SET default_transaction_read_only TO on", "read-only"),
    ],
)
def test_a_table_that_is_not_as_the_policy_says_is_told_and_nothing_is_planned(
    world: World, app: AppDatabase, breaking: str, told: str
) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    app.run(breaking.format(app.database))
    with pytest.raises(RowsError, match=told) as caught:
        under(world, app).planned()
    assert "SELECT" not in str(caught.value)
    assert world.keys() == {"sfs/a"}


def test_a_database_that_is_away_is_told_and_nothing_is_planned(world: World, app: AppDatabase) -> None:
    orphaned = under(world, app)
    away = app.rows(orphaned.policy, conninfo="postgresql://nobody@/nowhere?host=/nonexistent&password=hush")
    with pytest.raises(RowsUnavailableError, match="app_db") as caught:
        replace(orphaned, orphans=away).planned()
    assert "hush" not in str(caught.value)


def test_a_database_that_is_too_slow_is_told_and_nothing_is_planned(world: World, app: AppDatabase) -> None:
    app.add("sfs/a")
    orphaned = under(world, app, statement_timeout="1s")
    locking = app.connect()
    locking.autocommit = False
    locking.execute("LOCK TABLE mail.attachments IN ACCESS EXCLUSIVE MODE")
    with pytest.raises(RowsUnavailableError, match="took too long"):
        orphaned.planned()
    locking.close()


def test_a_database_that_goes_away_after_the_plan_stops_the_batch_and_the_next_run_goes_on(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    orphaned = under(world, app)
    (batch,) = orphaned.planned().batches
    away = app.rows(orphaned.policy, conninfo="postgresql://nobody@/nowhere?host=/nonexistent")
    result = replace(orphaned, orphans=away).delete(batch)
    assert (result.stopped_class, result.may_pass) == ("config", True)
    assert world.keys() == {"sfs/a"}
    assert orphaned.delete(batch, try_number=2).num_by_outcome == {"deleted": 1}
    assert not app.left()


def test_the_example_and_the_sql_of_the_page_do_what_it_says(world: World, app: AppDatabase) -> None:
    text = PAGE.read_text(encoding="utf-8")
    app.run(TRIGGERS.read_text(encoding="utf-8"))
    for statements in re.findall(r"^```sql\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        app.run(statements)
    (example,) = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    written = yaml.safe_load(example)
    written["source"]["bucket"] = world.bucket
    orphaned = world.under(**written | {"name": world.policy.name})
    orphaned = replace(orphaned, orphans=app.rows(orphaned.policy))
    world.put("sfs/a", "sfs/b", "sfs/c")
    app.add(*(f"s3://{world.bucket}/sfs/{name}" for name in "ab"))
    app.add(f"s3://{world.bucket}/sfs/c", age=None)
    app.run("INSERT INTO mail.drafts (sfs_key) VALUES (%s)", f"s3://{world.bucket}/sfs/b")
    assert orphaned.clean().num_by_outcome == {"deleted": 1}
    assert world.keys() == {"sfs/b", "sfs/c"}


def test_a_condition_of_a_file_beside_the_policies_decides_and_is_part_of_the_rules(
    world: World, app: AppDatabase, tmp_path: Path
) -> None:
    world.put("sfs/a", "sfs/50%")
    app.add("sfs/a")
    app.add("sfs/50%")
    (tmp_path / "orphans.sql").write_text("sfs_key LIKE '%\\%' -- a percent sign alone\n", encoding="utf-8")
    (tmp_path / "sfs.yaml").write_text(
        yaml.safe_dump(
            RULES
            | {"name": "sfs", "version": "v1", "mode": "enforce"}
            | {"source": orphans_of(world.bucket, orphaned=None, orphaned_sql="orphans.sql")}
        )
    )
    first = load_policy(tmp_path, "sfs", min_retention=timedelta(days=1))
    pages = list(app.rows(first).pages())
    assert [row.named for page in pages for row in page] == ["sfs/50%"]
    (tmp_path / "orphans.sql").write_text("email_id IS NULL", encoding="utf-8")
    assert load_policy(tmp_path, "sfs", min_retention=timedelta(days=1)).rules_hash != first.rules_hash
    for text, told in (("", "is an empty file"), ("TRUE; DROP TABLE x", "semicolon")):
        (tmp_path / "orphans.sql").write_text(text, encoding="utf-8")
        with pytest.raises(PolicyError, match=f"sfs.yaml: source.rows.orphaned_sql = 'orphans.sql'.*{told}"):
            load_policy(tmp_path, "sfs", min_retention=timedelta(days=1))
    (tmp_path / "orphans.sql").unlink()
    with pytest.raises(PolicyError, match="is not there; add the file"):
        load_policy(tmp_path, "sfs", min_retention=timedelta(days=1))


def test_a_condition_that_is_no_sql_is_told_before_anything_is_planned(
    world: World, app: AppDatabase
) -> None:
    orphaned = under(
        world, app, orphaned=None, orphaned_sql=OrphanedSql(file="o.sql", text="email_id IS NUL")
    )
    with pytest.raises(RowsError, match="is no SQL"):
        orphaned.planned()


@pytest.mark.parametrize(
    ("breaking", "mending"),
    [
        (
            "REVOKE DELETE ON mail.attachments FROM retention_rows",
            "GRANT DELETE ON mail.attachments TO retention_rows",
        ),
        (
            "ALTER TABLE mail.attachments RENAME orphaned_at TO detached",
            "ALTER TABLE mail.attachments RENAME detached TO orphaned_at",
        ),
        (
            "REVOKE UPDATE (deleting_at) ON mail.attachments FROM retention_rows",
            "GRANT UPDATE (deleting_at) ON mail.attachments TO retention_rows",
        ),
    ],
    ids=["no right to delete", "a column that was renamed", "no right to lock"],
)
def test_a_table_that_changes_after_the_plan_stops_the_batch_and_no_row_is_lost(
    world: World, app: AppDatabase, breaking: str, mending: str
) -> None:
    world.put("sfs/a")
    (row,) = app.add("sfs/a")
    orphaned = under(world, app)
    (batch,) = orphaned.planned().batches
    app.run(breaking)
    result = orphaned.delete(batch)
    assert (result.stopped_class, result.may_pass) == ("config", False)
    assert list(app.left()) == [row]
    assert not orphaned.outcomes()
    with pytest.raises(BatchStoppedError, match="DatabaseRefused"):
        orphaned.report()
    app.run(mending)
    for again in orphaned.planned("run-2").batches:
        orphaned.delete(again, "run-2")
    assert orphaned.report("run-2").is_balanced
    assert not app.left()
    assert not world.keys()
