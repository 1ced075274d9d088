"""The capacity rule: what falls due against what is drained, over the last runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from s3_retention.core.capacity import MIN_RUNS, Arrivals, Capacity, RunFigures, judge_capacity

NOON = datetime(2026, 10, 25, 12, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)
PERIOD = 5 * MINUTE


def runs(
    num: int, *, first_age: timedelta, claimed: timedelta, drained: int = 100, remaining: int = 0
) -> list[RunFigures]:
    """Runs five minutes apart, each of which claims so much due time."""
    return [
        RunFigures(
            reported_at=NOON + number * PERIOD,
            unclaimed_since=NOON - first_age + number * claimed,
            num_drained=drained,
            num_remaining=remaining,
        )
        for number in range(num)
    ]


def judge(
    figures: list[RunFigures], arrivals: Arrivals | None = None, *, width: timedelta | None = None
) -> Capacity:
    capacity = judge_capacity(figures, arrivals, width=width, safety_delay=2 * MINUTE)
    assert capacity is not None
    return capacity


def test_five_minute_ticks_that_claim_one_minute_each_fall_behind_by_four_minutes_a_run() -> None:
    figures = runs(4, first_age=timedelta(hours=3), claimed=MINUTE)
    capacity = judge(figures, width=MINUTE)
    assert capacity.is_falling_behind
    assert (capacity.age, capacity.growth) == (timedelta(hours=3, minutes=12), 4 * MINUTE)
    assert str(capacity) == (
        "falling behind: oldest unclaimed object is 3 h 12 min old and grows by 4 min per run"
    )


def test_a_width_over_the_period_catches_up_and_is_not_behind() -> None:
    capacity = judge(runs(4, first_age=timedelta(hours=3), claimed=8 * MINUTE), width=8 * MINUTE)
    assert not capacity.is_falling_behind
    assert str(capacity) == "oldest unclaimed object is 2 h 51 min old"


def test_more_that_falls_due_in_a_period_than_a_run_drains_is_falling_behind() -> None:
    figures = runs(4, first_age=PERIOD, claimed=timedelta(0), drained=100, remaining=900)
    capacity = judge(figures, Arrivals(num_commands=1200, due_time=10 * PERIOD))
    assert capacity.is_falling_behind
    assert str(capacity) == (
        "falling behind: oldest unclaimed object is 20 min old and grows by 5 min per run; 120 commands fall due per "
        "run and 100 are drained"
    )


@pytest.mark.parametrize(
    "arrivals", [None, Arrivals(num_commands=900, due_time=10 * PERIOD)], ids=["first slice", "fewer"]
)
def test_a_backlog_that_is_drained_in_pieces_is_not_falling_behind(arrivals: Arrivals | None) -> None:
    figures = runs(4, first_age=PERIOD, claimed=timedelta(0), drained=100, remaining=900)
    assert not judge(figures, arrivals).is_falling_behind


def test_a_run_that_had_too_little_to_do_says_nothing_about_what_it_could_drain() -> None:
    idle = runs(3, first_age=PERIOD, claimed=PERIOD, drained=0)
    busy = [
        replace(one, num_drained=100, num_remaining=50)
        for one in runs(6, first_age=PERIOD, claimed=PERIOD)[3:]
    ]
    assert not judge([*idle, *busy], Arrivals(num_commands=90, due_time=PERIOD)).is_falling_behind
    assert judge([*idle, *busy], Arrivals(num_commands=110, due_time=PERIOD)).is_falling_behind


def test_overload_is_seen_also_when_a_new_slice_has_just_made_the_age_small() -> None:
    figures = [
        replace(one, unclaimed_since=one.reported_at - age, num_remaining=remaining)
        for one, age, remaining in zip(
            runs(4, first_age=PERIOD, claimed=PERIOD),
            (20 * MINUTE, 25 * MINUTE, 2 * MINUTE, 7 * MINUTE),
            (200, 0, 300, 200),
            strict=True,
        )
    ]
    capacity = judge(figures, Arrivals(num_commands=150, due_time=PERIOD))
    assert (capacity.is_falling_behind, capacity.growth < timedelta(0)) == (True, True)
    assert str(capacity) == (
        "falling behind: oldest unclaimed object is 7 min old; 150 commands fall due per run and 100 are drained"
    )


def test_a_run_that_takes_longer_each_time_is_not_behind_while_the_next_can_take_all() -> None:
    figures = runs(4, first_age=3 * MINUTE, claimed=PERIOD - MINUTE)
    assert judge(figures).growth == MINUTE
    assert not judge(figures).is_falling_behind
    assert not judge(figures, width=8 * MINUTE).is_falling_behind


def test_an_object_that_is_not_due_yet_has_no_age() -> None:
    figures = runs(3, first_age=-timedelta(days=1), claimed=PERIOD)
    assert judge(figures).age == timedelta(0)


def test_too_few_runs_say_nothing() -> None:
    figures = runs(MIN_RUNS - 1, first_age=timedelta(hours=3), claimed=MINUTE)
    assert judge_capacity(figures, None, width=MINUTE, safety_delay=MINUTE) is None


def test_runs_by_a_clock_that_went_back_say_nothing() -> None:
    figures = runs(4, first_age=timedelta(hours=3), claimed=MINUTE)[::-1]
    assert judge_capacity(figures, None, width=MINUTE, safety_delay=MINUTE) is None
