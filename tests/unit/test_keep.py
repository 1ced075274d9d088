"""What the keep rules spare of each group: days, weeks, months and years of a time zone, spans and sizes."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.keep import kept_by
from s3_retention.core.policy_keep import Keep
from s3_retention.core.verdict import Candidate
from tests.factories import facts
from tests.keep_examples import BERLIN, UTC, members, some_rules, validity

if TYPE_CHECKING:
    from collections.abc import Mapping


def dated(*times: str, group: str = "[]", zone: str = "UTC", size: int = 10) -> list[Candidate]:
    """One candidate for each local time; its key is the time."""
    made = []
    for text in times:
        at = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        made.append(Candidate(facts(f"{group}{text}", at=at, size=size), at, at, group))
    return made


def kept(
    candidates: list[Candidate], *, zone: str = "UTC", are_periods: bool = False, **rules: Any
) -> dict[str, str]:
    """Give the reason of each that is kept, by its key without its group."""
    spared = kept_by(candidates, Keep(**rules), timezone=zone, are_periods=are_periods)
    return {
        one.facts.ref.key.removeprefix(one.group_key or ""): reason.removeprefix("kept_")
        for one, reason in spared.items()
    }


VECTORS: dict[str, tuple[list[Candidate], dict[str, Any], Mapping[str, str]]] = {
    "the newest of each day, and the newest of all": (
        dated("2026-05-01 08:00", "2026-05-01 20:00", "2026-05-02 08:00", "2026-05-02 20:00"),
        {"daily": 2},
        {"2026-05-02 20:00": "latest", "2026-05-01 20:00": "daily"},
    ),
    "days without an object do not count": (
        dated("2026-01-01 00:00", "2026-03-01 00:00", "2026-05-01 00:00"),
        {"daily": 2},
        {"2026-05-01 00:00": "latest", "2026-03-01 00:00": "daily"},
    ),
    "the first and the last instant of a day belong to it": (
        dated("2026-05-01 00:00", "2026-05-01 23:59:59.999999", "2026-05-02 00:00"),
        {"daily": 3},
        {"2026-05-02 00:00": "latest", "2026-05-01 23:59:59.999999": "daily"},
    ),
    "29 February is a day, and its month ends with it": (
        dated("2028-02-28 12:00", "2028-02-29 12:00", "2028-03-01 12:00"),
        {"monthly": 2},
        {"2028-03-01 12:00": "latest", "2028-02-29 12:00": "monthly"},
    ),
    "ISO week 53 goes over the turn of the year": (
        dated("2026-12-27 12:00", "2026-12-28 12:00", "2027-01-03 12:00", "2027-01-04 12:00"),
        {"weekly": 3},
        {"2027-01-04 12:00": "latest", "2027-01-03 12:00": "weekly", "2026-12-27 12:00": "weekly"},
    ),
    "a year has one": (
        dated("2024-12-31 23:59", "2025-01-01 00:00", "2025-06-01 00:00", "2026-01-01 00:00"),
        {"yearly": 3},
        {"2026-01-01 00:00": "latest", "2025-06-01 00:00": "yearly", "2024-12-31 23:59": "yearly"},
    ),
    "within counts from the newest of the group, to the instant": (
        dated("2026-05-01 00:00", "2026-05-08 00:00", "2026-04-30 23:59:59"),
        {"within": "7d"},
        {"2026-05-08 00:00": "latest", "2026-05-01 00:00": "within"},
    ),
    "min_bytes takes the newest until it has enough": (
        dated("2026-05-01 00:00", "2026-05-02 00:00", "2026-05-03 00:00", "2026-05-04 00:00"),
        {"min_bytes": 21},
        {"2026-05-04 00:00": "latest", "2026-05-03 00:00": "min_bytes", "2026-05-02 00:00": "min_bytes"},
    ),
    "rules are a union, and the first that keeps an object names it": (
        dated("2026-03-31 00:00", "2026-04-30 00:00", "2026-05-01 00:00", "2026-05-02 00:00"),
        {"latest": 2, "daily": 2, "monthly": 3},
        {
            "2026-05-02 00:00": "latest",
            "2026-05-01 00:00": "latest",
            "2026-04-30 00:00": "monthly",
            "2026-03-31 00:00": "monthly",
        },
    ),
    "with valid_if the newest stay, and as many of the valid ones besides": (
        [
            *dated("2026-05-04 00:00", "2026-05-03 00:00", size=0),
            *dated("2026-05-02 00:00", "2026-05-01 00:00", "2026-04-30 00:00", size=10),
        ],
        {"latest": 2, "valid_if": {"min_size": 10}},
        {
            "2026-05-04 00:00": "latest",
            "2026-05-03 00:00": "latest",
            "2026-05-02 00:00": "valid",
            "2026-05-01 00:00": "valid",
        },
    ),
    "a day whose newest is not valid keeps its newest valid one, too, and takes no place among valid days": (
        [
            *dated("2026-05-02 20:00", "2026-05-01 20:00", "2026-05-01 21:00", size=9),
            *dated("2026-05-02 08:00", "2026-04-30 08:00", "2026-04-29 08:00", size=10),
        ],
        {"daily": 2, "valid_if": {"min_size": 10}},
        {
            "2026-05-02 20:00": "latest",
            "2026-05-01 21:00": "daily",
            "2026-05-02 08:00": "valid",
            "2026-04-30 08:00": "valid",
        },
    ),
    "within counts from the newest valid one, too": (
        [
            *dated("2026-05-20 00:00", size=0),
            *dated("2026-05-08 00:00", "2026-05-01 00:00", "2026-04-30 00:00"),
        ],
        {"within": "7d", "valid_if": {"min_size": 1}},
        {"2026-05-20 00:00": "latest", "2026-05-08 00:00": "valid", "2026-05-01 00:00": "within"},
    ),
    "the newest valid one is looked for, although it is within the span of the newest": (
        [
            *dated("2026-05-20 00:00", size=0),
            *dated("2026-05-19 00:00", "2026-05-18 00:00"),
        ],
        {"within": "7d", "valid_if": {"min_size": 1}},
        {"2026-05-20 00:00": "latest", "2026-05-19 00:00": "valid", "2026-05-18 00:00": "within"},
    ),
    "where none is valid, valid_if changes nothing": (
        dated("2026-05-01 00:00", "2026-05-02 00:00", size=0),
        {"latest": 1, "valid_if": {"min_size": 1}},
        {"2026-05-02 00:00": "latest"},
    ),
    "a group of one keeps it": (dated("2020-01-01 00:00"), {"yearly": 1}, {"2020-01-01 00:00": "latest"}),
    "nothing keeps nothing": ([], {"daily": 7}, {}),
}


@pytest.mark.parametrize("name", VECTORS)
def test_what_each_rule_keeps(name: str) -> None:
    candidates, rules, expected = VECTORS[name]
    assert kept(candidates, **rules) == expected
    assert kept(candidates[::-1], **rules) == expected


def test_each_group_is_ranked_by_itself() -> None:
    candidates = [*dated("2026-05-01 00:00", group='["a"]'), *dated("2026-04-01 00:00", group='["b"]')]
    assert kept(candidates, daily=1) == {"2026-05-01 00:00": "latest", "2026-04-01 00:00": "latest"}


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # On 29 March 2026 the clock goes from 2 to 3, on 25 October from 3 back to 2.
        (("2026-03-29 00:00", "2026-03-29 23:59"), {"2026-03-29 23:59"}),
        (("2026-10-25 00:00", "2026-10-25 23:59"), {"2026-10-25 23:59"}),
        (("2026-03-28 23:59", "2026-03-29 00:00"), {"2026-03-28 23:59", "2026-03-29 00:00"}),
    ],
)
def test_a_day_is_that_of_the_time_zone_of_the_policy(times: tuple[str, ...], expected: set[str]) -> None:
    assert set(kept(dated(*times, zone=BERLIN), zone=BERLIN, daily=5)) == expected


def test_an_evening_in_berlin_is_another_day_in_utc() -> None:
    late = dated("2026-06-01 00:30", "2026-06-01 12:00", zone=BERLIN)  # 22:30 of the day before in UTC
    assert len(kept(late, zone=BERLIN, daily=5)) == 1
    assert len(kept(late, zone="UTC", daily=5)) == 2


def test_a_day_that_a_key_names_is_that_day_although_it_counts_from_its_end() -> None:
    # Keys of 30 April and 1 May: their reference times are the midnights after them.
    ends = dated("2026-05-01 00:00", "2026-05-02 00:00")
    assert kept(ends, are_periods=True, monthly=2) == {
        "2026-05-02 00:00": "latest",
        "2026-05-01 00:00": "monthly",
    }
    assert kept(ends, are_periods=False, monthly=2) == {"2026-05-02 00:00": "latest"}


def test_objects_of_one_time_are_ranked_by_modification_and_then_by_key() -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    twins = [Candidate(facts(key, at=at), at, at, "[]") for key in ("a", "b")]
    assert kept(twins, daily=1) == {"b": "latest"}


# Properties -----------------------------------------------------------------------------------------------
@given(candidates=members(), rules=some_rules, more=some_rules, valid_if=validity, are_periods=st.booleans())
def test_another_rule_never_takes_one_away_and_the_newest_of_a_group_always_stays(
    candidates: list[Candidate],
    rules: dict[str, Any],
    more: dict[str, Any],
    valid_if: dict[str, int] | None,
    are_periods: bool,
) -> None:
    def spared(chosen: dict[str, Any]) -> set[Candidate]:
        return set(kept_by(candidates, Keep(**chosen), timezone=BERLIN, are_periods=are_periods))

    alone = spared(rules)
    assert alone <= spared(rules | {"valid_if": valid_if})
    beside = {name: max(rules.get(name, value), value) for name, value in more.items()}
    assert alone <= spared(rules | beside)
    assert spared(rules | {"valid_if": valid_if}) <= spared(rules | beside | {"valid_if": valid_if})
    for group in {one.group_key for one in candidates}:
        of_group = [one for one in candidates if one.group_key == group]
        newest = max(
            of_group, key=lambda one: (one.reference_at, one.facts.last_modified_at, one.facts.ref.key)
        )
        assert newest in alone
