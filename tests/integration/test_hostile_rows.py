"""Rows as no one wants them: ids, times, keys, databases and conditions that an application may well have."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError
from psycopg.conninfo import make_conninfo

from s3_retention.core.holder import Holder
from s3_retention.core.policy_rows import OrphanedSql
from s3_retention.core.redrive import Selection
from s3_retention.errors import RowsError
from s3_retention.sources.row_source import RowSource
from s3_retention.steps import redrive, reread
from tests.app_database import AppDatabase
from tests.factories import REDRIVE
from tests.fakes import faulty_gateway, refusal
from tests.integration.test_orphaned_rows import row_outcomes, under

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.postgres import Postgres
    from tests.factories import World

_numbers = itertools.count(1)
URL = {"url": "sfs_key"}


@pytest.fixture
def app(postgres_server: Postgres) -> Iterator[AppDatabase]:
    made = AppDatabase.create(postgres_server, f"hostile_{next(_numbers)}")
    yield made
    made.drop()


def reread_all(world: World, run: str) -> None:
    """Read the rows of all that waits anew, as a redrive does."""
    rows = world.orphans
    assert rows is not None
    ids = redrive.list_selected(world.conn, Selection())[world.policy.name]
    found = reread.find(world.conn, RowSource(rows, world.gateway), world.policy, ids)
    reread.supersede(world.conn, found, Holder(REDRIVE, run, "select"), acted_by="ann", note=None)


@pytest.mark.parametrize(
    "at", ["infinity", "-infinity", "9999-12-31 23:00+00", "20000-01-01", "0044-03-15 BC"]
)
@pytest.mark.parametrize("key", ["sfs/odd", "no key"])
def test_a_detach_time_that_no_calendar_here_knows_keeps_its_file_and_no_other(
    world: World, app: AppDatabase, at: str, key: str
) -> None:
    world.put("sfs/a", "sfs/odd")
    url = f"s3://{world.bucket}/sfs/"
    app.add(f"{url}a")
    (odd,) = app.add(key.replace("sfs/", url))
    app.run("UPDATE mail.attachments SET orphaned_at = %s WHERE id = %s", at, odd)
    assert under(world, app, key=URL).clean().num_by_outcome == {"deleted": 1}
    assert list(app.left()) == [odd]


@pytest.mark.parametrize("at", ["infinity", "9999-12-31 23:00+00"])
def test_a_detach_time_that_is_set_so_after_the_plan_keeps_its_file(
    world: World, app: AppDatabase, at: str
) -> None:
    world.put("sfs/a", "sfs/b")
    app.add("sfs/a")
    (odd,) = app.add("sfs/b")
    orphaned = under(world, app)
    (batch,) = orphaned.planned().batches
    app.run("UPDATE mail.attachments SET orphaned_at = %s WHERE id = %s", at, odd)
    orphaned.delete(batch)
    assert world.keys() == {"sfs/b"}
    assert list(app.left()) == [odd]


def test_an_id_that_may_be_null_names_no_row_for_good_and_is_refused(world: World, app: AppDatabase) -> None:
    app.run("ALTER TABLE mail.attachments ADD COLUMN number bigint UNIQUE")
    app.add("sfs/a")
    with pytest.raises(RowsError, match="NOT NULL"):
        under(world, app, id="number").planned()


@pytest.mark.parametrize(
    ("of", "values"),
    [
        ("uuid", [f"{n:08x}-0000-4000-8000-00000000000{n}" for n in range(5)]),
        (
            "text",
            ["it's", 'a "quoted" id', "50% {off} %s", "ä", "A", "a", "", "{a,b}", "back\\slash", "NULL"],
        ),
        ("bigint", [-(2**63), -1, 0, 1, 2**63 - 1]),
    ],
)
def test_ids_of_each_type_are_paged_and_deleted_one_by_one(
    world: World, app: AppDatabase, of: str, values: list[Any]
) -> None:
    app.run(f"ALTER TABLE mail.attachments ADD COLUMN name {of} UNIQUE")
    ids = app.add(*(f"sfs/{number}" for number in range(len(values))))
    for row, name in zip(ids, values, strict=True):
        app.run("UPDATE mail.attachments SET name = %s WHERE id = %s", name, row)
    app.run("ALTER TABLE mail.attachments ALTER name SET NOT NULL")
    world.put(*(f"sfs/{number}" for number in range(len(values))))
    orphaned = under(world, app, id="name")
    rows = orphaned.orphans
    assert rows is not None
    assert {row.row_id for page in rows.pages(size=2) for row in page} == {str(value) for value in values}
    orphaned.clean()
    assert not app.left()
    assert set(row_outcomes(world)) == {str(value) for value in values}


def test_a_malformed_row_whose_text_is_the_key_of_another_one_stops_no_plan(
    world: World, app: AppDatabase
) -> None:
    malformed, _ = app.add("sfs/a", f"s3://{world.bucket}/sfs/a")
    orphaned = under(world, app, key=URL)
    assert orphaned.clean().num_by_outcome == {"already_absent": 1}
    assert list(app.left()) == [malformed]
    orphaned.clean("run-2")
    assert list(app.left()) == [malformed]


@pytest.mark.parametrize("named", ["", "s3://", "x" * 1025], ids=["empty", "a URL of nothing", "too long"])
def test_a_text_that_is_no_key_waits_in_quarantine(world: World, app: AppDatabase, named: str) -> None:
    world.put("sfs/a")
    (odd, _) = app.add(named, "sfs/a")
    report = under(world, app).clean()
    assert report.num_by_outcome == {"deleted": 1, "quarantined": 1}
    assert list(app.left()) == [odd]


def test_a_text_that_is_longer_than_an_index_can_hold_waits_in_quarantine_too(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    app.run("DROP INDEX mail.attachments_key")
    app.add("sfs/a", None)
    app.run(
        "UPDATE mail.attachments SET sfs_key = (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 500) AS n) "
        "WHERE sfs_key IS NULL"
    )
    report = under(world, app).clean()
    assert report.num_by_outcome == {"deleted": 1, "quarantined": 1}
    assert len(app.left()) == 1


def test_a_row_that_names_another_file_by_the_time_of_its_delete_is_left(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a", "sfs/other")
    (row,) = app.add("sfs/a")
    orphaned = under(world, app)
    (batch,) = orphaned.planned().batches
    rows = orphaned.orphans
    assert rows is not None
    (planned,) = [one for page in rows.pages() for one in page]
    orphaned.delete(batch)
    assert planned.detached_at is not None
    (again,) = app.add("sfs/other")
    app.run("UPDATE mail.attachments SET orphaned_at = %s WHERE id = %s", planned.detached_at, again)
    done = rows.delete(row_ids=[str(again)], detached_ats=[planned.detached_at], names=["sfs/a"])
    assert done == (set(), {str(again)})
    assert row != again


def test_rows_that_a_policy_of_row_security_would_hide_are_told_and_nothing_is_planned(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    app.add("sfs/a", account="acme")
    app.add("sfs/a", account="bolt", age=None)
    app.run("ALTER TABLE mail.attachments ENABLE ROW LEVEL SECURITY")
    app.run("CREATE POLICY own ON mail.attachments USING (account = 'acme')")
    with pytest.raises(RowsError, match="row-level security"):
        under(world, app).planned()
    assert world.keys() == {"sfs/a"}


def test_a_draft_that_the_check_has_waited_for_is_seen_whatever_isolation_is_the_default(
    world: World, app: AppDatabase
) -> None:
    orphaned = under(world, app)
    strict = make_conninfo(app.conninfo, options="-c default_transaction_isolation=serializable")
    rows = app.rows(orphaned.policy, conninfo=strict)
    with rows.database.transaction() as conn:
        assert conn.execute("SHOW transaction_isolation").fetchone() == ("read committed",)


def test_a_foreign_key_that_would_refuse_the_delete_of_a_row_must_be_a_reference(
    world: World, app: AppDatabase
) -> None:
    named = [{"table": "mail.drafts", "column": "attachment_id", "to": "id"}]
    without, declared = under(world, app).orphans, under(world, app, references=named).orphans
    assert without is not None
    assert declared is not None
    without.refuse_unfit(is_deleting=True)
    app.run("ALTER TABLE mail.drafts ADD FOREIGN KEY (attachment_id) REFERENCES mail.attachments (id)")
    with pytest.raises(RowsError, match=r"mail\.drafts\.attachment_id is a foreign key"):
        without.refuse_unfit(is_deleting=True)
    declared.refuse_unfit(is_deleting=True)
    app.run("ALTER TABLE mail.drafts DROP CONSTRAINT drafts_attachment_id_fkey")
    app.run(
        "ALTER TABLE mail.drafts ADD FOREIGN KEY (attachment_id) REFERENCES mail.attachments (id) ON DELETE CASCADE"
    )
    without.refuse_unfit(is_deleting=True)


@pytest.mark.parametrize(
    "text", ["email_id IS NULL) OR (TRUE", "TRUE) UNION SELECT * FROM mail.attachments WHERE (TRUE"]
)
def test_a_condition_that_leaves_its_brackets_is_told_before_anything_is_planned(
    world: World, app: AppDatabase, text: str
) -> None:
    world.put("sfs/a")
    app.add("sfs/a", age=None)
    orphaned = under(world, app, orphaned=None, orphaned_sql=OrphanedSql(file="o.sql", text=text))
    with pytest.raises(RowsError, match="is no SQL"):
        orphaned.planned()


def test_what_a_trigger_of_the_application_says_of_a_row_is_not_repeated(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    app.run(
        "CREATE FUNCTION mail.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'not %', old.sfs_key; END $$"
    )
    app.run(
        "CREATE TRIGGER refuse BEFORE DELETE ON mail.attachments FOR EACH ROW EXECUTE FUNCTION mail.refuse()"
    )
    orphaned = under(world, app)
    (batch,) = orphaned.planned().batches
    result = orphaned.delete(batch)
    assert result.stopped_class == "config"
    assert result.stopped_message is not None
    assert "sfs/a" not in result.stopped_message
    assert "P0001" in result.stopped_message


def test_a_policy_that_goes_over_to_another_table_still_ends_what_it_planned_of_the_old_one(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a", "sfs/b")
    app.add("sfs/a")
    before = under(world, app, soft_delete="deleting_at")
    (batch,) = before.planned().batches
    app.run(
        "CREATE TABLE mail.files (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), sfs_key text, email_id bigint, "
        "orphaned_at timestamptz, deleting_at timestamptz)"
    )
    app.run("GRANT SELECT, DELETE, UPDATE ON mail.files TO retention_rows")
    after = under(world, app, table="mail.files", soft_delete="deleting_at").under(version="v2")
    after = replace(after, orphans=app.rows(after.policy))
    result = after.delete(batch)
    assert (result.stopped_class, result.num_failed) == (None, 0)
    assert world.outcomes() == {"sfs/a": "kept:policy_changed"}


def test_a_policy_that_goes_over_to_another_table_takes_no_mark_of_its_back(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a", "sfs/b")
    (row,) = app.add("sfs/a")
    before = under(world, app, soft_delete="deleting_at")
    (batch,) = before.planned().batches
    app.run("CREATE TABLE mail.files (LIKE mail.attachments INCLUDING ALL)")
    app.run("GRANT SELECT, DELETE, UPDATE ON mail.files TO retention_rows")
    app.run(
        "INSERT INTO mail.files (id, sfs_key, deleting_at) OVERRIDING SYSTEM VALUE VALUES (%s, 'sfs/b', now())",
        row,
    )
    after = under(world, app, table="mail.files", soft_delete="deleting_at").under(version="v2")
    replace(after, orphans=app.rows(after.policy)).delete(batch)
    assert app.run("SELECT deleting_at IS NOT NULL FROM mail.files") == [(True,)]


def test_a_mark_is_taken_back_where_the_policy_has_changed_since(world: World, app: AppDatabase) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    before = under(world, app, soft_delete="deleting_at")
    (batch,) = before.planned().batches
    app.run("UPDATE mail.attachments SET deleting_at = now()")
    after = before.under(version="v2")
    replace(after, orphans=app.rows(after.policy)).delete(batch)
    assert world.outcomes() == {"sfs/a": "kept:policy_changed"}
    assert app.run("SELECT deleting_at FROM mail.attachments") == [(None,)]


def test_two_waiting_commands_whose_rows_name_one_file_now_delete_it_once(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    (first,) = app.add("one")
    orphaned = under(world, app, key=URL)
    orphaned.clean()
    (second,) = app.add("two")
    orphaned.clean("run-2")
    app.run("UPDATE mail.attachments SET sfs_key = %s", f"s3://{world.bucket}/sfs/a")
    reread_all(orphaned, "redrive-1")
    report = orphaned.redrive("redrive-1")
    assert report.is_balanced
    assert not world.keys()
    assert not app.left()
    for balance in world.rows("SELECT * FROM s3_retention.balance"):
        assert (balance["num_pending"], balance["num_quarantined"]) == (0, 0)
    assert set(row_outcomes(world)) == {str(first), str(second)}


@pytest.mark.parametrize("last", ["SlowDown", "AccessDenied", "ExpiredToken"])
def test_a_mark_stays_where_the_first_answer_was_lost_whatever_the_last_one_says(
    world: World, app: AppDatabase, last: str
) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    orphaned = under(world, app, soft_delete="deleting_at")
    (batch,) = orphaned.planned().batches
    answers = iter([ReadTimeoutError(endpoint_url="store")])

    def lost_then_refused(**arguments: Any) -> Any:
        lost = next(answers, None)
        if lost is None:
            raise refusal(last, 403)
        world.gateway.client.delete_objects(**arguments)
        raise lost

    def refuse(**_: Any) -> Any:
        raise refusal(last, 403)

    calls = {"delete_objects": lost_then_refused, "delete_object": lost_then_refused, "head_object": refuse}
    orphaned.through(faulty_gateway(world.gateway, **calls)).delete(batch)
    assert not world.keys(), "the first request was heard"
    assert app.run("SELECT deleting_at IS NOT NULL FROM mail.attachments") == [(True,)]


def test_a_mark_is_taken_back_where_the_only_answer_was_a_denial(world: World, app: AppDatabase) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    world.s3.deny(world.bucket, ["sfs/a"])
    orphaned = under(world, app, soft_delete="deleting_at")
    orphaned.clean()
    assert app.run("SELECT deleting_at FROM mail.attachments") == [(None,)]


def test_a_row_that_is_corrected_to_a_file_which_a_plan_still_holds_is_left_to_that_plan(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    app.add("no url", f"s3://{world.bucket}/sfs/a")
    orphaned = under(world, app, key=URL)
    orphaned = replace(orphaned, changes=orphaned.changes | {"batch": {"size": 1}})
    malformed, other = sorted(orphaned.planned().batches, key=lambda one: one.batch_number)
    orphaned.delete(malformed)
    orphaned.sweep()
    app.run("UPDATE mail.attachments SET sfs_key = %s", f"s3://{world.bucket}/sfs/a")
    reread_all(orphaned, "redrive-1")
    assert orphaned.redrive("redrive-1").num_by_outcome == {"changed": 1}
    orphaned.delete(other)
    orphaned.report()
    (balance,) = world.rows("SELECT * FROM s3_retention.balance")
    assert (balance["num_discovered"], balance["num_pending"], balance["num_quarantined"]) == (2, 0, 0)
    assert world.keys() == {"sfs/a"}, "a row has come that was not planned"
    assert orphaned.clean("run-2").num_by_outcome == {"deleted": 1}
    assert not app.left()


def test_a_row_that_is_corrected_to_a_file_of_another_tenant_is_redriven_as_that_ones(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/acme/a", "sfs/bolt/a")
    app.add("sfs/acme/a")
    world.s3.deny(world.bucket, ["sfs/acme/a"])
    orphaned = under(world, app).under(
        tenant={"group": "tenant"}, select={"regex": "(?s)sfs/(?P<tenant>[^/]+)/.+"}
    )
    assert orphaned.clean().num_by_outcome == {"quarantined": 1}
    app.run("UPDATE mail.attachments SET sfs_key = 'sfs/bolt/a'")
    reread_all(orphaned, "redrive-1")
    assert orphaned.redrive("redrive-1").num_by_outcome == {"deleted": 1}
    tenants = world.rows("SELECT tenant FROM s3_retention.deleted_objects")
    assert [row["tenant"] for row in tenants] == ["bolt"]
