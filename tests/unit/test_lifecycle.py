"""Lifecycle rules of S3 become policies that never delete what the rule would have kept, or are named with why not."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.decider import Decider
from s3_retention.core.lifecycle import LifecycleImport, import_lifecycle
from s3_retention.core.policy import parse_policy
from s3_retention.core.verdict import Action
from s3_retention.errors import LifecycleError
from tests.factories import facts

DAY = timedelta(days=1)
UTC = timezone.utc
TAG = {"Key": "a", "Value": "b"}
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def imported(*rules: Any) -> LifecycleImport:
    return import_lifecycle({"Rules": list(rules)}, bucket="acme", min_retention=DAY)


def rule(**fields: Any) -> dict[str, Any]:
    return {"ID": "logs", "Status": "Enabled", "Filter": {"Prefix": "logs/"}} | fields


def documents(*rules: Any) -> list[dict[str, Any]]:
    done = imported(*rules)
    assert done.not_expressed == ()
    return [one.document for one in done.policies]


def left(*rules: Any) -> list[tuple[str, str]]:
    done = imported(*rules)
    assert done.policies == ()
    return [(one.field, one.why) for one in done.not_expressed]


def test_a_rule_of_days_is_a_policy_that_simulates_and_has_a_day_more() -> None:
    (document,) = documents(rule(Expiration={"Days": 30}))
    assert document == {
        "name": "logs",
        "version": "v1",
        "mode": "simulate",
        "description": "From the lifecycle rule 'logs': 30 days, and one more for S3's rounding.",
        "schedule": "0 2 * * *",
        "source": {"type": "s3_listing", "bucket": "acme", "prefix": "logs/"},
        "select": {"include": ["**"]},
        "age": {"from": "last_modified", "retain": "31d"},
    }


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"Filter": {}}, {"source": {"type": "s3_listing", "bucket": "acme", "whole_bucket": True}}),
        ({"Filter": {}}, {"limits": {"allow_expire_everything": True}}),
        (
            {"Filter": {"Prefix": ""}},
            {"source": {"type": "s3_listing", "bucket": "acme", "whole_bucket": True}},
        ),
        # The bounds of S3 are exclusive.
        ({"Filter": {"ObjectSizeGreaterThan": 100}}, {"select": {"include": ["**"], "min_size": 101}}),
        ({"Filter": {"ObjectSizeLessThan": 100}}, {"select": {"include": ["**"], "max_size": 99}}),
        (
            {"Filter": {"And": {"Prefix": "a/", "ObjectSizeGreaterThan": 1, "ObjectSizeLessThan": 9}}},
            {"select": {"include": ["**"], "min_size": 2, "max_size": 8}},
        ),
        ({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}, {"abort_incomplete_after": "8d"}),
    ],
)
def test_what_a_rule_is_for_is_what_its_policy_is_for(fields: dict[str, Any], part: dict[str, Any]) -> None:
    (document,) = documents(rule(Expiration={"Days": 30}, **fields))
    assert part.items() <= document.items()


def test_the_form_of_before_2016_has_its_prefix_beside_the_filter() -> None:
    (document,) = documents({"ID": "a", "Prefix": "old/", "Status": "Enabled", "Expiration": {"Days": 1}})
    assert document["source"]["prefix"] == "old/"


def test_noncurrent_versions_have_a_policy_of_their_own() -> None:
    current, noncurrent = documents(
        rule(
            Expiration={"Days": 365},
            NoncurrentVersionExpiration={"NoncurrentDays": 30, "NewerNoncurrentVersions": 3},
            AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7},
        )
    )
    assert (current["name"], current["age"]["retain"], "versions" in current) == ("logs", "366d", False)
    assert (noncurrent["name"], noncurrent["age"]["retain"]) == ("logs_noncurrent", "31d")
    assert (noncurrent["versions"], noncurrent["keep_newest_noncurrent"]) == ("noncurrent", 3)
    # Once is enough: uploads have no versions.
    assert ("abort_incomplete_after" in current, "abort_incomplete_after" in noncurrent) == (True, False)


def test_only_a_policy_for_what_is_current_may_empty_its_bucket() -> None:
    current, noncurrent = documents(
        rule(Filter={}, Expiration={"Days": 9}, NoncurrentVersionExpiration={"NoncurrentDays": 9})
    )
    assert (current["limits"], "limits" in noncurrent) == ({"allow_expire_everything": True}, False)


@pytest.mark.parametrize(
    ("conditions", "tags"),
    [
        ({"Tag": TAG}, {"a": "b"}),
        ({"And": {"Prefix": "logs/", "Tags": [TAG, {"Key": "team", "Value": ""}]}}, {"a": "b", "team": ""}),
    ],
)
def test_a_rule_by_tags_is_a_policy_by_tags_for_what_is_current_alone(
    conditions: dict[str, Any], tags: dict[str, str]
) -> None:
    done = imported(
        rule(
            Filter=conditions,
            Expiration={"Days": 9},
            NoncurrentVersionExpiration={"NoncurrentDays": 9},
            AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7},
        )
    )
    (document,) = (one.document for one in done.policies)
    assert document["select"]["tags"] == tags
    assert [one.field for one in done.not_expressed] == [
        "NoncurrentVersionExpiration",
        "AbortIncompleteMultipartUpload",
    ]
    assert document.keys().isdisjoint({"versions", "abort_incomplete_after"})


def test_names_are_made_legal_and_each_is_given_once() -> None:
    rules = [
        rule(ID=name, Expiration={"Days": 9}) for name in ("Logs / old!", "logs_old", "30 days", "é", "")
    ]
    rules.append(rule(ID="x" * 255, Expiration={"Days": 9}))
    names = [document["name"] for document in documents(*rules)]
    assert names == ["logs_old", "logs_old_2", "rule_30_days", "rule", "rule_5", "x" * 50]


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"Status": "Disabled", "Expiration": {"Days": 1}}, "Status", "is Disabled"),
        (
            {"Filter": {"Tag": TAG}, "NoncurrentVersionExpiration": {"NoncurrentDays": 1}},
            "NoncurrentVersionExpiration",
            "is by tag",
        ),
        (
            {"Filter": {"Tag": TAG}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
            "AbortIncompleteMultipartUpload",
            "nobody tells the tags of an upload",
        ),
        (
            {"Filter": {"And": {"Tags": [TAG, TAG | {"Value": "c"}]}}, "Expiration": {"Days": 1}},
            "Filter",
            "names a tag twice",
        ),
        (
            {"Filter": {"Tag": {"Key": "a", "Value": "*"}}, "Expiration": {"Days": 1}},
            "Filter",
            "which means any value in a policy",
        ),
        ({"Filter": {"Tag": {"Key": "a"}}, "Expiration": {"Days": 1}}, "Filter.Tag.Value", "Field required"),
        ({"Filter": {"Tag": TAG, "And": {"Prefix": "b/"}}}, "Filter", "has a tag beside And"),
        ({"Filter": {"Prefix": "a/", "And": {"Prefix": "b/"}}}, "Filter", "has a prefix beside And"),
        ({"Prefix": "b/", "Expiration": {"Days": 1}}, "Prefix", "stands beside Filter"),
        ({"Expiration": {"Date": "2030-01-01T00:00:00Z"}}, "Expiration.Date", "is one day for all objects"),
        ({"Transitions": [{"Days": 30, "StorageClass": "GLACIER"}]}, "Transitions", "moves objects"),
        ({"Transition": {"Days": 30}}, "Transition", "moves objects"),
        ({"NoncurrentVersionTransitions": [{}]}, "NoncurrentVersionTransitions", "moves objects"),
        (
            {"Expiration": {"ExpiredObjectDeleteMarker": True}},
            "Expiration.ExpiredObjectDeleteMarker",
            "goes with",
        ),
        (
            {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
            "AbortIncompleteMultipartUpload",
            "the rule makes none",
        ),
        ({"Expiration": {"Days": 1}, "ObjectAge": 3}, "ObjectAge", "is not known here"),
        ({"Expiration": {"Days": 1}, "Filter": {"Owner": "me"}}, "Filter.Owner", "is not known here"),
        ({"Expiration": {"Days": 0}}, "Expiration.Days", "greater than or equal to 1"),
        ({"Expiration": {"Days": "30"}}, "Expiration.Days", "valid integer"),
        ({"Expiration": {"Days": True}}, "Expiration.Days", "valid integer"),
        ({"Expiration": {"Days": 10**12}}, "Expiration.Days", "less than or equal"),
        ({"Status": "On"}, "Status", "'Enabled' or 'Disabled'"),
        ({"NoncurrentVersionExpiration": {"NewerNoncurrentVersions": 3}}, "NoncurrentVersionExpiration", ""),
    ],
)
def test_what_has_no_policy_is_named_with_why(fields: dict[str, Any], field: str, why: str) -> None:
    found = left(rule(**fields))
    assert len(found) == 1
    assert found[0][0].startswith(field)
    assert why in found[0][1]


def test_a_part_that_has_no_policy_does_not_keep_the_others_from_theirs() -> None:
    done = imported(rule(Expiration={"Days": 30}, Transitions=[{"Days": 7}]), rule(ID="b", Status="Disabled"))
    assert [one.name for one in done.policies] == ["logs"]
    assert [(one.rule, one.field) for one in done.not_expressed] == [("logs", "Transitions"), ("b", "Status")]


def test_a_policy_under_the_floor_is_refused_as_its_file_would_be() -> None:
    done = import_lifecycle(
        {"Rules": [rule(Expiration={"Days": 3})]}, bucket="acme", min_retention=timedelta(days=7)
    )
    assert done.policies == ()
    assert "retention is under the floor of 7 days" in done.not_expressed[0].why


def test_what_is_not_known_beside_the_rules_is_named() -> None:
    known = {"TransitionDefaultMinimumObjectSize": "all_storage_classes_128K", "ResponseMetadata": {}}
    done = import_lifecycle(
        {"Rules": [rule(Expiration={"Days": 3})], "Pause": True} | known, bucket="acme", min_retention=DAY
    )
    assert [(one.rule, one.field) for one in done.not_expressed] == [("configuration", "Pause")]


@pytest.mark.parametrize("what", [None, [], {}, {"Rules": {}}, "Rules", 3])
def test_what_is_no_configuration_is_refused(what: Any) -> None:
    with pytest.raises(LifecycleError, match="has no list of Rules"):
        import_lifecycle(what, bucket="acme", min_retention=DAY)


# Properties -----------------------------------------------------------------------------------------------
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["ID", "Status", "Filter", "Prefix", "Expiration", "Days", "x"]), inner
        )
    ),
    max_leaves=8,
)


@given(rules=st.lists(anything, max_size=4))
def test_whatever_stands_in_a_rule_is_imported_or_named(rules: list[Any]) -> None:
    done = imported(*rules)
    assert len(done.policies) + len(done.not_expressed) >= sum(not isinstance(one, dict) for one in rules)
    for one in done.policies:
        parse_policy(one.document, where="x", min_retention=DAY)


@given(
    days=st.integers(1, 60),
    prefix=st.sampled_from(["", "a/", "a"]),
    greater=st.none() | st.integers(0, 5),
    less=st.none() | st.integers(7, 12),
    key=st.sampled_from(["a/x", "ab", "b/x"]),
    size=st.integers(0, 12),
    age=st.integers(0, 70 * 24 * 60).map(lambda minutes: timedelta(minutes=minutes)),
    wanted=st.none() | st.sampled_from(["b", "c"]),
)
def test_a_policy_expires_nothing_that_its_rule_keeps(
    days: int,
    prefix: str,
    greater: int | None,
    less: int | None,
    key: str,
    size: int,
    age: timedelta,
    wanted: str | None,
) -> None:
    conditions = {"Prefix": prefix, "ObjectSizeGreaterThan": greater, "ObjectSizeLessThan": less}
    scope: dict[str, Any] = {name: value for name, value in conditions.items() if value is not None}
    scope |= {"Tags": [{"Key": "a", "Value": wanted}]} if wanted is not None else {}
    (document,) = documents(rule(Filter={"And": scope}, Expiration={"Days": days}))
    policy = parse_policy(document, where="x", min_retention=DAY)
    written_at = NOW - age
    found = facts(key, bucket="acme", size=size, at=written_at)
    midnight = (written_at + timedelta(days=days)).replace(hour=0, minute=0, second=0, microsecond=0) + DAY
    by_rule = (
        key.startswith(prefix)
        and (greater is None or size > greater)
        and (less is None or size < less)
        and midnight <= NOW
        and wanted in (None, "b")
    )
    if Decider(policy).verdict(found, now=NOW, tags={"a": "b"}).action is Action.EXPIRE:
        assert by_rule
    # And not by keeping everything: two days later both agree.
    later = Decider(policy).verdict(found, now=NOW + 2 * DAY, tags={"a": "b"}).action is Action.EXPIRE
    assert later or not by_rule
