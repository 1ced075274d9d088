"""Whether a policy keeps up: said by the report of a run, found by the watch, and healed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.factories import facts, source_of

if TYPE_CHECKING:
    from s3_retention.core.report import RunReport
    from tests.factories import World

BUSY = [facts(f"exports/2026-01/{number}.json") for number in range(3)]


@pytest.fixture
def narrow(world: World) -> World:
    """A slice of one hour a run, and something due in every slice."""
    return world.under(
        start_at="2026-06-10T00:00:00Z",
        schedule=None,
        window={"width": "1h", "safety_delay": "0s"},
        source={"type": "s3_listing", "bucket": "t-fake", "prefix": "exports/", "aws_conn_id": "c"},
    )


def at(world: World, hour: int) -> None:
    world.set_clock(f"'2026-06-10T00:00:00Z'::timestamptz + interval '{hour} hours'")


def run(world: World, number: int) -> RunReport:
    """A run that plans something due and ends it without a store."""
    name = f"run-{number}"
    world.claim(name)
    due = facts(f"exports/2026-01/{number}.json")
    for batch in world.plan(name, source=source_of(due)).batches:
        world.root.execute(
            "UPDATE s3_retention.batches SET closed_at = s3_retention.clock() WHERE batch_id = %s",
            [batch.batch_id],
        )
        world.root.execute(
            """
            INSERT INTO s3_retention.ledger_entries (
                interval_id, generation, command_id, operation_id, batch_id, fence, bucket, key, etag, size,
                last_modified_at, due_at, outcome, num_attempts
            )
            SELECT interval_id, generation, command_id, operation_id, batch_id, 1, bucket, key, etag, size,
                last_modified_at, due_at, 'deleted', 1
            FROM s3_retention.commands WHERE batch_id = %s
            """,
            [batch.batch_id],
        )
    return world.report(name)


def test_a_run_every_five_hours_that_takes_one_hour_is_said_and_found_to_fall_behind(narrow: World) -> None:
    said = []
    for number in range(1, 5):
        at(narrow, 5 * number)
        report = run(narrow, number)
        said.append(str(report.capacity) if report.capacity else None)
    assert said == [
        None,
        None,
        "falling behind: oldest unclaimed object is 12 h old and grows by 4 h per run",
        "falling behind: oldest unclaimed object is 16 h old and grows by 4 h per run",
    ]
    assert "  falling behind: oldest unclaimed object is 16 h old" in str(report)
    narrow.watch()
    found = narrow.open_findings()["falling_behind", ""]
    assert found["message"].startswith(
        "policy weekly_digests: falling behind: oldest unclaimed object is 16 h old and grows by 4 h per run"
    )

    # Every quarter of an hour it catches up, and the finding closes when the newest runs say so.
    for number in range(5, 11):
        narrow.set_clock(f"'2026-06-10T20:00:00Z'::timestamptz + interval '{15 * (number - 4)} minutes'")
        report = run(narrow, number)
    assert str(report.capacity) == "oldest unclaimed object is 11 h 30 min old"
    narrow.watch()
    assert ("falling_behind", "") not in narrow.open_findings()


def test_a_run_that_reports_again_counts_once(narrow: World) -> None:
    for number in range(1, 3):
        at(narrow, 5 * number)
        run(narrow, number)
        assert narrow.report(f"run-{number}").capacity is None


def test_a_redrive_says_nothing_about_keeping_up(narrow: World) -> None:
    for number in range(1, 4):
        at(narrow, 5 * number)
        run(narrow, number)
    assert narrow.redrive().capacity is None
    assert (
        narrow.value("SELECT unclaimed_since FROM s3_retention.run_reports ORDER BY report_id DESC LIMIT 1")
        is None
    )


def test_the_oldest_unclaimed_object_is_the_first_that_the_scan_saw_waiting(world: World) -> None:
    world.set_clock("'2026-06-10T00:00:00Z'::timestamptz")
    world.claim()
    waits, later = (facts(f"exports/2026-0{month}/a.json", bucket=world.bucket) for month in (5, 6))
    world.plan(source=source_of(waits, later))
    world.report()
    since = world.value("SELECT unclaimed_since FROM s3_retention.run_reports")
    assert f"{since:%Y-%m-%d %H:%M}" == "2026-07-01 00:00"
    hourly = world.under(schedule="@hourly")
    hourly.set_clock("'2026-07-01T00:30:00Z'::timestamptz")
    hourly.watch()
    assert ("oldest_unclaimed", "") not in hourly.open_findings()
    hourly.set_clock("'2026-07-01T03:12:00Z'::timestamptz")
    hourly.watch()
    found = hourly.open_findings()["oldest_unclaimed", ""]
    assert found["message"] == (
        "policy weekly_digests: the oldest unclaimed object has been due for 3 h 12 min, and 2h2m is the limit"
    )
