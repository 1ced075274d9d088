"""What commits late: inside of the safety delay it is of the next interval, and after it, it is a straggler there."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from tests.factories import BY_LAST_MODIFIED, facts, source_of

if TYPE_CHECKING:
    from s3_retention.core.objects import ObjectFacts
    from tests.factories import World

NOW = datetime(2026, 10, 25, 12, 5, tzinfo=timezone.utc)
DELAY = timedelta(minutes=2)
RETAIN = timedelta(days=30)


@pytest.fixture
def delayed(world: World) -> World:
    """At 12:05 an interval ends at 12:03; an object is due 30 days after it was written."""
    world.set_clock("'2026-10-25T12:05:00Z'::timestamptz")
    return world.under(age=BY_LAST_MODIFIED, window={"safety_delay": "2m"})


def due(world: World, name: str, at: datetime) -> ObjectFacts:
    return facts(f"exports/2020-01/{name}.json", bucket=world.bucket, at=at - RETAIN)


def next_run(world: World, *objects: ObjectFacts) -> tuple[int, int]:
    """The run at 12:10: what it plans, and how many of it are stragglers."""
    world.set_clock("'2026-10-25T12:10:00Z'::timestamptz")
    world.claim("run-2")
    planned = world.plan("run-2", source=source_of(*objects))
    return planned.num_discovered, planned.num_stragglers


@pytest.mark.parametrize("seconds", [0, 1, 119])
def test_what_is_due_inside_of_the_delay_and_appears_late_is_taken_by_the_next_interval(
    delayed: World, seconds: int
) -> None:
    delayed.claim()
    assert delayed.plan(source=source_of()).num_discovered == 0
    delayed.report()
    # It is due by now, and the scan that is over did not see it: no interval has passed its time yet.
    late = due(delayed, "late", NOW - DELAY + timedelta(seconds=seconds))
    assert next_run(delayed, late) == (1, 0)


def test_what_was_due_before_the_delay_and_appears_late_is_a_straggler_of_the_next_interval(
    delayed: World,
) -> None:
    delayed.claim()
    delayed.plan(source=source_of())
    delayed.report()
    too_late = due(delayed, "too-late", NOW - DELAY - timedelta(microseconds=1))
    assert next_run(delayed, too_late) == (1, 1)
    assert (
        delayed.value("SELECT num_stragglers FROM s3_retention.intervals ORDER BY interval_id DESC LIMIT 1")
        == 1
    )


def test_what_appears_during_the_scan_inside_of_the_delay_is_not_taken_by_both_intervals(
    delayed: World,
) -> None:
    within = due(delayed, "within", NOW - timedelta(seconds=1))
    delayed.claim()
    planned = delayed.plan(source=source_of(within))
    assert (planned.num_discovered, planned.num_kept_by_reason) == (0, {"not_due": 1})
    delayed.report()
    assert next_run(delayed, within) == (1, 0)


@pytest.mark.parametrize("year", [1900, 9999])
def test_absurd_times_never_move_the_watermark(delayed: World, year: int) -> None:
    absurd = facts(
        "exports/2020-01/absurd.json",
        bucket=delayed.bucket,
        at=datetime(year, 12, 31, tzinfo=timezone.utc),
    )
    delayed.claim()
    planned = delayed.plan(source=source_of(absurd))
    position = delayed.value("SELECT position FROM s3_retention.watermarks")
    assert position == NOW - DELAY
    if year > NOW.year:
        assert planned.num_kept_by_reason == {"date_in_future": 1}
        assert delayed.value("SELECT next_due_at FROM s3_retention.intervals") is None
    else:
        assert planned.num_discovered == 1
