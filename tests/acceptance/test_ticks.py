"""Ticks that no run answers, through the real scheduler: nothing is faked here, so that real minutes pass."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.conftest import MINUTELY, ask, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.stack import Stack

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(900)]

WATCH = "s3_retention_watch"
MINUTE = timedelta(minutes=1)
MOMENT = timedelta(seconds=1)
LATE_IN_A_MINUTE = 40
"""From this second on a run might not end within its minute."""
UNDER_WAY = {"queued", "running"}


@dataclass(frozen=True)
class Pause:
    """A pause from one run to another, and what was flagged in between."""

    last_run_at: datetime
    watched: list[tuple[datetime, str, str]]
    runs_when_watched: list[datetime]
    next_run_at: datetime
    next_run_id: str
    key: str

    @property
    def missed(self) -> list[datetime]:
        """The ticks in between."""
        return minutes_between(self.last_run_at, self.next_run_at)


def now() -> datetime:
    return datetime.now(timezone.utc)


def minutes_between(first: datetime, last: datetime) -> list[datetime]:
    return [first + number * MINUTE for number in range(1, (last - first) // MINUTE)]


def scheduled_runs(running: Stack) -> dict[datetime, dict[str, Any]]:
    """Give the runs of the minutely policy by their ticks, in order."""
    return {
        datetime.fromisoformat(run["run_after"].replace("Z", "+00:00")): run
        for run in running.airflow.dag_runs(MINUTELY)
        if run["run_type"] == "scheduled"
    }


def newest_run(running: Stack) -> tuple[datetime, str]:
    *_, (ran_at, run) = scheduled_runs(running).items()
    return ran_at, run["dag_run_id"]


def flagged(running: Stack, first: datetime, last: datetime) -> list[tuple[datetime, str, str]]:
    """Tick, cause and flagger of each row between two ticks, both included."""
    return ask(
        running,
        "SELECT due_at, cause, flagged_by FROM s3_retention.missed_intervals "
        "WHERE policy = 'minutely' AND due_at BETWEEN %s AND %s ORDER BY due_at",
        first,
        last,
    )


def unresolved(running: Stack, last: datetime) -> list[tuple[datetime]]:
    return ask(
        running,
        "SELECT due_at FROM s3_retention.missed_intervals "
        "WHERE policy = 'minutely' AND due_at <= %s AND resolved_at IS NULL",
        last,
    )


def watch_once(running: Stack) -> str:
    """Let the watch pass once. Red or green: a notifier that fails makes it red, and all else is done."""
    running.airflow.unpause(WATCH)
    run_id = running.airflow.trigger(WATCH)
    running.airflow.wait_for_run(WATCH, run_id)
    return f"{WATCH}/{run_id}"


def put_expired(running: Stack, name: str) -> str:
    key = f"data/2026-01-01/{name}.bin"
    running.s3.admin_client().put_object(Bucket="minutely", Key=key, Body=b"x")
    return key


def settled(running: Stack, key: str) -> list[tuple[str, str, datetime, datetime]]:
    """Outcome and run of each ledger entry of a key, and from when to when its interval goes."""
    return ask(
        running,
        "SELECT outcome, run_id, starts_at, ends_at FROM s3_retention.ledger_entries "
        "JOIN s3_retention.batches USING (batch_id) "
        "JOIN s3_retention.intervals ON intervals.interval_id = ledger_entries.interval_id "
        "WHERE bucket = 'minutely' AND key = %s",
        key,
    )


@pytest.fixture(scope="module")
def pause(running: Stack) -> Pause:
    """A real pause, begun when the sandbox was started (see `begin_pause`), and ended after five ticks."""
    last_run_at, _ = newest_run(running)
    key = put_expired(running, "paused")
    running.airflow.wait_for_dag(WATCH)
    # Airflow fires one late tick: the newest one, or the one before it if it has not read the DAG since. So seven
    # ticks give at least five missed ones, and the watch's five minutes of grace for the first of them are over.
    until(lambda: now() >= last_run_at + 7 * MINUTE + MOMENT, seconds=460)
    watch_once(running)
    watched = flagged(running, last_run_at, now())
    runs_when_watched = list(scheduled_runs(running))
    running.airflow.unpause(MINUTELY)
    next_run_at, next_run_id = until(
        lambda: (newest := newest_run(running))[0] > last_run_at and newest,
    )
    running.airflow.wait_for_run(MINUTELY, next_run_id, expect="success")
    return Pause(last_run_at, watched, runs_when_watched, next_run_at, next_run_id, key)


def test_the_watch_flags_the_overdue_tick_of_a_paused_dag_without_that_dag_running(pause: Pause) -> None:
    assert pause.runs_when_watched[-1] == pause.last_run_at
    assert pause.watched
    assert [due_at for due_at, _, _ in pause.watched] == pause.missed[: len(pause.watched)]
    for _, cause, flagged_by in pause.watched:
        assert cause == "paused"
        assert flagged_by.startswith(f"{WATCH}/")


def test_a_pause_over_five_ticks_gives_five_rows_once(running: Stack, pause: Pause) -> None:
    rows = flagged(running, pause.last_run_at, pause.next_run_at)
    assert [due_at for due_at, _, _ in rows] == pause.missed
    assert len(pause.missed) >= 5
    assert rows[: len(pause.watched)] == pause.watched
    # The run flags what the watch had not waited for yet. It cannot see any more that the DAG was paused.
    for _, cause, flagged_by in rows[len(pause.watched) :]:
        assert cause in {"paused", "unknown"}
        assert flagged_by == f"{MINUTELY}/{pause.next_run_id}"

    running.airflow.clear(MINUTELY, pause.next_run_id, ["flag_missed_intervals"])
    running.airflow.wait_for_run(MINUTELY, pause.next_run_id, expect="success")
    watch_once(running)
    assert flagged(running, pause.last_run_at, pause.next_run_at) == rows


def test_what_a_pause_has_missed_is_covered_by_the_run_that_follows(running: Stack, pause: Pause) -> None:
    ((outcome, run_id, starts_at, ends_at),) = settled(running, pause.key)
    assert (outcome, run_id) == ("deleted", pause.next_run_id)
    assert starts_at < pause.missed[0]
    assert pause.missed[-1] < ends_at
    watch_once(running)
    assert unresolved(running, pause.next_run_at) == []


@pytest.fixture
def watch_is_paused(running: Stack) -> Iterator[None]:
    """Nothing but the minutely policy runs meanwhile: a task that dies with its scheduler blocks its DAG for long."""
    running.airflow.pause(WATCH)
    until(lambda: all(run["state"] not in UNDER_WAY for run in running.airflow.dag_runs(WATCH)))
    yield
    running.airflow.unpause(WATCH)


@pytest.mark.usefixtures("pause", "watch_is_paused")
def test_the_ticks_of_a_killed_scheduler_are_each_run_late_or_flagged_once(running: Stack) -> None:
    until(lambda: is_idle(running), seconds=120)
    last_run_at, _ = newest_run(running)
    scheduler = running.airflow.component("scheduler")
    scheduler.kill()
    key = put_expired(running, "killed")
    # Airflow runs the tick that it had in mind, and the newest one: of three, one at least is skipped.
    until(lambda: now() >= last_run_at + 3 * MINUTE + MOMENT, seconds=240)
    assert newest_run(running)[0] == last_run_at
    scheduler.start()
    until(lambda: newest_run(running)[0] >= last_run_at + 3 * MINUTE)
    for run in running.airflow.dag_runs(MINUTELY):
        running.airflow.wait_for_run(MINUTELY, run["dag_run_id"], expect="success")

    ran = [ran_at for ran_at in scheduled_runs(running) if ran_at > last_run_at]
    rows = flagged(running, last_run_at, ran[-1])
    not_run = [due_at for due_at in minutes_between(last_run_at, ran[-1]) if due_at not in ran]
    assert [due_at for due_at, _, _ in rows] == not_run
    assert not_run
    watch_once(running)
    assert flagged(running, last_run_at, ran[-1]) == rows
    assert unresolved(running, ran[-1]) == []
    ((outcome, _, starts_at, ends_at),) = settled(running, key)
    assert outcome == "deleted"
    assert starts_at < not_run[0]
    assert not_run[-1] < ends_at
    running.airflow.pause(MINUTELY)


def is_idle(running: Stack) -> bool:
    """Whether the run of this minute has just ended, and nothing else is under way."""
    ran_at, _ = newest_run(running)
    is_early = now() < ran_at + timedelta(seconds=LATE_IN_A_MINUTE)
    return is_early and all(run["state"] not in UNDER_WAY for run in running.airflow.dag_runs("~"))
