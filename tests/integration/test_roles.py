"""What each role of the ledger may do, and above all what it may not."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from s3_retention.core.holder import Holder
from s3_retention.steps import simulate
from sandbox.ledger import OWNER
from tests.factories import Timeless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_retention.store.connection import Connection
    from sandbox.ledger import Ledger
    from tests.factories import World

DENIED = psycopg.errors.InsufficientPrivilege
APPEND_ONLY = [
    "ledger_entries",
    "claims",
    "quarantine_events",
    "run_reports",
    "policy_versions",
    "watch_passes",
    "aborted_uploads",
    "restores",
    "simulations",
    "command_rows",
    "row_entries",
    "tenant_waits",
    "audits",
    "audit_findings",
]
TABLES = [*APPEND_ONLY, "watermarks", "intervals", "batches", "chunks", "keepers", "failures", "quarantine"]
TABLES += ["schedules", "missed_intervals", "findings"]


def table(name: str) -> sql.Identifier:
    return sql.Identifier("s3_retention", name)


def plain_column(root: Connection, name: str) -> sql.Identifier:
    # The second: the first one of some tables is generated, and refuses to change for that reason.
    row = root.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = ('s3_retention.' || %s)::regclass AND attnum = 2",
        [name],
    ).fetchone()
    assert row is not None
    return sql.Identifier(row["attname"])


@pytest.mark.parametrize("name", APPEND_ONLY)
def test_the_writer_can_neither_change_nor_delete_what_is_append_only(
    conn: Connection, root: Connection, name: str
) -> None:
    column = plain_column(root, name)
    with pytest.raises(DENIED):
        conn.execute(sql.SQL("UPDATE {} SET {} = {}").format(table(name), column, column))
    with pytest.raises(DENIED):
        conn.execute(sql.SQL("DELETE FROM {}").format(table(name)))


@pytest.mark.parametrize("name", TABLES)
def test_the_writer_can_neither_empty_nor_drop_nor_alter_a_table(conn: Connection, name: str) -> None:
    for statement in ("TRUNCATE {} CASCADE", "DROP TABLE {} CASCADE", "ALTER TABLE {} DISABLE TRIGGER ALL"):
        with pytest.raises(DENIED):
            conn.execute(sql.SQL(statement).format(table(name)))


def test_the_writer_can_delete_from_no_table_but_failures(conn: Connection) -> None:
    for name in TABLES:
        statement = sql.SQL("DELETE FROM {}").format(table(name))
        if name == "failures":
            conn.execute(statement)
        else:
            with pytest.raises(DENIED):
                conn.execute(statement)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("chunks", "keys"),
        ("chunks", "etags"),
        ("intervals", "starts_at"),
        ("intervals", "ends_at"),
        ("batches", "num_commands"),
        ("batches", "interval_id"),
        ("quarantine", "key"),
        ("quarantine", "command_id"),
        ("quarantine", "first_failed_at"),
        ("watermarks", "policy"),
        ("schedules", "policy"),
        ("missed_intervals", "due_at"),
        ("missed_intervals", "cause"),
        ("missed_intervals", "flagged_at"),
        ("findings", "kind"),
        ("findings", "opened_at"),
    ],
)
def test_the_writer_cannot_change_what_was_planned(conn: Connection, name: str, column: str) -> None:
    change = sql.SQL("UPDATE {} SET {} = NULL").format(table(name), sql.Identifier(column))
    with pytest.raises(DENIED):
        conn.execute(change)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE s3_retention.mine (a integer)",
        "CREATE OR REPLACE FUNCTION s3_retention.clock() RETURNS timestamptz LANGUAGE sql RETURN now()",
        "DROP SCHEMA s3_retention CASCADE",
        "DROP VIEW s3_retention.balance",
        "UPDATE s3_retention.alembic_version SET version_num = '9'",
        "SET ROLE s3_retention_owner",
        "ALTER FUNCTION s3_retention.refuse_change OWNER TO s3_retention_writer",
    ],
)
def test_the_writer_cannot_change_the_schema(conn: Connection, statement: str) -> None:
    with pytest.raises(DENIED):
        conn.execute(statement)


def test_the_writer_can_get_a_partition_made_and_cannot_reach_into_it(conn: Connection) -> None:
    conn.execute("SELECT s3_retention.ensure_ledger_partition(42)")
    conn.execute("SELECT s3_retention.ensure_ledger_partition(42)")
    for statement in (
        "DELETE FROM s3_retention.ledger_entries_0",
        "UPDATE s3_retention.ledger_entries_0 SET outcome = 'deleted'",
        "TRUNCATE s3_retention.ledger_entries_0",
        "DROP TABLE s3_retention.ledger_entries_0",
        "ALTER TABLE s3_retention.ledger_entries DETACH PARTITION s3_retention.ledger_entries_0",
    ):
        with pytest.raises(DENIED):
            conn.execute(statement)


def test_the_partition_function_cannot_be_led_astray_by_the_callers_tables(conn: Connection) -> None:
    # It runs as the owner: a table of the caller must not stand in for one of the schema.
    conn.execute("CREATE TEMPORARY TABLE ledger_entries (a integer)")
    conn.execute("SET search_path = pg_temp, s3_retention")
    conn.execute("SELECT s3_retention.ensure_ledger_partition(5000)")
    row = conn.execute("SELECT 's3_retention.ledger_entries_5000'::regclass::oid > 0 AS made").fetchone()
    assert row == {"made": True}


@pytest.fixture
def used(world: World) -> World:
    """A ledger with a row in every table."""
    world.put("exports/2020-01/a.json", "exports/2020-01/b.json")
    world.s3.deny(world.bucket, ["exports/2020-01/a.json"])
    world.clean()
    world.watch()
    world.conn.execute(
        "INSERT INTO s3_retention.aborted_uploads "
        "(bucket, upload_id, policy, interval_id, dag_id, run_id, key, initiated_at, outcome) "
        "SELECT 'b', 'u', policy, interval_id, 'd', 'r', 'k', starts_at, 'aborted' FROM s3_retention.intervals"
    )
    world.conn.execute(
        "INSERT INTO s3_retention.restores (interval_id, generation, command_id, operation_id, bucket, key, outcome, "
        "dag_id, run_id, acted_by) SELECT interval_id, generation, command_id, operation_id, bucket, key, 'purged', "
        "'d', 'r', 'ann' FROM s3_retention.ledger_entries"
    )
    for table_name, columns, values in (
        ("command_rows", "named, row_ids, detached_ats", "'k', '{1}', ARRAY[settled_at]"),
        ("row_entries", "row_id, outcome, batch_id, fence", "'1', 'deleted', batch_id, fence"),
    ):
        world.root.execute(
            f"INSERT INTO s3_retention.{table_name} (interval_id, generation, command_id, {columns}) "  # noqa: S608
            f"SELECT interval_id, generation, command_id, {values} FROM s3_retention.ledger_entries"
        )
    world.conn.execute(
        "INSERT INTO s3_retention.tenant_waits (interval_id, generation, tenant, num_paused, num_over_cap) "
        "SELECT interval_id, 0, 't', 1, 0 FROM s3_retention.intervals"
    )
    world.conn.execute(
        "WITH audit AS (INSERT INTO s3_retention.audits (policy, policy_version, started_at, num_objects, counts, "
        "dag_id, run_id) VALUES ('p', 'v1', now(), 1, '{}', 'd', 'r') RETURNING audit_id) "
        "INSERT INTO s3_retention.audit_findings (audit_id, kind, place, bucket, key, state) "
        "SELECT audit_id, 'overdue', 1, 'b', 'k', 'confirmed' FROM audit"
    )
    source = Timeless(world.gateway, world.bucket, "exports/")
    simulate.run(world.conn, source, world.policy, Holder("d", "r", "plan_commands"))
    return world


@pytest.mark.parametrize("name", APPEND_ONLY)
@pytest.mark.parametrize("role", [OWNER, "postgres"])
def test_even_the_owner_and_a_superuser_are_refused_by_the_trigger(
    used: World, ledger: Ledger, name: str, role: str
) -> None:
    column = plain_column(used.root, name)
    with closing(psycopg.connect(ledger.postgres.conninfo(role, ledger.database), autocommit=True)) as own:
        for statement in ("UPDATE {} SET {} = {}", "DELETE FROM {}"):
            with pytest.raises(psycopg.errors.RestrictViolation, match="is append-only"):
                own.execute(sql.SQL(statement).format(table(name), column, column))
            if name == "ledger_entries":
                partition = table("ledger_entries_0")
                with pytest.raises(psycopg.errors.RestrictViolation, match="is append-only"):
                    own.execute(sql.SQL(statement).format(partition, column, column))


@pytest.fixture
def reader(ledger: Ledger, root: Connection) -> Iterator[psycopg.Connection[Any]]:
    """A login of the readers."""
    root.execute("DROP ROLE IF EXISTS test_reader")
    root.execute("CREATE ROLE test_reader LOGIN IN ROLE s3_retention_reader")
    with closing(
        psycopg.connect(ledger.postgres.conninfo("test_reader", ledger.database), autocommit=True)
    ) as own:
        yield own


def test_the_reader_can_read_everything_and_change_nothing(
    used: World, reader: psycopg.Connection[Any]
) -> None:
    for name in (*TABLES, "commands", "unfinished_commands", "balance"):
        reader.execute(sql.SQL("SELECT * FROM {}").format(table(name)))
    assert reader.execute("SELECT count(*) FROM s3_retention.ledger_entries").fetchone() == (1,)
    for name in TABLES:
        column = plain_column(used.root, name)
        for statement in (
            "UPDATE {} SET {} = NULL",
            "DELETE FROM {}",
            "TRUNCATE {}",
            "INSERT INTO {} DEFAULT VALUES",
        ):
            with pytest.raises(DENIED):
                reader.execute(sql.SQL(statement).format(table(name), column))
    with pytest.raises(DENIED):
        reader.execute("SELECT s3_retention.ensure_ledger_partition(1)")


def test_not_even_the_owner_empties_what_is_append_only(used: World) -> None:
    partition = used.root.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 's3_retention.ledger_entries'::regclass"
    ).fetchone()
    assert partition is not None
    names = ["ledger_entries", "claims", "quarantine_events", "run_reports", "policy_versions"]
    names += ["watch_passes", "missed_intervals"]
    for name in (*(f"s3_retention.{name}" for name in names), next(iter(dict(partition).values()))):
        with pytest.raises(psycopg.errors.RestrictViolation):
            used.root.execute(sql.SQL("TRUNCATE {} CASCADE").format(sql.Identifier(*name.split("."))))
