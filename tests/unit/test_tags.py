"""Tags select, keep and date an object; where they are not known, it is kept."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from s3_retention.core.decider import Decider
from s3_retention.core.verdict import TAGS_NOT_READ, Candidate, Verdict
from tests.factories import BY_LAST_MODIFIED, OLD, a_policy, facts

UTC = timezone.utc
NOW = datetime(2026, 12, 3, tzinfo=UTC)
SELECT = {"include": ["exports/**"]}
BY_TAG = {"from": "tag", "tag": "expires", "format": "%Y-%m-%d", "retain": "2d"}


def decider(*, age: dict[str, Any] | None = None, **select: Any) -> Decider:
    return Decider(a_policy(select=SELECT | select, age=age or BY_LAST_MODIFIED))


@pytest.mark.parametrize(
    ("select", "tags", "is_selected"),
    [
        ({"tags": {"class": "temp"}}, {"class": "temp", "other": "x"}, True),
        ({"tags": {"class": "temp"}}, {"class": "TEMP"}, False),
        ({"tags": {"class": "temp"}}, {"Class": "temp"}, False),
        ({"tags": {"class": "temp"}}, {}, False),
        ({"tags": {"class": ["temp", "scratch"]}}, {"class": "scratch"}, True),
        ({"tags": {"class": "temp", "team": "a"}}, {"class": "temp"}, False),
        ({"tags": {"class": "temp", "team": "a"}}, {"class": "temp", "team": "a"}, True),
        ({"tags": {"class": "*"}}, {"class": ""}, True),
        ({"tags": {"class": "*"}}, {}, False),
        ({"tags": {"class": ""}}, {"class": ""}, True),
        ({"exclude_tags": {"hold": "yes"}}, {}, True),
        ({"exclude_tags": {"hold": "yes"}}, {"hold": "yes"}, False),
        ({"exclude_tags": {"hold": "*"}}, {"hold": "no"}, False),
        ({"exclude_tags": {"hold": "yes", "keep": "*"}}, {"hold": "no", "keep": "x"}, False),
        ({"tags": {"class": "temp"}, "exclude_tags": {"hold": "*"}}, {"class": "temp"}, True),
        ({"tags": {"class": "temp"}, "exclude_tags": {"hold": "*"}}, {"class": "temp", "hold": ""}, False),
    ],
)
def test_an_object_is_selected_by_all_that_is_wanted_and_none_that_is_excluded(
    select: dict[str, Any], tags: dict[str, str], is_selected: bool
) -> None:
    one = decider(**select)
    verdict = one.verdict(facts("exports/a"), now=NOW, tags=tags)
    assert verdict.reasons == (("due",) if is_selected else ("other_tags",))
    assert one.by_tags(facts("exports/a"), tags, now=NOW) == verdict


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2026-11-29", "due"),
        ("2026-11-30", "not_due"),  # it ends on 1 December, and two days later is now
        ("2026-12-02", "not_due"),
        ("2026-12-04", "date_in_future"),
        ("9999-12-31", "date_in_future"),
        ("2026-02-30", "date_not_parsable"),
        ("2026-1-1 ", "date_not_parsable"),
        ("", "date_not_parsable"),
        (None, "no_date_in_tag"),
    ],
)
def test_age_counts_from_the_end_of_the_date_in_a_tag(value: str | None, reason: str) -> None:
    tags = {} if value is None else {"expires": value}
    one = decider(age=BY_TAG)
    assert one.verdict(facts("exports/a"), now=NOW, tags=tags).reasons == (reason,)
    at_the_delete = "not_due" if value == "2026-12-04" else reason
    assert one.by_tags(facts("exports/a"), tags, now=NOW).reasons == (at_the_delete,)


def test_without_its_tags_an_object_is_kept_and_known_to_be_worth_a_request() -> None:
    for one in (decider(tags={"class": "temp"}), decider(exclude_tags={"a": "b"}), decider(age=BY_TAG)):
        assert one.candidate(facts("exports/a"), now=NOW) is TAGS_NOT_READ
        assert one.verdict(facts("exports/a"), now=NOW) is TAGS_NOT_READ
        assert one.candidate(facts("elsewhere/a"), now=NOW).reasons == ("not_selected",)  # type: ignore[union-attr]
    assert isinstance(decider().candidate(facts("exports/a"), now=NOW), Candidate)


def test_what_is_not_due_is_not_worth_a_request_unless_others_are_ranked_with_it() -> None:
    young = facts("exports/a", at=NOW - timedelta(days=30))
    assert isinstance(decider(tags={"a": "b"}).candidate(young, now=NOW), Candidate)
    assert decider(tags={"a": "b"}).candidate(facts("exports/a", at=OLD), now=NOW) is TAGS_NOT_READ
    for ranked in ({"keep": {"latest": 1}}, {"age": BY_LAST_MODIFIED | {"whole_groups": ["g"]}}):
        policy = a_policy(
            **{"age": BY_LAST_MODIFIED} | ranked, select={"regex": "(?P<g>.*)", "tags": {"a": "b"}}
        )
        assert Decider(policy).candidate(young, now=NOW) is TAGS_NOT_READ


def test_a_policy_says_whether_it_asks_for_tags() -> None:
    assert not a_policy().asks_tags
    for changes in (
        {"select": SELECT | {"tags": {"a": "b"}}},
        {"select": SELECT | {"exclude_tags": {"a": "b"}}},
        {"age": BY_TAG},
    ):
        assert a_policy(**changes).asks_tags


def test_the_tags_of_what_is_not_selected_are_never_asked_for() -> None:
    judged = decider(tags={"a": "b"}, min_size=10).candidate(facts("exports/a", size=1), now=NOW)
    assert isinstance(judged, Verdict)
    assert judged.reasons == ("too_small",)
