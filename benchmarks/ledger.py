"""How the ledger settles as it grows: chunks of 1,000 through the package's own statement."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from benchmarks.bed import fresh_ledger
from benchmarks.policy import NAME, holder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

from s3_retention.core.outcome import Final, Outcome
from s3_retention.store import batches, chunks, ledger_entries
from s3_retention.store.connection import connect, transaction

LEASE = timedelta(minutes=10)
STEP = 100_000
"""Rows between two points."""
DONE = Outcome(Final.DELETED, request_id="18BD64E5F0B0D1C2")
# What a plan leaves, made by the server itself: a plan of millions would be another benchmark.
PLAN = (
    """
    WITH version AS (
        INSERT INTO s3_retention.policy_versions (policy, policy_version, rules_hash)
        VALUES (%(policy)s, 'v1', repeat('0', 64))
    )
    INSERT INTO s3_retention.intervals (
        policy, policy_version, interval_key, starts_at, ends_at, state, planned_at, num_discovered
    ) VALUES (%(policy)s, 'v1', %(policy)s, '1970-01-01', '2026-06-01', 'planned', now(), %(rows)s)
    RETURNING interval_id
    """,
    """
    INSERT INTO s3_retention.batches (
        kind, policy, interval_id, generation, batch_number, num_commands, num_bytes, dag_id, run_id, map_index
    )
    SELECT 'cleanup', %(policy)s, %(interval_id)s, 0, 1, %(rows)s, %(rows)s, %(dag_id)s, %(run_id)s, 0
    RETURNING batch_id
    """,
    """
    INSERT INTO s3_retention.chunks (
        batch_id, interval_id, generation, chunk_number, bucket, keys, version_ids, etags, sizes, last_modified_ats,
        due_ats, group_keys, num_commands
    )
    SELECT
        %(batch_id)s, %(interval_id)s, 0, chunk, 'bench',
        array_agg('exports/2026-01/' || %(number)s || '/customer-' || chunk * 1000 + one || '.json'),
        array_agg(NULL::text), array_agg('"d41d8cd98f00b204e9800998ecf8427e"'::text), array_agg(100::bigint),
        array_agg('2026-01-01'::timestamptz), array_agg('2026-02-01'::timestamptz), array_agg(NULL::text), 1000
    FROM generate_series(0, %(rows)s / 1000 - 1) AS chunk
    CROSS JOIN generate_series(1, 1000) AS one
    GROUP BY chunk
    """,
)


@dataclass(frozen=True)
class Point:
    """The settle rate, in rows a second of wall time, while the ledger grew to ``num_rows``."""

    num_rows: int
    rate: float


def measure_ledger(folder: Path, *, num_rows: int, per_interval: int) -> Iterator[Point]:
    """Fill a ledger, interval by interval, and give the rate of each interval's rows.

    The time is that of the transactions that settle; loading the commands is not in it.
    """
    root: psycopg.Connection[Any]
    with (
        fresh_ledger(folder) as (ledger, _),
        closing(psycopg.connect(ledger.superuser_conninfo, autocommit=True)) as root,
        closing(connect(ledger.writer_conninfo)) as conn,
    ):
        total = 0
        for number in range(num_rows // per_interval):
            run = f"run-{number}"
            batch_id = _plan(root, number, per_interval, run)
            with transaction(conn):
                batch = batches.claim(conn, batch_id, holder=holder("delete", 0, run), lease=LEASE)
            assert batch is not None  # noqa: S101 - for the type checker
            num_settled, seconds = 0, 0.0
            for chunk_id in chunks.list_open(conn, batch_id=batch_id):
                settled = [
                    (one, DONE, 1)
                    for one in chunks.list_unfinished(conn, chunk_id=chunk_id, fence=batch.fence)
                ]
                started = time.monotonic()
                with transaction(conn):
                    ledger_entries.settle(conn, batch, settled, chunk_id=chunk_id, lease=LEASE, is_whole=True)
                seconds += time.monotonic() - started
                num_settled += len(settled)
                total += len(settled)
                if total % STEP == 0:
                    yield Point(total, num_settled / seconds)
                    num_settled, seconds = 0, 0.0


def _plan(root: psycopg.Connection[Any], number: int, rows: int, run: str) -> int:
    to_interval, to_batch, to_chunks = PLAN
    values: dict[str, Any] = {"policy": f"{NAME}_{number}", "number": number, "rows": rows}
    of = holder("delete", 0, run)
    (values["interval_id"],) = root.execute(to_interval, values).fetchone() or (None,)
    root.execute("SELECT s3_retention.ensure_ledger_partition(%(interval_id)s)", values)
    values |= {"dag_id": of.dag_id, "run_id": of.run_id}
    (values["batch_id"],) = root.execute(to_batch, values).fetchone() or (None,)
    root.execute(to_chunks, values)
    return int(values["batch_id"])
