"""Slices of due time, and who may work on which."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.interval import (
    BEGINNING,
    ClaimAction,
    ClaimedInterval,
    Interval,
    IntervalState,
    decide_claim,
    next_interval,
)

UTC = timezone.utc
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
times = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def cut(position: datetime, *, now: datetime = NOW, width: timedelta | None = None) -> Interval | None:
    return next_interval("p", position=position, now=now, safety_delay=2 * MINUTE, width=width)


def test_the_key_names_policy_start_and_end_in_utc() -> None:
    there = timezone(timedelta(hours=2))
    interval = Interval(
        "p", datetime(2026, 6, 1, 2, tzinfo=there), datetime(2026, 6, 2, 2, 0, 0, 5, tzinfo=there)
    )
    assert interval.key == "cleanup:p:2026-06-01T00:00:00+00:00:2026-06-02T00:00:00.000005+00:00"


def test_the_first_slice_begins_in_1970() -> None:
    assert datetime(1970, 1, 1, tzinfo=UTC) == BEGINNING
    assert cut(BEGINNING) == Interval("p", BEGINNING, NOW - 2 * MINUTE)


def test_a_slice_is_cut_at_its_width() -> None:
    assert cut(NOW - 9 * DAY, width=2 * DAY) == Interval("p", NOW - 9 * DAY, NOW - 7 * DAY)
    assert cut(NOW - DAY, width=2 * DAY) == Interval("p", NOW - DAY, NOW - 2 * MINUTE)


@pytest.mark.parametrize("late", [timedelta(0), MINUTE, 2 * MINUTE - timedelta(microseconds=1), DAY])
def test_a_position_at_or_after_the_cutoff_is_caught_up(late: timedelta) -> None:
    assert cut(NOW - 2 * MINUTE + late) is None


@given(position=times, now=times, width=st.none() | st.timedeltas(min_value=MINUTE, max_value=900 * DAY))
def test_a_slice_starts_at_the_position_and_never_reaches_past_the_cutoff(
    position: datetime, now: datetime, width: timedelta | None
) -> None:
    interval = cut(position, now=now, width=width)
    if interval is None:
        assert now - 2 * MINUTE <= position
    else:
        assert position == interval.starts_at < interval.ends_at <= now - 2 * MINUTE
        assert width is None or interval.ends_at - interval.starts_at <= width


def an_interval(
    state: IntervalState = IntervalState.PLANNED, *, by: str = "dag/other", until: datetime | None = None
) -> ClaimedInterval:
    return ClaimedInterval(1, Interval("p", BEGINNING, NOW), "v1", state, 1, by, until)


def decide(*, mine: ClaimedInterval | None = None, unfinished: ClaimedInterval | None = None) -> str:
    return decide_claim(mine=mine, unfinished=unfinished, holder="dag/run", now=NOW).value


def test_without_an_unfinished_interval_the_next_slice_is_cut() -> None:
    assert decide() == "cut"
    assert decide(mine=an_interval()) == "cut"


def test_the_finished_interval_of_a_run_is_repeated_whatever_else_is_open() -> None:
    done = an_interval(IntervalState.COMPLETED)
    assert decide(mine=done) == "repeat"
    assert decide(mine=done, unfinished=an_interval(until=NOW + DAY)) == "repeat"


@pytest.mark.parametrize("until", [None, NOW, NOW - DAY])
def test_an_unfinished_interval_that_nobody_holds_is_adopted(until: datetime | None) -> None:
    assert decide(unfinished=an_interval(until=until)) == "adopt"


def test_an_unfinished_interval_of_another_live_run_is_observed() -> None:
    assert decide(unfinished=an_interval(until=NOW + timedelta(microseconds=1))) == "observe"


def test_a_run_adopts_its_own_interval_though_its_lease_runs() -> None:
    own = an_interval(by="dag/run", until=NOW + DAY)
    assert decide(mine=own, unfinished=own) == "adopt"


def test_the_actions_have_the_names_that_logs_show() -> None:
    assert [action.value for action in ClaimAction] == ["repeat", "adopt", "observe", "cut"]
