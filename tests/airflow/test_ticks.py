"""Ticks, enumerated by Airflow's own timetables in a process of its own: no database is needed."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.airflow.child import ROOT, result_of

UTC = timezone.utc

# A policy's timetable as the ledger holds it, or a DAG's own as Python; from which tick, before which time.
POLICY_CASES: dict[str, tuple[str, str, str, list[str]]] = {
    "a cron string": (
        "0 3 * * 1 UTC",
        "2026-06-01T03:00",
        "2026-06-22T03:00",
        ["2026-06-08T03:00", "2026-06-15T03:00"],
    ),
    "nothing between two ticks": ("0 3 * * * UTC", "2026-06-01T03:00", "2026-06-02T03:00", []),
    "nothing when time stands still": ("0 3 * * * UTC", "2026-06-01T03:00", "2026-06-01T03:00", []),
    "from a moment that is no tick": (
        "0 3 * * * UTC",
        "2026-06-01T11:22",
        "2026-06-03T04:00",
        ["2026-06-02T03:00", "2026-06-03T03:00"],
    ),
    "a zone": (
        "0 3 * * * Asia/Kolkata",
        "2026-06-01T00:00",
        "2026-06-02T22:00",
        ["2026-06-01T21:30", "2026-06-02T21:30"],
    ),
    # 29 March 2026, 02:00 does not exist in Berlin; 25 October, 02:00 to 03:00 comes twice.
    "Berlin, spring, daily inside the hole": (
        "30 2 * * * Europe/Berlin",
        "2026-03-28T01:30",
        "2026-03-31T00:00",
        ["2026-03-29T01:30", "2026-03-30T00:30"],
    ),
    "Berlin, spring, hourly": (
        "0 * * * * Europe/Berlin",
        "2026-03-28T23:00",
        "2026-03-29T04:00",
        ["2026-03-29T00:00", "2026-03-29T01:00", "2026-03-29T02:00", "2026-03-29T03:00"],
    ),
    "Berlin, autumn, daily inside the fold": (
        "30 2 * * * Europe/Berlin",
        "2026-10-24T00:30",
        "2026-10-27T00:00",
        ["2026-10-25T01:30", "2026-10-26T01:30"],
    ),
    "Berlin, autumn, hourly through both": (
        "30 * * * * Europe/Berlin",
        "2026-10-24T23:30",
        "2026-10-25T03:30",
        ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"],
    ),
    "New York, spring, daily inside the hole": (
        "30 2 * * * America/New_York",
        "2026-03-07T07:30",
        "2026-03-10T00:00",
        ["2026-03-08T07:30", "2026-03-09T06:30"],
    ),
    "New York, spring, hourly": (
        "0 * * * * America/New_York",
        "2026-03-08T05:00",
        "2026-03-08T09:00",
        ["2026-03-08T06:00", "2026-03-08T07:00", "2026-03-08T08:00"],
    ),
    "New York, autumn, daily inside the fold": (
        "30 1 * * * America/New_York",
        "2026-10-31T05:30",
        "2026-11-03T00:00",
        ["2026-11-01T06:30", "2026-11-02T06:30"],
    ),
    "New York, autumn, hourly through both": (
        "0 * * * * America/New_York",
        "2026-11-01T04:00",
        "2026-11-01T08:00",
        ["2026-11-01T05:00", "2026-11-01T06:00", "2026-11-01T07:00"],
    ),
}
DAG_CASES: dict[str, tuple[str, str, str, list[str]]] = {
    "a preset": ("'@daily'", "2026-06-01T00:00", "2026-06-03T00:00", ["2026-06-02T00:00"]),
    "a DAG in a zone": (
        "'0 9 * * *'",
        "2026-06-01T07:00",
        "2026-06-03T07:00",
        ["2026-06-02T07:00"],
    ),
    "a timedelta": (
        "timedelta(hours=6)",
        "2026-06-01T01:23",
        "2026-06-01T19:23",
        ["2026-06-01T07:23", "2026-06-01T13:23"],
    ),
    "several crons": (
        "MultipleCronTriggerTimetable('0 3 * * *', '30 4 * * 1', timezone='UTC')",
        "2026-06-01T03:00",
        "2026-06-03T00:00",
        ["2026-06-01T04:30", "2026-06-02T03:00"],
    ),
    "cron with data intervals": (
        "CronDataIntervalTimetable('0 3 * * *', timezone='UTC')",
        "2026-06-01T03:00",
        "2026-06-04T03:00",
        ["2026-06-02T03:00", "2026-06-03T03:00"],
    ),
    "cron with data intervals, from a moment that is no tick": (
        "CronDataIntervalTimetable('0 3 * * *', timezone='UTC')",
        "2026-06-01T11:22",
        "2026-06-03T03:00",
        ["2026-06-02T03:00"],
    ),
    "manual only": ("None", "2026-06-01T00:00", "2026-07-01T00:00", []),
}
RUN = """
    import json, sys
    from datetime import datetime, timedelta
    import pendulum
    from airflow.sdk import DAG, CronDataIntervalTimetable, MultipleCronTriggerTimetable
    from s3_retention.core.ticks import Tick
    from s3_retention.runtime.ticks import ticks_of_policy, ticks_of_timetable

    def at(text):
        return datetime.fromisoformat(text + "+00:00")

    def answer(between, last, before):
        ticks = between(Tick.at(at(last)), at(before))
        if ticks is None:
            return None
        assert all(type(tick.due_at) is datetime for tick in ticks)
        return [tick.due_at.isoformat()[:16] for tick in ticks]

    given = json.load(sys.stdin)
    found = {name: answer(ticks_of_policy(case[0]), *case[1:3]) for name, case in given["policies"].items()}
    for name, (schedule, last, before, _) in given["dags"].items():
        zone = "Europe/Berlin" if "zone" in name else "UTC"
        dag = DAG("d", schedule=eval(schedule), start_date=pendulum.datetime(2020, 1, 1, tz=zone))
        found[name] = answer(ticks_of_timetable(dag.timetable), last, before)

    class Broken:
        def next_dagrun_info(self, **_):
            raise RuntimeError("changed")

    class Standing:
        def next_dagrun_info(self, *, last_automated_data_interval, restriction):
            from airflow.timetables.base import DagRunInfo
            return DagRunInfo.exact(last_automated_data_interval.end)

    for name, timetable in {"broken": Broken(), "standing": Standing(), "none of Airflow's": object()}.items():
        found[name] = answer(ticks_of_timetable(timetable), "2026-06-01T00:00", "2026-07-01T00:00")
    found["no zone"] = answer(ticks_of_policy("0 3 * * * Mars/Olympus"), "2026-06-01T00:00", "2026-07-01T00:00")
    found["no text"] = answer(ticks_of_policy(""), "2026-06-01T00:00", "2026-07-01T00:00")
    print("RESULT", json.dumps(found))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    result: dict[str, Any] = result_of(
        RUN,
        home=tmp_path_factory.mktemp("home"),
        stdin=json.dumps({"policies": POLICY_CASES, "dags": DAG_CASES}),
        env={
            "PYTHONPATH": str(ROOT / "plugins"),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "sqlite:////nowhere/airflow.db",
        },
    )
    return result


@pytest.mark.parametrize("name", POLICY_CASES)
def test_the_ticks_of_a_policy_are_those_of_the_scheduler(answers: dict[str, Any], name: str) -> None:
    assert answers[name] == POLICY_CASES[name][3]


@pytest.mark.parametrize("name", DAG_CASES)
def test_the_ticks_of_a_dag_are_those_of_its_own_timetable(answers: dict[str, Any], name: str) -> None:
    assert answers[name] == DAG_CASES[name][3]


@pytest.mark.parametrize("name", ["broken", "standing", "none of Airflow's", "no zone", "no text"])
def test_whatever_goes_wrong_is_unknown_and_never_a_tick(answers: dict[str, Any], name: str) -> None:
    assert answers[name] is None


@pytest.mark.parametrize(
    "name", [name for name in POLICY_CASES if name.startswith(("Berlin", "New York")) and "hourly" in name]
)
def test_an_hourly_schedule_has_each_hour_of_a_dst_night_once(answers: dict[str, Any], name: str) -> None:
    _, last, before, _ = POLICY_CASES[name]
    begin, end = (datetime.fromisoformat(f"{text}+00:00") for text in (last, before))
    hours = (end - begin) // timedelta(hours=1)
    every = [begin + timedelta(hours=number) for number in range(1, hours)]
    assert answers[name] == [one.astimezone(UTC).isoformat()[:16] for one in every]
