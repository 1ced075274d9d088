"""A store that lists an entry of a history twice: nothing more goes than with the entry once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.verdict import Verdict
from s3_retention.core.versions import VersionDecider
from tests.factories import BY_LAST_MODIFIED, a_policy, facts
from tests.fakes import fake_gateway
from tests.unit.test_versions import NOW, days_ago, decided, entry


def test_a_version_that_is_listed_twice_takes_the_place_of_one_that_stays() -> None:
    history = (entry(40, latest=True), entry(60), entry(60), entry(70), entry(80))
    assert decided(*history, keep_newest_noncurrent=2) == [
        "current_version",
        "kept_newest_noncurrent",
        "kept_newest_noncurrent",
        "kept_newest_noncurrent",
        40,
    ]


@pytest.mark.parametrize("versions", ["noncurrent", "all"])
def test_a_latest_that_is_listed_twice_keeps_its_history(versions: str) -> None:
    history = (entry(40, latest=True), entry(40, latest=True), entry(60))
    assert decided(*history, versions=versions) == ["latest_not_listed"] * 3


def test_a_latest_that_is_listed_again_as_an_older_one_keeps_its_history() -> None:
    history = (entry(40, latest=True, name="a"), entry(40, name="a"), entry(60))
    assert decided(*history) == ["latest_not_listed"] * 3


@given(
    days=st.lists(st.integers(0, 90), min_size=1, max_size=6).map(sorted),
    twice=st.lists(st.integers(1, 6), max_size=4),
    keep=st.integers(1, 3),
)
def test_whatever_is_listed_twice_goes_only_if_it_goes_when_listed_once(
    days: list[int], twice: list[int], keep: int
) -> None:
    once = [entry(day, latest=place == 0, name=f"{place}") for place, day in enumerate(days)]
    more = list(once)
    for place in twice:
        if place < len(once):
            more.insert(more.index(once[place]) + (place % 2), once[place])
    policy = a_policy(versions="noncurrent", age=BY_LAST_MODIFIED, keep_newest_noncurrent=keep)
    judged = [
        {
            one.facts.ref.version_id: judged
            for one, judged in zip(history, VersionDecider(policy).decide(history, now=NOW), strict=True)
            if not isinstance(judged, Verdict)
        }
        for history in (more, once)
    ]
    assert judged[0] == judged[1]


@pytest.mark.parametrize("overlap", [0, 1, 2])
@pytest.mark.parametrize("size", [3, 4, 5])
def test_pages_that_overlap_let_no_more_go_than_pages_that_do_not(size: int, overlap: int) -> None:
    keys = [facts(f"exports/2020-01/{name}.json").ref.key for name in "abc"]
    entries = [
        {
            "Key": key,
            "VersionId": f"{age}",
            "IsLatest": not age,
            "Size": 1,
            "LastModified": days_ago(40 + 10 * age),
        }
        for key in keys
        for age in range(6)
    ]

    def page(**arguments: Any) -> Any:
        start = int(arguments.get("VersionIdMarker", 0))
        end = start + size
        shown = entries[max(0, start - overlap) : end]
        more = (
            {"NextKeyMarker": shown[-1]["Key"], "NextVersionIdMarker": str(end)} if end < len(entries) else {}
        )
        return {"Versions": shown, "IsTruncated": bool(more), "ResponseMetadata": {}} | more

    policy = a_policy(versions="noncurrent", age=BY_LAST_MODIFIED, keep_newest_noncurrent=3)
    decider = VersionDecider(policy)
    going: dict[str, set[str | None]] = {key: set() for key in keys}
    gateway = fake_gateway(list_object_versions=page)
    for histories in gateway.list_histories(policy.source.bucket, "exports/"):
        for history in histories:
            judged = zip(history, decider.decide(history, now=NOW), strict=True)
            going[history[0].facts.ref.key] |= {
                one.facts.ref.version_id for one, found in judged if not isinstance(found, Verdict)
            }
    for versions in going.values():
        assert versions <= {"4", "5"}
        assert overlap or versions == {"4", "5"}
