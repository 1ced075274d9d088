"""Every named query against the migrated schema, and the functions of the schema against Python."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus
from psycopg.types.json import Jsonb

from s3_retention.core.command import command_id, operation_id
from s3_retention.store import queries
from tests.factories import facts

if TYPE_CHECKING:
    from pathlib import Path

    from s3_retention.store.connection import Connection

UTC = timezone.utc
NOW = datetime(2026, 6, 1, tzinfo=UTC)
FILES = sorted((queries.sql_dir() / "queries").glob("*.sql"))
QUERIES = [(file.stem, name) for file in FILES for name in queries.names(file.stem)]
UTILITY = re.compile(r"CREATE TEMPORARY TABLE|CREATE INDEX|TRUNCATE")
# One value for each parameter, of the type that the code sends: Postgres is told these types.
_SAMPLES: tuple[tuple[Any, str], ...] = (
    (
        "text",
        (
            "acted_by aws_conn_id bucket claimed_by dag_id decided_by decision endpoint etag etag_condition code "
            "named kind flagged_by interval_key key name note only_bucket only_prefix policy policy_version prefix "
            "reason rules_hash run_id scope state stopped_class stopped_message task_id tenant timetable timezone "
            "versioning"
        ),
    ),
    (
        1,
        (
            "after_id batch_id batch_number batch_size chunk_id chunk_size chunks_per_batch fence finding_id "
            "generation hold_id interval_id keep_latest map_index max_batches max_commands max_rows num_bytes "
            "num_commands num_discovered num_drained num_due num_keys num_remaining num_scanned num_stragglers "
            "try_number after_generation after_interval_id only_interval_id daily weekly monthly yearly "
            "min_bytes_kept valid_latest valid_size quarantine_id size audit_id num_objects num_parked num_rows"
        ),
    ),
    (
        NOW,
        (
            "deadline_at due_at ends_at interval_ends_at interval_starts_at last_tick_at next_due_at due_from now "
            "start_at starts_at unclaimed_since deleted_before deleted_from last_modified_at due_before started_at "
            "uploaded_before"
        ),
    ),
    (True, "are_distinct are_periods has_keepers is_balanced is_whole may_be_there"),
    (1.5, "first_rate free_rate largest_tenant_share max_rate min_rate step"),
    (timedelta(minutes=10), "heartbeat lease older_than rescue_after retain safety_delay valid_for within"),
    (Jsonb({}), "detail counts did num_kept_by_reason over_limits"),
    (
        [1],
        (
            "attempts earlier_generations finding_ids generations interval_ids max_redrives min_bytes min_days "
            "quarantine_ids sizes weights"
        ),
    ),
    ([Jsonb({})], "details"),
    ([timedelta(0)], "safety_delays"),
    ([NOW], "befores detached_ats due_ats initiated_ats last_modified_ats not_befores sinces"),
    ([b"x" * 32], "command_ids operation_ids"),
    (b"x" * 32, "after_command_id command_id operation_id"),
    (b"x" * 64, "ids"),
    (b"x" * 32, "plan_hash"),
    ("{1,0}", "answers"),
    (
        ["text"],
        (
            "buckets causes codes etags failure_classes group_keys keys kinds marker_version_ids messages names "
            "outcomes policies reasons request_ids row_ids run_ids states subjects tenants upload_ids version_ids"
        ),
    ),
)
SAMPLES = {name: value for value, names in _SAMPLES for name in names.split()}


@pytest.mark.parametrize(("table", "name"), QUERIES)
def test_each_query_is_one_that_the_writer_can_run(conn: Connection, table: str, name: str) -> None:
    for temporary in ("candidates", "open_commands", "chunks", "ripe", "decisions"):
        conn.execute(queries.query("plan_candidates", f"create_plan_{temporary}"))
    conn.execute(queries.query("plan_canary", "create_plan_canary"))
    conn.execute(queries.query("plan_tenants", "create_plan_layout"))
    for temporary in ("currents", "kept_keys"):
        conn.execute(queries.query("plan_kept_keys", f"create_plan_{temporary}"))
    for temporary in ("rows", "orphans", "orphan_commands"):
        conn.execute(queries.query("plan_rows", f"create_plan_{temporary}"))
    conn.execute(queries.query("plan_keeps", "create_plan_held_groups"))
    for temporary in ("rows", "orphans", "objects", "differences"):
        conn.execute(queries.query("audit_sides", f"create_audit_{temporary}"))
    text = queries.query(table, name)
    if UTILITY.search(text):
        conn.execute(text)
        return
    if "FROM STDIN" in text:
        with conn.cursor().copy(text):
            return
    parameters = {each: SAMPLES[each] for each in re.findall(r"%\((\w+)\)", text)}
    converted = PostgresQuery(Transformer(conn))
    converted.convert(text, parameters)
    prepared = conn.pgconn.prepare(b"", converted.query, converted.types)
    assert prepared.status == ExecStatus.COMMAND_OK, prepared.error_message.decode()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_query_says_in_a_comment_what_it_does(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.startswith("-- name: ")
    named = re.findall(r"^-- name: ([a-z_]+)\n-- \S.*\n", text, re.MULTILINE)
    assert named == queries.names(file.stem)


def test_each_query_is_used_in_the_store_and_only_there() -> None:
    store = queries.sql_dir().parents[1] / "plugins" / "s3_retention" / "store"
    code = "".join(file.read_text(encoding="utf-8") for file in store.glob("*.py"))
    assert [name for _, name in QUERIES if f'"{name}"' not in code] == []


def test_no_query_name_is_given_twice() -> None:
    names = [name for _, name in QUERIES]
    assert sorted(set(names)) == sorted(names)


def test_an_unknown_query_is_a_fault_of_the_code() -> None:
    with pytest.raises(KeyError):
        queries.query("batches", "no_such_query")


# The functions of the schema ------------------------------------------------------------------------------
# What Postgres can hold: no NUL, no lone surrogate.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
times = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@given(bucket=texts, key=texts, version=texts)
def test_sql_makes_the_operation_id_that_python_makes(
    conn: Connection, bucket: str, key: str, version: str
) -> None:
    row = conn.execute(
        "SELECT s3_retention.operation_id(%s::text, %s::text, %s::text) AS made", [bucket, key, version]
    ).fetchone()
    assert row is not None
    assert row["made"].hex() == operation_id(bucket, key, version)


@given(
    key=texts,
    version_id=st.none() | texts,
    etag=st.none() | texts,
    at=times,
    size=st.integers(0, 2**63 - 1),
)
def test_sql_makes_the_command_id_that_python_makes(
    conn: Connection, key: str, version_id: str | None, etag: str | None, at: datetime, size: int
) -> None:
    one = facts(key, version_id=version_id, etag=etag, at=at, size=size)
    row = conn.execute(
        "SELECT s3_retention.command_id(s3_retention.operation_id(%s::text, %s::text, 'v1'), %s::text, %s::text, "
        "%s, %s::bigint) AS made",
        [one.ref.bucket, key, version_id, etag, at, size],
    ).fetchone()
    assert row is not None
    assert row["made"] == command_id(one, "v1")
