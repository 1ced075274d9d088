"""Ticks that did not run: each flagged once, by whoever comes first, and resolved when its time is covered."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import psycopg
import pytest

from s3_retention.core.ticks import Tick
from s3_retention.core.watched import watch_policy
from s3_retention.steps import flag_missed
from s3_retention.steps.flag_missed import FlagResult, Hints
from s3_retention.store.connection import connect
from tests.factories import CLEANUP, World, hourly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox.ledger import Ledger


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 6, 10, hour, minute, tzinfo=timezone.utc)


def go_to(world: World, hour: int, minute: int = 0) -> None:
    world.set_clock(f"'{at(hour, minute).isoformat()}'::timestamptz")


@pytest.fixture
def hours(world: World) -> World:
    """An hourly policy whose tick at 3 was the last one seen."""
    world = world.under(schedule="0 * * * *")
    go_to(world, 3)
    assert world.flag(at(3)).is_new_series
    return world


def test_a_run_flags_each_tick_between_the_last_one_and_its_own_once(hours: World) -> None:
    go_to(hours, 7)
    assert hours.flag(at(7), run="late").num_flagged == {"unknown": 3}
    assert hours.missed() == [(4, "unknown", False), (5, "unknown", False), (6, "unknown", False)]
    first = hours.rows("SELECT * FROM s3_retention.missed_intervals")
    assert {row["flagged_by"] for row in first} == {f"{CLEANUP}/late"}
    assert hours.flag(at(7)) == FlagResult()
    assert hours.rows("SELECT * FROM s3_retention.missed_intervals") == first


def test_ticks_that_follow_one_another_leave_no_row(hours: World) -> None:
    for hour in (4, 5, 6):
        assert hours.flag(at(hour)) == FlagResult()
    assert hours.missed() == []


def test_the_watch_flags_without_any_run_and_only_after_its_grace(hours: World) -> None:
    go_to(hours, 5, 4)
    assert hours.flag().num_flagged == {"unknown": 1}
    go_to(hours, 5, 6)
    assert hours.flag().num_flagged == {"unknown": 1}
    assert hours.flag().num_flagged == {}
    assert [hour for hour, *_ in hours.missed()] == [4, 5]


def test_what_the_watch_flagged_the_next_run_does_not_flag_again(hours: World) -> None:
    go_to(hours, 5, 30)
    hours.flag()
    go_to(hours, 7)
    assert hours.flag(at(7)).num_flagged == {"unknown": 1}
    assert [hour for hour, *_ in hours.missed()] == [4, 5, 6]


def test_two_flaggers_at_once_give_one_row_for_each_tick(hours: World, ledger: Ledger) -> None:
    go_to(hours, 9)
    together = threading.Barrier(4)

    def enumerate_together(last: Tick, before: datetime) -> Sequence[Tick]:
        ticks = hourly(last, before)
        together.wait(timeout=30)
        return ticks

    def flag(number: int) -> int:
        with closing(connect(ledger.writer_conninfo)) as conn:
            result = flag_missed.run(
                conn,
                watch_policy(hours.policy),
                this=Tick.at(at(9)) if number == 0 else None,
                ticks_between=enumerate_together,
                hints=Hints(),
                flagged_by=str(number),
            )
        return sum(result.num_flagged.values())

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(flag, range(4))) == 5
    assert [hour for hour, *_ in hours.missed()] == [4, 5, 6, 7, 8]


def test_a_tick_that_ran_while_the_watch_was_looking_is_not_flagged(hours: World) -> None:
    go_to(hours, 4, 30)

    def meanwhile(last: Tick, before: datetime) -> Sequence[Tick]:
        hours.flag(at(4))
        return hourly(last, before)

    assert hours.flag(ticks=meanwhile).num_flagged == {}
    assert hours.missed() == []


def test_a_changed_schedule_starts_a_new_series_and_flags_nothing(hours: World) -> None:
    go_to(hours, 8)
    changed = hours.under(schedule="30 * * * *")
    assert changed.flag() == FlagResult(is_new_series=True)
    assert changed.flag() == FlagResult()
    zoned = changed.under(timezone="Europe/Berlin")
    assert zoned.flag(at(8)) == FlagResult(is_new_series=True)
    assert hours.missed() == []


def test_the_same_schedule_in_other_words_is_no_change(hours: World) -> None:
    go_to(hours, 5)
    assert hours.under(schedule="@hourly").flag(at(5)).num_flagged == {"unknown": 1}


def test_simulate_ends_the_series_and_enforce_begins_one(hours: World) -> None:
    go_to(hours, 6)
    simulated = hours.under(mode="simulate")
    assert simulated.flag() == FlagResult(is_new_series=True)
    go_to(hours, 9)
    assert simulated.flag() == FlagResult()
    assert hours.flag() == FlagResult(is_new_series=True)
    assert hours.missed() == []


def test_ticks_that_cannot_be_told_are_never_flagged(hours: World) -> None:
    go_to(hours, 9)
    for this in (None, at(9)):
        result = hours.flag(this, ticks=lambda *_: None)
        assert (result.is_unknown, result.num_flagged) == (True, {})
    go_to(hours, 11)
    assert hours.flag(at(11)).num_flagged == {"unknown": 1}
    assert [hour for hour, *_ in hours.missed()] == [10]


def test_a_missed_tick_is_resolved_when_everything_before_it_has_ended(hours: World) -> None:
    go_to(hours, 6)
    hours.flag(at(6))
    hours.root.execute(
        "INSERT INTO s3_retention.watermarks (policy, position, completed_through) VALUES (%s, %s, %s)",
        [hours.policy.name, at(6), at(3, 58)],
    )
    assert hours.flag(at(6)).num_resolved == 1
    assert hours.missed() == [(4, "unknown", True), (5, "unknown", False)]
    hours.root.execute("UPDATE s3_retention.watermarks SET completed_through = %s", [at(6)])
    assert hours.flag().num_resolved == 1
    assert hours.flag().num_resolved == 0


def test_a_tick_that_ran_late_is_resolved_by_its_run(hours: World) -> None:
    go_to(hours, 5, 30)
    hours.flag()
    assert hours.flag(at(5)) == FlagResult(num_resolved=1)
    assert hours.missed() == [(4, "unknown", False), (5, "unknown", True)]


def test_a_late_run_of_an_old_tick_does_not_move_the_series_back(hours: World) -> None:
    go_to(hours, 7)
    hours.flag(at(7))
    hours.flag(at(4))
    assert hours.value("SELECT last_tick_at FROM s3_retention.schedules") == at(7)


def test_a_tick_that_airflow_or_the_ledger_has_a_run_of_is_not_missed(hours: World) -> None:
    hours.claim(Tick.at(at(4)).run_id)
    hours.expire_leases()
    go_to(hours, 7, 30)
    in_airflow = Hints(runs_among=lambda _: frozenset({Tick.at(at(5)).run_id}))
    assert hours.flag(hints=in_airflow).num_flagged == {"unknown": 2}
    assert [hour for hour, *_ in hours.missed()] == [6, 7]


def test_a_paused_dag_is_the_cause_when_airflow_says_so(hours: World) -> None:
    go_to(hours, 4, 30)
    hours.flag(hints=Hints(is_paused=lambda: True))
    assert hours.missed() == [(4, "paused", False)]


def test_while_a_run_is_under_way_the_watch_waits_and_the_next_run_names_it_as_the_cause(
    hours: World,
) -> None:
    hours.put("exports/2020-01/a.json")
    hours.under(window={"lease": "9h"}).claim("long")
    go_to(hours, 6, 30)
    assert hours.flag() == FlagResult()
    hours.under(window={"lease": "9h"}).plan("long")
    hours.clean("long")
    go_to(hours, 7)
    assert hours.flag(at(7)).num_flagged == {"max_active_runs": 3}


def test_a_time_in_which_the_watch_did_not_pass_had_no_scheduler(hours: World) -> None:
    go_to(hours, 3, 55)
    hours.watch()
    go_to(hours, 7)
    hours.flag(at(7))
    assert hours.missed() == [
        (4, "unknown", False),
        (5, "no_scheduler_heartbeat", False),
        (6, "no_scheduler_heartbeat", False),
    ]


def test_a_month_of_minutes_is_flagged_in_one_go(hours: World) -> None:
    def minutely(last: Tick, before: datetime) -> Sequence[Tick]:
        count = (before - last.due_at) // timedelta(minutes=1)
        return [Tick.at(last.due_at + timedelta(minutes=number)) for number in range(1, count)]

    hours.set_clock("'2026-07-10T03:00:00Z'::timestamptz")
    assert sum(hours.flag(ticks=minutely).num_flagged.values()) > 43_000


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM s3_retention.missed_intervals",
        "UPDATE s3_retention.missed_intervals SET cause = 'paused'",
        "UPDATE s3_retention.missed_intervals SET resolved_at = NULL",
        "UPDATE s3_retention.missed_intervals SET resolved_at = now(), flagged_by = 'me'",
    ],
)
def test_a_missed_interval_takes_its_resolution_and_nothing_else(hours: World, statement: str) -> None:
    go_to(hours, 5)
    hours.flag(at(5))
    with pytest.raises(psycopg.errors.RestrictViolation, match="only takes resolved_at, once"):
        hours.root.execute(statement)
    hours.root.execute("UPDATE s3_retention.missed_intervals SET resolved_at = now()")
    with pytest.raises(psycopg.errors.RestrictViolation):
        hours.root.execute("UPDATE s3_retention.missed_intervals SET resolved_at = now()")
