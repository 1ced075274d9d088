"""The versions of one key, with all of its history in view."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.objects import ListedVersion
from s3_retention.core.verdict import Candidate, Verdict
from s3_retention.core.versions import VersionDecider
from tests.factories import BY_KEY_DATE, BY_LAST_MODIFIED, a_policy, facts

if TYPE_CHECKING:
    import random

UTC = timezone.utc
NOW = datetime(2026, 6, 1, tzinfo=UTC)
RETAIN = timedelta(days=30)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def entry(
    days: float, *, latest: bool = False, marker: bool = False, size: int = 1, name: str = ""
) -> ListedVersion:
    """One entry that was written so many days ago."""
    version_id = name or f"{'marker' if marker else 'version'}-{days}"
    one = facts(
        version_id=version_id, etag=None if marker else '"e"', size=0 if marker else size, at=days_ago(days)
    )
    return ListedVersion(one, latest, marker)


def decided(*history: ListedVersion, **changes: Any) -> list[float | str]:
    """Of each entry the reason why it stays, or how many days ago it became due."""
    policy = a_policy(**{"versions": "noncurrent", "age": BY_LAST_MODIFIED} | changes)
    return [
        judged.reasons[0] if isinstance(judged, Verdict) else (NOW - judged.due_at) / timedelta(days=1)  # type: ignore[operator]
        for judged in VersionDecider(policy).decide(history, now=NOW)
    ]


def test_a_version_ages_from_when_the_next_newer_one_came() -> None:
    assert decided(entry(10, latest=True), entry(100), entry(200)) == ["current_version", -20, 70]


def test_a_storage_class_is_asked_of_versions_and_not_of_markers() -> None:
    cold, warm = entry(200, name="cold"), entry(300, name="warm")
    cold = replace(cold, facts=replace(cold.facts, storage_class="GLACIER"))
    select = {"include": ["exports/**"], "storage_class": ["GLACIER"]}
    assert decided(entry(100, latest=True), cold, warm, select=select) == [
        "other_storage_class",
        70,
        "other_storage_class",
    ]
    assert decided(entry(40, latest=True, marker=True), select=select) == [10]


def test_a_version_ages_from_when_a_marker_was_put_on_top() -> None:
    history = (entry(40, latest=True, marker=True), entry(400))
    assert decided(*history) == ["marker_over_versions", 10]


@pytest.mark.parametrize("versions", ["noncurrent", "all"])
def test_a_marker_with_nothing_but_markers_beneath_ages_from_its_own_time(versions: str) -> None:
    history = (entry(40, latest=True, marker=True), entry(90, marker=True))
    assert decided(*history, versions=versions) == [10, 10]


def test_a_marker_between_versions_goes_like_a_noncurrent_version() -> None:
    assert decided(entry(40, latest=True), entry(50, marker=True), entry(60)) == ["current_version", 10, 20]


def test_entries_of_one_second_have_no_known_order_and_age_from_the_time_after_it() -> None:
    assert decided(entry(35, latest=True), entry(90, name="a"), entry(90, name="b")) == [
        "current_version",
        5,
        5,
    ]
    assert decided(entry(90, latest=True, name="a"), entry(90, name="b")) == ["current_version", 60]


def test_the_newest_noncurrent_versions_stay_and_markers_do_not_count() -> None:
    history = (entry(40, latest=True), entry(50, marker=True), entry(60), entry(70), entry(80))
    assert decided(*history, keep_newest_noncurrent=2) == [
        "current_version",
        10,
        "kept_newest_noncurrent",
        "kept_newest_noncurrent",
        40,
    ]


def test_of_versions_of_one_second_the_one_that_is_listed_first_is_the_newer() -> None:
    history = (entry(40, latest=True), entry(90, name="a"), entry(90, name="b"))
    assert decided(*history, keep_newest_noncurrent=1)[1:] == ["kept_newest_noncurrent", 10]


def test_with_all_the_latest_goes_with_its_whole_history_and_is_due_with_the_last_of_it() -> None:
    assert decided(entry(40, latest=True), entry(100), entry(200), versions="all") == [10, 10, 70]
    early = {
        "regex": r"exports/(?P<date>\d{4}-\d{2})/",
        "from": "key_date",
        "format": "%Y-%m",
        "retain": "30d",
    }
    assert decided(entry(40, latest=True), entry(100), versions="all", age=early)[0] == 10


def test_with_all_the_latest_stays_over_a_version_that_stays() -> None:
    select = {"include": ["exports/**"], "max_size": 5}
    history = (entry(40, latest=True), entry(100, size=9))
    assert decided(*history, versions="all", select=select) == ["over_kept_versions", "too_large"]


def test_a_version_that_is_not_selected_still_counts_as_the_newer_one() -> None:
    select = {"include": ["exports/**"], "max_size": 5}
    assert decided(entry(10, latest=True, size=9), entry(100), select=select) == ["too_large", -20]


def test_a_limit_of_size_says_nothing_of_markers() -> None:
    select = {"include": ["exports/**"], "min_size": 1}
    assert decided(entry(40, latest=True, marker=True), select=select) == [10]


def test_a_date_in_the_key_makes_no_version_older_than_it_has_been_noncurrent() -> None:
    assert decided(entry(10, latest=True), entry(100), age=BY_KEY_DATE) == ["current_version", -20]


@pytest.mark.parametrize("versions", ["noncurrent", "all"])
def test_a_history_without_one_latest_has_a_gap_and_everything_stays(versions: str) -> None:
    assert decided(entry(100), entry(200), versions=versions) == ["latest_not_listed"] * 2
    twice = (entry(100, latest=True), entry(200, latest=True, marker=True))
    assert decided(*twice, versions=versions) == ["latest_not_listed"] * 2


histories = st.lists(st.tuples(st.integers(0, 90), st.booleans()), min_size=1, max_size=8).map(
    lambda drawn: sorted(drawn, key=lambda one: one[0])
)


@given(drawn=histories, keep=st.none() | st.integers(1, 3), shuffle=st.randoms(use_true_random=False))
def test_whatever_the_history_is_and_in_whatever_order_the_latest_stays_and_nothing_goes_too_early(
    drawn: list[tuple[int, bool]], keep: int | None, shuffle: random.Random
) -> None:
    entries = [
        entry(days, latest=place == 0, marker=is_marker, name=f"{place}")
        for place, (days, is_marker) in enumerate(drawn)
    ]
    versions, markers = (
        [one for one in entries if not one.is_marker],
        [one for one in entries if one.is_marker],
    )
    # As two lists come out of one answer: each in its own order, and what is between them is lost.
    mixed = [*versions, *markers] if shuffle.random() < 0.5 else [*markers, *versions]
    policy = a_policy(versions="noncurrent", age=BY_LAST_MODIFIED, keep_newest_noncurrent=keep)
    judged = dict(
        zip((one.facts for one in mixed), VersionDecider(policy).decide(mixed, now=NOW), strict=True)
    )
    going = [place for place, one in enumerate(entries) if not isinstance(judged[one.facts], Verdict)]
    is_lone = entries[0].is_marker and not versions
    assert (0 in going) == is_lone
    num_kept = sum(place not in going for place, one in enumerate(entries) if place and not one.is_marker)
    assert num_kept == min(keep or 0, sum(not one.is_marker for one in entries[1:]))
    for place in going[1:] if is_lone else going:
        found = judged[entries[place].facts]
        newer = entries[place - 1].facts.last_modified_at
        assert isinstance(found, Candidate)
        assert found.due_at is not None
        assert found.due_at >= newer + RETAIN
