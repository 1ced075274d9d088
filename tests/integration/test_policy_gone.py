"""A policy whose file is deleted or renamed: its history stays readable, and its open commands visible."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from s3_retention.core.holder import Holder
from s3_retention.errors import BatchStoppedError, UnbalancedError
from s3_retention.steps import delete, report
from s3_retention.store import batches
from tests.factories import NAME, REDRIVE, World, a_policy, holder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.ledger import Ledger

A, B, C, D = (f"exports/2020-01/{name}.json" for name in "abcd")
NEW_NAME = "digests_of_the_week"
OF_POLICY = (
    "policy_versions",
    "watermarks",
    "intervals",
    "batches",
    "commands",
    "ledger_entries",
    "quarantine",
    "missed_intervals",
    "run_reports",
    "balance",
    "unfinished_commands",
)
"""Tables and views with the history of a policy."""


@pytest.fixture
def reader(ledger: Ledger) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """The ledger as people and dashboards have it."""
    opened: psycopg.Connection[dict[str, Any]]
    opened = psycopg.connect(ledger.superuser_conninfo, row_factory=dict_row, autocommit=True)
    with closing(opened):
        opened.execute("SET ROLE s3_retention_reader")
        yield opened


@pytest.fixture
def left(world: World) -> World:
    """A policy with one interval that is complete, one whose two commands nobody has begun, and B in quarantine.

    Its ticks of 4:00 and 5:00 were missed and covered by a later run, that of 7:00 was missed. The year
    is one in which all that was just uploaded is of the past.
    """
    scheduled = world.under(schedule="0 * * * *")
    scheduled.set_clock("'2096-06-10T03:30:00Z'::timestamptz")
    scheduled.watch()
    scheduled.s3.deny(scheduled.bucket, [B])
    scheduled.put(A, B)
    scheduled.set_clock("'2096-06-10T05:30:00Z'::timestamptz")
    scheduled.flag(scheduled.value("SELECT '2096-06-10T06:00:00Z'::timestamptz"))
    scheduled.clean("run-1")
    scheduled.put(C, D)
    scheduled.set_clock("'2096-06-10T07:30:00Z'::timestamptz")
    scheduled.planned("run-2")
    with pytest.raises(UnbalancedError):
        scheduled.report("run-2")
    scheduled.watch()
    return scheduled


def renamed(world: World) -> World:
    return world.under(name=NEW_NAME)


def clean_renamed(world: World, run: str = "run-9") -> Any:
    """A whole run of the renamed policy."""
    new = renamed(world)
    for batch in new.planned(run).batches:
        new.delete(batch, run)
    new.sweep(run)
    return report.run(new.conn, holder("report", run), policy=NEW_NAME, interval_id=new.interval_id())


def history(conn: psycopg.Connection[dict[str, Any]]) -> dict[str, list[str]]:
    """Every row that the ledger has of the old policy."""
    of_policy = {
        "ledger_entries": "interval_id IN (SELECT interval_id FROM s3_retention.intervals WHERE policy = %s)",
        "unfinished_commands": "interval_id IN (SELECT interval_id FROM s3_retention.intervals WHERE policy = %s)",
    }
    found = {}
    for name in OF_POLICY:
        where = of_policy.get(name, "policy = %s")
        rows = conn.execute(
            f"SELECT to_jsonb(one)::text AS row FROM s3_retention.{name} AS one WHERE {where} ORDER BY 1",  # noqa: S608
            [NAME],
        )
        found[name] = [row["row"] for row in rows]
    return found


# Deleted --------------------------------------------------------------------------------------------------
def test_the_history_of_a_policy_without_a_file_is_all_there_for_the_reader(
    left: World, reader: psycopg.Connection[dict[str, Any]]
) -> None:
    before = history(reader)
    assert {name: len(rows) for name, rows in before.items()} == {
        "policy_versions": 1,
        "watermarks": 1,
        "intervals": 2,
        "batches": 2,
        "commands": 4,
        "ledger_entries": 1,
        "quarantine": 1,
        "missed_intervals": 3,
        "run_reports": 2,
        "balance": 2,
        "unfinished_commands": 2,
    }
    left.watch(a_policy(name="another"))
    assert history(reader) == before
    balance = "SELECT num_discovered, num_deleted, num_quarantined, num_pending FROM s3_retention.balance"
    rows = reader.execute(f"{balance} ORDER BY interval_id").fetchall()
    assert [tuple(row.values()) for row in rows] == [(2, 1, 1, 0), (2, 0, 0, 2)]


def test_the_watch_still_finds_what_waits_of_a_policy_without_a_file(left: World) -> None:
    left.set_clock("'2096-06-10T09:30:00Z'::timestamptz")
    left.watch(a_policy(name="another"))
    found = left.open_findings()
    assert found[("quarantine_open", "permission")]["num_commands"] == 1
    # The tick of 7:00, when the file was there, and those of 8:00 and 9:00, when it was not.
    assert found[("missed_intervals", "")]["num_missed"] == 3
    left.set_clock("'2096-06-13T12:00:00Z'::timestamptz")
    left.watch(a_policy(name="another"))
    assert ("watermark_age", "") in left.open_findings()


def test_open_commands_of_a_policy_without_a_file_are_found_until_a_run_of_it_has_ended_them(
    left: World,
) -> None:
    left.watch()
    assert ("no_policy_file", "") not in left.open_findings()
    for _ in range(2):
        left.watch(a_policy(name="another"))
        found = left.open_findings()[("no_policy_file", "")]
        assert (found["num_batches"], found["num_commands"]) == (1, 2)
    assert left.value("SELECT count(*) FROM s3_retention.findings WHERE kind = 'no_policy_file'") == 1
    left.clean("run-3")
    # Nothing of it is open now: the file may go.
    left.watch(a_policy(name="another"))
    assert ("no_policy_file", "") not in left.open_findings()
    assert left.balance() == (2, 2, 0, 0, 0, 0, 0)


def test_a_manual_policy_that_no_watch_ever_saw_is_found_without_its_file_too(world: World) -> None:
    world.put(A)
    world.planned()
    world.watch(a_policy(name="another"))
    assert world.open_findings()[("no_policy_file", "")]["num_commands"] == 1


def test_a_worker_that_vanished_before_the_file_went_is_swept_to_quarantine(left: World) -> None:
    batch_id = left.value("SELECT batch_id FROM s3_retention.batches WHERE closed_at IS NULL")
    batches.claim(left.conn, batch_id, holder=holder(run="run-2"), lease=left.policy.window.lease)
    left.set_clock("'2096-06-10T09:30:00Z'::timestamptz")
    swept = left.watch(a_policy(name="another"))
    assert swept.num_swept == {"worker_lost": 2}
    assert left.waiting() == {B: "permission", C: "worker_lost", D: "worker_lost"}
    assert left.balance() == (2, 0, 0, 0, 0, 2, 0)


def test_a_redrive_of_a_policy_without_a_file_is_stopped_and_what_it_took_waits_again(left: World) -> None:
    left.s3.allow(left.bucket, [B])
    (batch,) = left.select().batches
    who = Holder(REDRIVE, "redrive-1", "delete", batch.map_index)
    delete.stop(
        left.conn,
        batch.batch_id,
        who,
        lease=left.policy.window.lease,
        stopped_class="config",
        stopped_message="no policy file",
    )
    left.sweep("redrive-1", dag=REDRIVE)
    with pytest.raises(BatchStoppedError, match="waits in quarantine for another one"):
        left.report_redrive()
    assert left.waiting() == {B: "permission"}
    assert left.keys() == {B, C, D}
    # The file is back.
    assert left.redrive("redrive-2").num_by_outcome == {"deleted": 1}


# Renamed --------------------------------------------------------------------------------------------------
def test_a_renamed_policy_has_a_watermark_of_its_own_and_leaves_the_old_history_as_it_was(
    left: World, reader: psycopg.Connection[dict[str, Any]]
) -> None:
    before = history(reader)
    clean_renamed(left)
    left.watch(renamed(left).policy)
    assert history(reader) == before
    rows = reader.execute(
        "SELECT starts_at, ends_at, state, follows FROM s3_retention.intervals WHERE policy = %s", [NEW_NAME]
    ).fetchall()
    assert [(row["starts_at"].year, row["state"], row["follows"]) for row in rows] == [
        (1970, "completed", None)
    ]
    marks = reader.execute("SELECT policy, position FROM s3_retention.watermarks ORDER BY 1").fetchall()
    assert [row["policy"] for row in marks] == [NEW_NAME, NAME]
    # The commands of the old name wait for its file, although their objects are gone.
    assert left.open_findings()[("no_policy_file", "")]["num_commands"] == 2


def test_what_waits_in_quarantine_under_the_old_name_is_planned_anew_under_the_new_one(left: World) -> None:
    # `in_quarantine` is told by policy: the new name knows nothing of what the old one could not delete.
    reported = clean_renamed(left)
    assert reported.num_by_outcome == {"deleted": 2, "quarantined": 1}
    waiting = left.rows(
        "SELECT policy, key FROM s3_retention.quarantine WHERE resolved_at IS NULL ORDER BY policy"
    )
    assert waiting == [{"policy": NEW_NAME, "key": B}, {"policy": NAME, "key": B}]
    left.watch(renamed(left).policy)
    found = left.rows(
        "SELECT policy FROM s3_retention.findings WHERE kind = 'quarantine_open' AND closed_at IS NULL ORDER BY 1"
    )
    assert [row["policy"] for row in found] == [NEW_NAME, NAME]


def test_what_the_new_name_has_deleted_ends_as_already_absent_when_the_old_file_is_back(left: World) -> None:
    left.s3.allow(left.bucket, [B])
    assert clean_renamed(left).num_by_outcome == {"deleted": 3}
    assert left.keys() == set()
    assert left.clean("run-3").num_by_outcome == {"already_absent": 2}
    assert left.redrive(policy=NAME).num_by_outcome == {"already_absent": 1}
    left.watch(left.policy, renamed(left).policy)
    kinds = {kind for kind, _ in left.open_findings()}
    assert kinds.isdisjoint({"no_policy_file", "quarantine_open"})
    deleted_twice = left.rows(
        "SELECT key FROM s3_retention.ledger_entries WHERE outcome = 'deleted' GROUP BY key HAVING count(*) > 1"
    )
    assert deleted_twice == []
