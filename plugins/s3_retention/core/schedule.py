"""What a schedule text means: is it one that Airflow can run, and how far apart can two ticks be."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from itertools import pairwise

from croniter import CroniterError, croniter  # type: ignore[import-untyped, unused-ignore]

# The presets of Airflow that are a cron expression (airflow.utils.dates.cron_presets). @once and @continuous
# are none: a retention that runs once, or without pause, is a mistake.
PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
_NUM_FIELDS = 5
_ANY_DAY = [["*"], ["*"], ["*"]]
# Gaps are measured over these years, leap days included: the answer does not depend on when it is asked.
_SAMPLE_START = datetime(2023, 12, 31, tzinfo=timezone.utc)
_SAMPLE_END = datetime(2027, 12, 31, tzinfo=timezone.utc)
_MAX_SAMPLES = 400


def check_schedule(schedule: str) -> str:
    """Return the schedule unchanged when Airflow can run it: a preset, or five cron fields that fire at all.

    Raises ValueError, with the fix, for anything else; also for croniter's random and hashed fields (R, H),
    which mean another time in every process that reads them.
    """
    presets = ", ".join(PRESETS)
    if schedule.startswith("@"):
        if schedule not in PRESETS:
            raise ValueError(
                f"is not a preset; use one of {presets}, five cron fields, or null for manual only"
            )
        return schedule
    if len(schedule.split()) != _NUM_FIELDS or re.search(r"\b[hr]\b", schedule, re.IGNORECASE):
        raise ValueError(
            f"is not a cron expression; write five fields such as '0 3 * * 0', or one of {presets}"
        )
    try:
        croniter(schedule, _SAMPLE_START).get_next(datetime)
    except (CroniterError, ValueError, LookupError, TypeError, AttributeError) as error:
        # croniter checks with many conversions of its own; whatever breaks one of them is no schedule.
        raise ValueError(
            "is not a cron expression that ever fires; write five fields such as '0 3 * * 0'"
        ) from error
    return schedule


def longest_gap(schedule: str) -> timedelta:
    """Return the longest time between two consecutive ticks, on the wall clock (DST changes left out).

    ``schedule`` has passed ``check_schedule``. ``0 3 * * 0`` gives 7 days, ``0 9 * * 1-5`` gives 3 days.
    """
    expression = PRESETS.get(schedule, schedule)
    minutes, hours, *_ = croniter(expression).expanded
    times = [
        timedelta(hours=hour, minutes=minute)
        for hour in _numbers(hours, 24)
        for minute in _numbers(minutes, 60)
    ]
    within_a_day = max((later - sooner for sooner, later in pairwise(times)), default=timedelta(0))
    return max(within_a_day, _longest_day_gap(expression) - times[-1] + times[0])


def _numbers(field: list[int | str], count: int) -> list[int]:
    return list(range(count)) if "*" in field else sorted(int(number) for number in field)


def _longest_day_gap(expression: str) -> timedelta:
    days = croniter(" ".join(["0", "0", *expression.split()[2:]]), _SAMPLE_START)
    if days.expanded[2:5] == _ANY_DAY:
        return timedelta(days=1)
    longest, previous = timedelta(0), days.get_next(datetime)
    for _ in range(_MAX_SAMPLES):
        following = days.get_next(datetime)
        longest = max(longest, following - previous)
        if following > _SAMPLE_END:
            break
        previous = following
    return longest
