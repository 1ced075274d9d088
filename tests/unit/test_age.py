from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.age import AgeRule, in_utc
from s3_retention.core.key_date import KeyDate, Period, finest_level
from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.core.policy import Age

UTC = timezone.utc
ANY = "^(?P<date>.*)$"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def facts(key: str = "k", at: datetime | None = None) -> ObjectFacts:
    return ObjectFacts(ObjectRef("bucket", key), '"e"', 1, at or utc(2026, 1, 1))


def rule(zone: str = "UTC", **age: Any) -> AgeRule:
    return AgeRule(Age.model_validate({"retain": "30d", **age}), timezone=zone)


def end(text: str, date_format: str, zone: str = "UTC") -> datetime | str:
    period = KeyDate("(?s)^(?P<date>.*)$", date_format, zone).read(text)
    return period if isinstance(period, str) else period.ends_at


def test_last_modified_is_an_instant_in_utc() -> None:
    at = datetime(2026, 3, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert rule(**{"from": "last_modified"}).period(facts(at=at)) == (utc(2026, 3, 1), utc(2026, 3, 1))


def test_retention_is_added_as_absolute_time_across_a_dst_change() -> None:
    at = datetime(2026, 3, 28, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    lived = rule(retain="1d", **{"from": "last_modified"})
    period = lived.period(facts(at=at))
    assert isinstance(period, Period)
    assert lived.due_at(period.ends_at) == utc(2026, 3, 29, 11)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        in_utc(datetime(2026, 1, 1))  # noqa: DTZ001


def test_what_is_due_after_the_year_9999_is_never_due() -> None:
    assert rule(**{"from": "last_modified"}).due_at(utc(9999, 12, 31)) is None


@pytest.mark.parametrize(
    ("text", "date_format", "ends_at"),
    [
        ("2026", "%Y", utc(2027, 1, 1)),
        ("2026-07", "%Y-%m", utc(2026, 8, 1)),
        ("2026-12", "%Y-%m", utc(2027, 1, 1)),
        ("2026-7", "%Y-%m", utc(2026, 8, 1)),
        ("Jul 2026", "%b %Y", utc(2026, 8, 1)),
        ("JULY2026", "%B%Y", utc(2026, 8, 1)),
        ("2028-02-29", "%Y-%m-%d", utc(2028, 3, 1)),
        ("20260731", "%Y%m%d", utc(2026, 8, 1)),
        ("2026-365", "%Y-%j", utc(2027, 1, 1)),
        ("2026/07/31/23", "%Y/%m/%d/%H", utc(2026, 8, 1)),
        ("2026-07-31T23:59", "%Y-%m-%dT%H:%M", utc(2026, 8, 1)),
        ("20260731T235959", "%Y%m%dT%H%M%S", utc(2026, 8, 1)),
        ("2026-W01", "%G-W%V", utc(2026, 1, 5)),
        ("2026-W53", "%G-W%V", utc(2027, 1, 4)),
        ("2026-W01-7", "%G-W%V-%u", utc(2026, 1, 5)),
        ("year=2026/month=07", "year=%Y/month=%m", utc(2026, 8, 1)),
        ("100%2026", "100%%%Y", utc(2027, 1, 1)),
    ],
)
def test_age_counts_from_the_end_of_the_period_that_the_key_names(
    text: str, date_format: str, ends_at: datetime
) -> None:
    assert end(text, date_format) == ends_at


@pytest.mark.parametrize(
    ("text", "date_format"),
    [
        ("2026-02-30", "%Y-%m-%d"),
        ("2026-13", "%Y-%m"),
        ("2026-366", "%Y-%j"),
        ("2025-W53", "%G-W%V"),
        ("2026-W00", "%G-W%V"),
        ("0000", "%Y"),
        ("", "%Y"),
        ("2026-07 ", "%Y-%m"),
        ("2026\n07", "%Y %m"),
        ("2026  07", "%Y %m"),
        ("\uff12\uff10\uff12\uff16", "%Y"),
        ("2026-07-01x", "%Y-%m-%d"),
        ("2026-07-01 23:59:60", "%Y-%m-%d %H:%M:%S"),
        ("1-01-01", "%Y-%m-%d"),
    ],
)
def test_a_text_that_is_no_date_is_never_taken_for_one(text: str, date_format: str) -> None:
    assert end(text, date_format) == "date_not_parsable"


def test_digits_that_can_be_split_in_two_ways_are_no_date() -> None:
    assert end("2026111", "%Y%m%d") == "date_not_parsable"
    assert end("2026-1-11", "%Y-%m-%d") == utc(2026, 1, 12)


def test_a_key_without_the_date_says_so() -> None:
    reader = KeyDate(r"/(?:(?P<date>\d{4})|none)/", "%Y", "UTC")
    assert reader.read("a/b") == "no_date_in_key"
    assert reader.read("a/none/b") == "no_date_in_key"
    assert reader.read("a/2026/2027/b") == Period(utc(2026, 1, 1), utc(2027, 1, 1))


def test_a_period_at_the_end_of_the_calendar_is_in_the_future_and_one_at_its_start_is_no_date() -> None:
    assert end("9999", "%Y") == "date_in_future"
    assert end("9999-12", "%Y-%m") == "date_in_future"
    assert end("9999-12-31", "%Y-%m-%d") == "date_in_future"
    assert end("0001-01-01", "%Y-%m-%d", "Asia/Tokyo") == "date_not_parsable"


@pytest.mark.parametrize(
    ("zone", "text", "ends_at"),
    [
        ("Europe/Berlin", "2026-03-29", utc(2026, 3, 29, 22)),  # 23 hours
        ("Europe/Berlin", "2026-10-25", utc(2026, 10, 25, 23)),  # 25 hours
        ("America/Los_Angeles", "2026-07-01", utc(2026, 7, 2, 7)),
        ("Asia/Kathmandu", "2026-07-01", utc(2026, 7, 1, 18, 15)),
        ("Africa/Cairo", "2026-04-23", utc(2026, 4, 23, 22)),  # the next midnight is skipped: 00:00 is 01:00
        ("Pacific/Apia", "2011-12-29", utc(2011, 12, 30, 10)),  # the next day is skipped
    ],
)
def test_a_day_ends_at_the_next_local_midnight(zone: str, text: str, ends_at: datetime) -> None:
    assert end(text, "%Y-%m-%d", zone) == ends_at


def test_an_hour_that_comes_twice_ends_with_its_second_time() -> None:
    assert end("2026-10-25 01", "%Y-%m-%d %H", "Europe/Berlin") == utc(2026, 10, 25, 1)
    assert end("2026-10-25 02", "%Y-%m-%d %H", "Europe/Berlin") == utc(2026, 10, 25, 2)
    assert end("2026-10-25 02:30", "%Y-%m-%d %H:%M", "Europe/Berlin") == utc(2026, 10, 25, 1, 31)


ZONES = st.sampled_from(
    [
        "UTC",
        "Europe/Berlin",
        "America/Havana",
        "America/Sao_Paulo",
        "Africa/Cairo",
        "Australia/Lord_Howe",
        "Pacific/Apia",
    ]
)
FORMATS = st.sampled_from(
    ["%Y", "%Y-%m", "%Y-%m-%d", "%Y%j", "%G-W%V", "%Y%m%d%H", "%d.%m.%Y %H:%M", "%Y%m%dT%H%M%S"]
)


@given(
    st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2100, 1, 1)),  # noqa: DTZ001
    ZONES,
    FORMATS,
)
def test_no_moment_whose_local_date_is_in_the_key_lies_outside_its_period(
    at: datetime, zone: str, date_format: str
) -> None:
    moment = at.replace(tzinfo=UTC)
    text = moment.astimezone(ZoneInfo(zone)).strftime(date_format)
    period = KeyDate(ANY, date_format, zone).read(text)
    assert isinstance(period, Period)
    assert period.starts_at <= moment < period.ends_at
    assert period.starts_at.tzinfo is UTC
    assert period.ends_at.tzinfo is UTC


@given(st.dates(min_value=date(1971, 1, 1), max_value=date(2100, 1, 1)))
def test_days_follow_one_another_without_hole_or_overlap(day: date) -> None:
    reader = KeyDate(ANY, "%Y-%m-%d", "Europe/Berlin")
    today, tomorrow = (reader.read((day + timedelta(days=more)).isoformat()) for more in (0, 1))
    assert isinstance(today, Period)
    assert isinstance(tomorrow, Period)
    assert today.ends_at == tomorrow.starts_at


@given(st.text(alphabet="0123456789-TW \n٣", max_size=12), FORMATS)
def test_any_text_gives_a_period_or_a_reason(text: str, date_format: str) -> None:
    found = KeyDate("(?s)^(?P<date>.*)$", date_format, "Europe/Berlin").read(text)
    if isinstance(found, str):
        assert found in {"date_not_parsable", "date_in_future"}
    else:
        assert found.starts_at < found.ends_at


@pytest.mark.parametrize(
    ("date_format", "level"),
    [
        ("%Y", "year"),
        ("%m/%Y", "month"),
        ("%d-%b-%Y", "day"),
        ("%Y%j%H", "hour"),
        ("%GW%V", "ISO week"),
        ("%G%V%u", "weekday"),
    ],
)
def test_the_finest_directive_is_the_length_of_the_period(date_format: str, level: str) -> None:
    assert finest_level(date_format) == level


@pytest.mark.parametrize(
    "date_format",
    ["", "%m", "%H:%M", "%y-%m", "%Y-%d", "%Y-%H", "%Y-%m-%j", "%Y %m %B", "%Y-%m-%H", "%G", "%G-%m", "%Y-%V",
     "%Y-%m-%d %I", "%Y-%m-%dT%H:%M%z", "%Y %A", "%c", "%Y%", "%Y%\n", "%Y %U", "%V"],
)  # fmt: skip
def test_a_format_that_does_not_name_one_date_is_refused(date_format: str) -> None:
    with pytest.raises(ValueError, match=r"year|directive|does not name one date"):
        finest_level(date_format)


def test_the_same_text_is_parsed_once() -> None:
    reader = KeyDate(r"^(?P<date>\d{4})/", "%Y", "UTC")
    assert [reader.read(f"2026/{number}") for number in range(3)] == [reader.read("2026/x")] * 3
    assert reader.period_of.cache_info().misses == 1
