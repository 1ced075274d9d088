"""The schema of the ledger: what it refuses, whoever asks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from s3_retention.errors import LedgerUnavailableError, SchemaOutdatedError
from s3_retention.store import migrate
from sandbox import snapshot
from sandbox.ledger import OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_retention.store.connection import Connection
    from sandbox.ledger import Ledger
    from sandbox.postgres import Postgres
    from tests.factories import World

INTERVAL = """
INSERT INTO s3_retention.intervals (
    policy, policy_version, interval_key, starts_at, ends_at, follows, state, planned_at, completed_at
) VALUES (%(policy)s, 'v1', %(key)s, %(start)s, %(end)s, %(follows)s, 'completed', now(), now())
"""
BATCH = """
INSERT INTO s3_retention.batches (kind, policy, interval_id, generation, batch_number, num_commands, num_bytes)
VALUES ('cleanup', 'p', 1, 0, 1, 1, 0)
"""


def days(*numbers: int | None) -> list[str | None]:
    return [None if number is None else f"2026-06-{number:02d}T00:00:00Z" for number in numbers]


def add(root: Connection, start: int, end: int, follows: int | None, *, policy: str = "p") -> None:
    begins, ends, before = days(start, end, follows)
    root.execute(
        INTERVAL,
        {"policy": policy, "key": f"{policy}:{start}:{end}", "start": begins, "end": ends, "follows": before},
    )


@pytest.fixture
def chain(root: Connection) -> Connection:
    """A policy whose intervals are 1 to 5 and 5 to 9 June."""
    root.execute(
        "INSERT INTO s3_retention.policy_versions (policy, policy_version, rules_hash) "
        "VALUES ('p', 'v1', repeat('0', 64)), ('q', 'v1', repeat('0', 64))"
    )
    add(root, 1, 5, None)
    add(root, 5, 9, 5)
    return root


def test_intervals_that_tile_are_taken(chain: Connection) -> None:
    add(chain, 9, 10, 9)
    add(chain, 20, 21, None, policy="q")


@pytest.mark.parametrize(
    ("start", "end", "follows", "constraint"),
    [
        (10, 12, 10, "intervals_policy_follows_fkey"),  # a hole
        (10, 12, None, "intervals_one_root"),  # a hole, and a second beginning
        (8, 12, 8, "intervals_policy_follows_fkey"),  # an overlap
        (5, 12, 5, "intervals_policy_starts_at_key"),  # an overlap from the same start
        (3, 9, None, "intervals_policy_ends_at_key"),  # an overlap to the same end
        (2, 3, 2, "intervals_policy_follows_fkey"),  # inside another one
        (9, 9, 9, "intervals_check"),  # nothing
        (9, 8, 9, "intervals_check"),  # backwards
        (9, 12, 5, "intervals_check"),  # follows something else
    ],
)
def test_a_hole_or_an_overlap_is_refused(
    chain: Connection, start: int, end: int, follows: int | None, constraint: str
) -> None:
    with pytest.raises(psycopg.errors.IntegrityError) as caught:
        add(chain, start, end, follows)
    assert re.sub(r"\d$", "", caught.value.diag.constraint_name or "") == constraint


def test_an_interval_of_another_policy_closes_no_hole(chain: Connection) -> None:
    add(chain, 9, 10, None, policy="q")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        add(chain, 10, 11, 10)


def test_a_second_unfinished_interval_is_refused(chain: Connection) -> None:
    open_interval = (
        "INSERT INTO s3_retention.intervals (policy, policy_version, interval_key, starts_at, ends_at, follows) "
        "VALUES ('p', 'v1', %s, %s, %s, %s)"
    )
    chain.execute(open_interval, ["one", *days(9, 10, 9)])
    with pytest.raises(psycopg.errors.UniqueViolation, match="intervals_one_unfinished"):
        chain.execute(open_interval, ["two", *days(10, 11, 10)])


@pytest.mark.parametrize("column", ["position", "completed_through"])
def test_a_watermark_never_moves_back(root: Connection, column: str) -> None:
    root.execute(
        "INSERT INTO s3_retention.watermarks (policy, position, completed_through) "
        "VALUES ('p', '2026-06-02', '2026-06-01')"
    )
    move = sql.SQL("UPDATE s3_retention.watermarks SET {} = '2026-05-31'").format(sql.Identifier(column))
    with pytest.raises(psycopg.errors.CheckViolation, match="the watermark of policy p only moves forward"):
        root.execute(move)


def test_what_is_completed_never_overtakes_what_is_planned(root: Connection) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        root.execute(
            "INSERT INTO s3_retention.watermarks (policy, position, completed_through) "
            "VALUES ('p', '2026-06-01', '2026-06-02')"
        )


@pytest.mark.parametrize("num_commands", [0, 1001])
def test_a_chunk_of_nothing_or_of_more_than_a_request_takes_is_refused(
    chain: Connection, num_commands: int
) -> None:
    chain.execute(BATCH)
    with pytest.raises(psycopg.errors.CheckViolation):
        chain.execute(
            """
            INSERT INTO s3_retention.chunks (
                batch_id, interval_id, generation, chunk_number, bucket, keys, version_ids, etags, sizes,
                last_modified_ats, due_ats, group_keys, num_commands
            )
            SELECT 1, 1, 0, 1, 'b', t, t, t, array_fill(1::bigint, ARRAY[n]), array_fill(now(), ARRAY[n]),
                array_fill(now(), ARRAY[n]), t, n
            FROM (SELECT %(n)s::integer AS n, array_fill('k'::text, ARRAY[%(n)s::integer]) AS t) AS arrays
            """,
            {"n": num_commands},
        )


def test_a_chunk_whose_arrays_differ_in_length_is_refused(chain: Connection) -> None:
    chain.execute(BATCH)
    with pytest.raises(psycopg.errors.CheckViolation):
        chain.execute(
            """
            INSERT INTO s3_retention.chunks (
                batch_id, interval_id, generation, chunk_number, bucket, keys, version_ids, etags, sizes,
                last_modified_ats, due_ats, group_keys, num_commands
            )
            VALUES (1, 1, 0, 1, 'b', '{a,b}', '{x,y}', '{x,y}', '{1}', '{now,now}', '{now,now}', '{x,y}', 2)
            """
        )


def test_a_stopped_cleanup_batch_cannot_be_closed(chain: Connection) -> None:
    chain.execute(BATCH)
    with pytest.raises(psycopg.errors.CheckViolation):
        chain.execute(
            "UPDATE s3_retention.batches SET closed_at = now(), stopped_class = 'c', stopped_message = 'm'"
        )


def test_a_reason_stands_with_what_is_kept_and_with_nothing_else(root: Connection) -> None:
    root.execute("SELECT s3_retention.ensure_ledger_partition(1)")
    entry = (
        "INSERT INTO s3_retention.ledger_entries (interval_id, generation, command_id, operation_id, batch_id, "
        "fence, bucket, key, size, last_modified_at, due_at, outcome, reason, num_attempts) VALUES "
        "(1, 0, sha256('a'), sha256('b'), 1, 1, 'b', 'k', 1, now(), now(), %s, %s, 0)"
    )
    for outcome, reason in (("kept", None), ("deleted", "why"), ("quarantined", None)):
        with pytest.raises(psycopg.errors.CheckViolation):
            root.execute(entry, [outcome, reason])


def test_entries_of_intervals_far_apart_have_partitions_of_their_own(root: Connection) -> None:
    for interval_id in (1, 999, 1000, 123_456_789, 1):
        root.execute("SELECT s3_retention.ensure_ledger_partition(%s::bigint)", [interval_id])
    rows = root.execute(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits "
        "WHERE inhparent = 's3_retention.ledger_entries'::regclass ORDER BY inhrelid"
    ).fetchall()
    assert [row["name"].rpartition("_")[2] for row in rows] == ["0", "1000", "123456000"]


def test_sql_and_python_agree_what_now_is_only_through_the_clock(world: World) -> None:
    world.set_clock("'2026-06-01T00:00:00Z'::timestamptz")
    world.claim()
    stamps = world.rows("SELECT first_claimed_at, claimed_until FROM s3_retention.intervals")
    assert [str(value) for value in stamps[0].values()] == [
        "2026-06-01 00:00:00+00:00",
        "2026-06-01 00:10:00+00:00",
    ]


# Migrations -----------------------------------------------------------------------------------------------
@pytest.fixture
def empty(postgres_server: Postgres, migrated: Ledger) -> Iterator[str]:
    """A database without a ledger; the roles are there."""
    name = f"{migrated.database}_empty"
    postgres_server.create_database(name, owner=OWNER)
    yield name
    postgres_server.drop_database(name)


def opened(conninfo: str) -> Any:
    return psycopg.connect(conninfo, row_factory=dict_row, autocommit=True)


def test_an_empty_database_is_refused_with_the_command_to_run(postgres_server: Postgres, empty: str) -> None:
    with opened(postgres_server.conninfo(OWNER, empty)) as conn:
        with pytest.raises(SchemaOutdatedError) as caught:
            migrate.check_revision(conn)
        assert conn.execute("SELECT 1 AS one").fetchone() == {"one": 1}
    assert str(caught.value) == (
        "the ledger schema is at revision none, and this code needs 0017: run `make migrate`, or "
        "`PYTHONPATH=plugins python -m s3_retention migrate`, with the connection of the schema's owner in "
        "S3_RETENTION_LEDGER_CONNINFO"
    )


def test_an_older_schema_is_refused_with_both_revisions(conn: Connection, root: Connection) -> None:
    migrate.check_revision(conn)
    root.execute("UPDATE s3_retention.alembic_version SET version_num = '0000'")
    with pytest.raises(SchemaOutdatedError, match="at revision 0000, and this code needs 0017"):
        migrate.check_revision(conn)


def test_a_ledger_that_may_not_be_read_is_no_outdated_one(conn: Connection, root: Connection) -> None:
    root.execute("REVOKE SELECT ON s3_retention.alembic_version FROM s3_retention_writer")
    with pytest.raises(Exception, match="permission denied") as caught:
        migrate.check_revision(conn)
    assert not isinstance(caught.value, SchemaOutdatedError)


def test_migrating_twice_changes_nothing(postgres_server: Postgres, ledger: Ledger) -> None:
    before = snapshot.snapshot(postgres_server, ledger.database)
    migrate.upgrade(ledger.owner_conninfo)
    assert snapshot.snapshot(postgres_server, ledger.database) == before


def test_migrating_needs_no_superuser(postgres_server: Postgres, empty: str) -> None:
    migrate.upgrade(postgres_server.conninfo(OWNER, empty))
    with opened(postgres_server.conninfo(OWNER, empty)) as conn:
        migrate.check_revision(conn)


def test_migrating_a_database_that_is_not_there_says_so(postgres_server: Postgres, migrated: Ledger) -> None:
    assert migrated.database == "ledger"
    with pytest.raises(LedgerUnavailableError, match="cannot be reached"):
        migrate.upgrade(postgres_server.conninfo(OWNER, "no_such_database"))


def test_the_required_revision_is_the_newest_migration() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == migrate.REQUIRED_REVISION


def test_the_snapshot_of_the_schema_is_what_the_migrations_make(
    postgres_server: Postgres, ledger: Ledger
) -> None:
    assert snapshot.FILE.read_text(encoding="utf-8") == snapshot.snapshot(postgres_server, ledger.database)
