"""Ticks and why they did not run: the decisions that need no Airflow."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.ticks import (
    Cause,
    Evidence,
    Tick,
    decide_cause,
    describe_timetable,
    read_timetable,
)
from s3_retention.core.watched import watch_policy, watch_without_file
from tests.factories import a_policy

if TYPE_CHECKING:
    from s3_retention.core.policy import RetentionPolicy

AT = datetime(2026, 6, 1, 3, tzinfo=timezone.utc)


def evidence(*, active: bool = False, heartbeat: bool | None = True) -> Evidence:
    return Evidence(AT, has_run=False, had_active_run=active, had_heartbeat=heartbeat)


def scheduled(**changes: Any) -> RetentionPolicy:
    return a_policy(**{"schedule": "0 3 * * *", **changes})


def test_without_any_evidence_the_cause_is_unknown() -> None:
    for paused in (None, False):
        for heartbeat in (None, True):
            found = decide_cause(evidence(heartbeat=heartbeat), is_paused=paused, has_policy_file=True)
            assert found is Cause.UNKNOWN


@pytest.mark.parametrize(
    ("given", "paused", "has_file", "cause"),
    [
        (evidence(heartbeat=False, active=True), True, False, Cause.NO_SCHEDULER_HEARTBEAT),
        (evidence(active=True), True, False, Cause.MAX_ACTIVE_RUNS),
        (evidence(), True, False, Cause.NO_POLICY_FILE),
        (evidence(), True, True, Cause.PAUSED),
        (evidence(heartbeat=None), True, True, Cause.PAUSED),
    ],
)
def test_what_is_known_of_the_time_of_the_tick_comes_before_how_things_stand_now(
    given: Evidence, paused: bool | None, has_file: bool, cause: Cause
) -> None:
    assert decide_cause(given, is_paused=paused, has_policy_file=has_file) is cause


def test_a_timetable_is_one_text_however_it_is_written() -> None:
    assert describe_timetable("@daily", "UTC") == describe_timetable("0 0  * * *", "UTC") == "0 0 * * * UTC"
    assert describe_timetable(None, "UTC") is None
    assert read_timetable("0 3 * * 0 Europe/Berlin") == ("0 3 * * 0", "Europe/Berlin")


def test_a_tick_names_the_run_that_airflow_would_make_of_it() -> None:
    assert Tick.at(AT).run_id == "scheduled__2026-06-01T03:00:00+00:00"
    elsewhere = AT.astimezone(timezone(timedelta(hours=2)))
    assert Tick.at(elsewhere).run_id == "scheduled__2026-06-01T03:00:00+00:00"


def test_an_enforced_policy_expects_ticks_and_a_simulated_or_manual_one_none() -> None:
    assert watch_policy(scheduled(timezone="Europe/Berlin")).timetable == "0 3 * * * Europe/Berlin"
    assert watch_policy(scheduled(mode="simulate")).timetable is None
    assert watch_policy(a_policy()).timetable is None


def test_a_watermark_may_be_two_periods_and_the_safety_delay_old_unless_the_policy_says_otherwise() -> None:
    assert watch_policy(scheduled()).max_age == timedelta(days=2, minutes=2)
    assert watch_policy(scheduled(schedule="* * * * *")).max_age == timedelta(minutes=4)
    assert watch_policy(scheduled(window={"max_age": "5h"})).max_age == timedelta(hours=5)
    assert watch_policy(scheduled(mode="simulate")).max_age == timedelta(days=2, minutes=2)
    assert watch_policy(a_policy()).max_age is None


def test_a_policy_without_its_file_is_expected_to_do_what_it_did() -> None:
    gone = watch_without_file("gone", "0 3 * * * UTC")
    assert (gone.dag_id, gone.timetable, gone.has_file) == (
        "s3_retention_cleanup__gone",
        "0 3 * * * UTC",
        False,
    )
    assert gone.max_age == timedelta(days=2, minutes=2)
    assert watch_without_file("gone", None).max_age is None
