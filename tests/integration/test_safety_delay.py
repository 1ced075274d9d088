"""The safety delay: what commits late within it is in its own interval; what commits later still is a straggler."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3_retention.steps import report
from tests.factories import BUCKET, BY_LAST_MODIFIED, MAX_BATCHES, World, facts, holder, source_of
from tests.fakes import asked, deleted, fake_gateway

if TYPE_CHECKING:
    from s3_retention.core.objects import ObjectFacts
    from s3_retention.steps.decide import PlanResult

RETAIN = timedelta(days=30)
NOON = datetime(2026, 10, 25, 12, tzinfo=timezone.utc)
DELAY = timedelta(minutes=2)
MOMENT = timedelta(microseconds=1)
_names = (f"late_{number}" for number in itertools.count())
BY_KEY_DAY = {
    "from": "key_date",
    "regex": r"exports/(?P<date>\d{4}-\d{2}-\d{2})/",
    "format": "%Y-%m-%d",
    "retain": "30d",
}


def due(at: datetime, key: str = "exports/2020-01/late.json") -> ObjectFacts:
    """An object that falls due at this time by its last modification."""
    return facts(key, at=at - RETAIN)


def set_time(world: World, at: datetime) -> None:
    world.set_clock(f"'{at.isoformat()}'::timestamptz")


def run_at(world: World, at: datetime, *objects: ObjectFacts) -> PlanResult:
    """A whole run at this time, over a store in which these objects are to be seen."""
    set_time(world, at)
    run = f"run-{at.isoformat()}"
    world.claim(run)
    planned = world.plan(run, source=source_of(*objects), max_batches=MAX_BATCHES)
    for batch in planned.batches:
        world.delete(batch, run)
    world.sweep(run)
    report.run(world.conn, holder("report", run), policy=world.policy.name, interval_id=world.interval_id())
    return planned


def bounds(world: World) -> tuple[datetime, datetime]:
    """Where the newest interval starts and ends."""
    (row,) = world.rows(
        "SELECT starts_at, ends_at FROM s3_retention.intervals ORDER BY interval_id DESC LIMIT 1"
    )
    return row["starts_at"], row["ends_at"]


@pytest.fixture
def late(world: World) -> World:
    """A policy by last modification whose store deletes whatever it is asked to."""
    gateway = fake_gateway(delete_objects=lambda **arguments: deleted(*asked(arguments)))
    return world.through(gateway).under(
        source={"type": "s3_listing", "bucket": BUCKET, "prefix": "exports/", "aws_conn_id": "c"},
        age=BY_LAST_MODIFIED,
    )


def with_delay(world: World, delay: timedelta) -> World:
    return world.under(window={"safety_delay": f"{int(delay.total_seconds())}s"})


@pytest.mark.parametrize("delay", [DELAY, timedelta(hours=1)], ids=["two-minutes", "an-hour"])
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0], ids=["at-the-end", "half-way", "at-the-scan"])
def test_what_commits_late_inside_the_delay_is_taken_by_the_next_interval_and_is_no_straggler(
    late: World, delay: timedelta, part: float
) -> None:
    world = with_delay(late, delay)
    run_at(world, NOON)
    # The scan at noon did not see it: it commits after that, at most the delay after its time.
    late_one = due(NOON - delay + part * delay)
    planned = run_at(world, NOON + 2 * delay, late_one)
    assert (planned.num_discovered, planned.num_stragglers) == (1, 0)
    assert bounds(world) == (NOON - delay, NOON + delay)
    assert set(world.outcomes().values()) == {"deleted"}


@pytest.mark.parametrize("delay", [timedelta(0), DELAY, timedelta(hours=1)], ids=["none", "2m", "1h"])
@pytest.mark.parametrize("beyond", [MOMENT, timedelta(days=3)], ids=["just", "by-days"])
def test_what_commits_after_the_delay_is_a_straggler_of_the_next_interval_and_is_not_lost(
    late: World, delay: timedelta, beyond: timedelta
) -> None:
    world = with_delay(late, delay)
    run_at(world, NOON)
    planned = run_at(world, NOON + timedelta(hours=2), due(NOON - delay - beyond))
    assert (planned.num_discovered, planned.num_stragglers) == (1, 1)
    assert set(world.outcomes().values()) == {"deleted"}
    assert world.value("SELECT sum(num_stragglers) FROM s3_retention.intervals") == 1


def test_what_commits_in_time_is_in_its_own_interval_and_what_the_delay_covers_is_not_yet_due(
    late: World,
) -> None:
    seen = [
        due(NOON - DELAY - MOMENT, "exports/2020-01/in.json"),
        due(NOON - DELAY, "exports/2020-01/end.json"),
    ]
    first = run_at(late, NOON, *seen)
    assert (first.num_discovered, first.num_kept_by_reason) == (1, {"not_due": 1})
    assert first.next_due_at == NOON - DELAY
    second = run_at(late, NOON + DELAY, seen[1])
    assert (second.num_discovered, second.num_stragglers) == (1, 0)


def test_the_date_in_a_key_is_told_by_the_same_rule_as_a_modification(late: World) -> None:
    # 30 days after the end of 25 September it is midnight of 26 October: the scan two minutes later ends there.
    world = late.under(age=BY_KEY_DAY, select={"include": ["exports/**"]}, window={"safety_delay": "2m"})
    midnight = NOON + timedelta(hours=12)
    run_at(world, midnight + DELAY)
    inside, beyond = facts("exports/2026-09-25/late.json"), facts("exports/2026-09-24/later.json")
    planned = run_at(world, midnight + 2 * DELAY, inside, beyond)
    assert (planned.num_discovered, planned.num_stragglers) == (2, 1)


def test_what_appears_while_the_scan_is_under_way_is_taken_by_the_next_interval(late: World) -> None:
    seen_late = due(NOON + timedelta(minutes=4))

    class Slow:
        """A scan of five minutes: what falls due in them has no place in it."""

        def pages(self) -> Any:
            set_time(late, NOON + timedelta(minutes=5))
            return iter([[seen_late]])

        def read_clock(self) -> None:
            """Tell no time."""

    set_time(late, NOON)
    late.claim("run-1")
    first = late.plan("run-1", source=Slow())
    assert (first.num_discovered, first.num_kept_by_reason) == (0, {"not_due": 1})
    late.report("run-1")
    assert bounds(late)[1] == NOON - DELAY
    second = run_at(late, NOON + timedelta(minutes=7), seen_late)
    assert (second.num_discovered, second.num_stragglers) == (1, 0)


RUNS_AT = tuple(NOON + timedelta(minutes=minutes) for minutes in (0, 1, 3, 4, 9, 20))
commits = st.lists(
    st.tuples(st.integers(-300, 500), st.one_of(st.integers(0, 120), st.integers(0, 600))), max_size=8
)
"""Seconds from noon to an object's time, and how many seconds later it commits."""


@settings(max_examples=12)
@given(commits=commits)
def test_each_object_is_planned_once_and_is_a_straggler_only_when_it_was_later_than_the_delay(
    late: World, commits: list[tuple[int, int]]
) -> None:
    world = late.under(name=next(_names), start_at="2026-10-01T00:00:00Z")
    objects = [
        (
            due(NOON + timedelta(seconds=time), f"exports/2020-01/{number}.json"),
            timedelta(seconds=time + wait),
        )
        for number, (time, wait) in enumerate(commits)
    ]
    planned: list[str] = []
    for at in RUNS_AT:
        # A scan sees what has committed before it and is not deleted yet.
        seen = [one for one, commit in objects if NOON + commit < at and one.ref.key not in planned]
        result = run_at(world, at, *seen)
        keys = [
            row["key"]
            for row in world.rows(
                "SELECT key FROM s3_retention.commands WHERE interval_id = %(interval_id)s",
                interval_id=world.interval_id(),
            )
        ]
        starts_at = bounds(world)[0]
        stragglers = {one.ref.key for one, _ in objects if one.last_modified_at + RETAIN < starts_at} & set(
            keys
        )
        assert result.num_stragglers == len(stragglers)
        late_keys = {
            one.ref.key
            for (one, _), (_, wait) in zip(objects, commits, strict=True)
            if timedelta(seconds=wait) >= DELAY
        }
        assert stragglers <= late_keys
        planned += keys
    assert len(planned) == len(set(planned))
    assert set(planned) == {one.ref.key for one, _ in objects}


# Timestamps that cannot be right --------------------------------------------------------------------------
ABSURD = {
    "modified-in-9999": facts(at=datetime.max.replace(tzinfo=timezone.utc)),
    "modified-tomorrow": facts(at=NOON + timedelta(days=1)),
    "named-for-9999": facts("exports/9999-12/a.json"),
    "named-for-next-month": facts("exports/2026-11/a.json"),
}
BY_KEY_DATE = {
    "from": "key_date",
    "regex": r"exports/(?P<date>\d{4}-\d{2})/",
    "format": "%Y-%m",
    "retain": "30d",
}


def by_its_own_date(world: World, name: str) -> World:
    return world.under(age=BY_LAST_MODIFIED if name.startswith("modified") else BY_KEY_DATE)


@pytest.mark.parametrize("width", [None, "7d"], ids=["whole", "in-slices"])
@pytest.mark.parametrize("name", ABSURD)
def test_a_date_of_the_future_is_kept_and_counted_in_each_interval_and_moves_no_watermark(
    late: World, name: str, width: str | None
) -> None:
    world = by_its_own_date(late, name).under(
        start_at="2026-10-01T00:00:00Z", window={"width": width, "safety_delay": "2m"}
    )
    for at in (NOON, NOON + timedelta(hours=1)):
        planned = run_at(world, at, ABSURD[name])
        assert (planned.num_discovered, planned.num_stragglers) == (0, 0)
        assert planned.num_kept_by_reason == {"date_in_future": 1}
        assert planned.next_due_at is None
        (mark,) = world.rows("SELECT position, completed_through FROM s3_retention.watermarks")
        assert mark == {"position": at - DELAY, "completed_through": at - DELAY}


@pytest.mark.parametrize(
    ("name", "one"),
    [
        ("modified-in-1900", facts(at=datetime(1900, 1, 1, tzinfo=timezone.utc))),
        ("modified-in-year-1", facts(at=datetime(1, 1, 1, tzinfo=timezone.utc))),
        ("named-for-1900", facts("exports/1900-01/a.json")),
        ("named-for-year-1", facts("exports/0001-01/a.json")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_date_before_the_first_interval_is_a_straggler_and_moves_no_watermark(
    late: World, name: str, one: ObjectFacts
) -> None:
    world = by_its_own_date(late, name)
    planned = run_at(world, NOON, one)
    assert (planned.num_discovered, planned.num_stragglers) == (1, 1)
    assert bounds(world) == (datetime(1970, 1, 1, tzinfo=timezone.utc), NOON - DELAY)
    assert world.value("SELECT position FROM s3_retention.watermarks") == NOON - DELAY
    assert set(world.outcomes().values()) == {"deleted"}
    run_at(world, NOON + DELAY)
    assert bounds(world) == (NOON - DELAY, NOON)
