from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.decider import Decider
from s3_retention.core.keep import kept_by
from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.core.policy import parse_policy
from s3_retention.core.policy_keep import Keep
from s3_retention.core.verdict import Action, Candidate, Verdict, is_recordable

UTC = timezone.utc
NOW = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)
REGEX = {"regex": r"(?s)exports/(?P<month>[^/]*)/(?P<customer>[^/]*)(?:/(?P<part>.*))?"}
KEY_DATE = {"from": "key_date", "regex": r"/(?P<date>[^/]+)/", "format": "%Y-%m", "retain": "30d"}


def decider(**changes: Any) -> Decider:
    data: dict[str, Any] = {
        "name": "p",
        "version": "v1",
        "source": {"type": "s3_listing", "bucket": "weekly-digests", "prefix": "exports/"},
        "select": {"include": ["exports/**"]},
        "age": {"from": "last_modified", "retain": "30d"},
        **changes,
    }
    return Decider(parse_policy(data, where="p.yaml", min_retention=timedelta(0)))


def facts(
    key: str = "exports/2026-06/customer-1842.json",
    *,
    at: datetime = NOW - 90 * DAY,
    size: int = 100,
    bucket: str = "weekly-digests",
) -> ObjectFacts:
    return ObjectFacts(ObjectRef(bucket, key), '"etag"', size, at)


def reason(found: Candidate | Verdict) -> str:
    assert isinstance(found, Verdict)
    assert found.action is Action.KEEP
    return found.reasons[0]


def test_a_selected_object_is_a_candidate_with_its_due_time_whether_due_or_not() -> None:
    young = facts(at=NOW)
    assert decider().candidate(young) == Candidate(young, NOW, NOW + 30 * DAY, None)


def test_an_object_expires_only_after_its_due_time() -> None:
    one = facts(at=NOW - 30 * DAY)
    moment = timedelta(microseconds=1)
    assert decider().verdict(one, now=NOW) == Verdict(Action.KEEP, ("not_due",))
    assert decider().verdict(one, now=NOW + moment) == Verdict(Action.EXPIRE, ("due",))


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (facts("exports-archive/a"), "not_selected"),
        (facts("a/exports/b"), "not_selected"),
        (facts(bucket="another-bucket"), "not_selected"),
        (facts("exports/x.keep"), "not_selected"),
        (facts(size=9), "too_small"),
        (facts(size=1001), "too_large"),
        (facts("exports/a\0b"), "key_not_recordable"),
        (facts("exports/\udcff"), "key_not_recordable"),
    ],
)
def test_what_is_not_selected_is_kept_with_its_reason(one: ObjectFacts, why: str) -> None:
    select = {"include": ["exports/**"], "exclude": ["**/*.keep"], "min_size": 10, "max_size": 1000}
    chosen = decider(select=select)
    assert reason(chosen.candidate(one)) == why
    assert reason(chosen.verdict(one, now=NOW)) == why


@pytest.mark.parametrize(
    ("classes", "taken"),
    [
        (["STANDARD"], {None, "STANDARD"}),
        (["GLACIER", "GLACIER_IR"], {"GLACIER", "GLACIER_IR"}),
        (["STANDARD_IA", "STANDARD"], {None, "STANDARD", "STANDARD_IA"}),
        (["standard"], set()),
    ],
)
def test_only_the_storage_classes_that_are_named_are_taken(
    classes: list[str], taken: set[str | None]
) -> None:
    chosen = decider(select={"include": ["exports/**"], "storage_class": classes})
    for told in (None, "STANDARD", "STANDARD_IA", "GLACIER", "GLACIER_IR"):
        found = chosen.candidate(replace(facts(), storage_class=told))
        if told in taken:
            assert isinstance(found, Candidate)
        else:
            assert reason(found) == "other_storage_class"


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("exports/a", "no_date_in_key"),
        ("exports/2026-13/a", "date_not_parsable"),
        ("exports/current/a", "date_not_parsable"),
        ("exports/9999-12/a", "date_in_future"),
    ],
)
def test_an_object_without_a_date_in_its_key_is_kept_with_the_reason(key: str, why: str) -> None:
    assert reason(decider(age=KEY_DATE).candidate(facts(key))) == why


def test_the_key_of_the_first_seed_is_due_thirty_days_after_the_end_of_its_month() -> None:
    found = decider(age=KEY_DATE).candidate(facts(at=NOW))
    assert isinstance(found, Candidate)
    assert found.reference_at == datetime(2026, 7, 1, tzinfo=UTC)
    assert found.due_at == datetime(2026, 7, 31, tzinfo=UTC)


def test_an_object_of_the_running_period_is_not_due_and_one_of_a_coming_period_is_in_the_future() -> None:
    dated = decider(age=KEY_DATE)
    now = datetime(2026, 11, 15, tzinfo=UTC)
    assert reason(dated.verdict(facts("exports/2026-11/a", at=NOW), now=now)) == "not_due"
    assert reason(dated.verdict(facts("exports/2026-12/a", at=NOW), now=now)) == "date_in_future"


def test_an_object_modified_after_now_is_kept_whatever_its_key_says() -> None:
    late = facts(at=NOW + timedelta(seconds=1))
    assert reason(decider().verdict(late, now=NOW)) == "date_in_future"
    assert reason(decider(age=KEY_DATE).verdict(late, now=NOW)) == "date_in_future"


def test_an_object_that_is_due_after_the_calendar_ends_is_kept() -> None:
    assert reason(decider().candidate(facts(at=datetime(9999, 12, 31, tzinfo=UTC)))) == "date_in_future"


@pytest.mark.parametrize(
    ("group_by", "key", "group_key"),
    [
        ([], "exports/2026-06/a", "[]"),
        (["customer"], "exports/2026-06/a b", '["a b"]'),
        (["customer", "month"], 'exports/2026-06/é"\n', '["é\\"\\n","2026-06"]'),
        (["customer"], "exports/2026-06/", '[""]'),
    ],
)
def test_a_group_key_is_compact_json_of_the_groups_in_their_order(
    group_by: list[str], key: str, group_key: str
) -> None:
    found = decider(select=REGEX, keep={"latest": 1, "group_by": group_by}).candidate(facts(key))
    assert isinstance(found, Candidate)
    assert found.group_key == group_key


def test_an_object_whose_group_did_not_take_part_is_kept() -> None:
    grouped = decider(select=REGEX, keep={"latest": 1, "group_by": ["customer", "part"]})
    assert reason(grouped.candidate(facts("exports/2026-06/a"))) == "group_not_readable"
    assert isinstance(grouped.candidate(facts("exports/2026-06/a/")), Candidate)


@pytest.mark.parametrize(
    ("key", "tenant"), [("a/b/c", "b"), ("a/é\n/c", "é\n"), ("a//c", None), ("a/b", "b")]
)
def test_the_tenant_is_read_from_the_key_and_without_one_an_object_is_kept(
    key: str, tenant: str | None
) -> None:
    found = decider(select=REGEX, tenant={"group": "customer"}).candidate(facts(f"exports/{key}"))
    if tenant is None:
        assert reason(found) == "tenant_not_readable"
    else:
        assert isinstance(found, Candidate)
        assert (found.tenant, found.group_key) == (tenant, None)


def test_an_object_whose_tenant_did_not_take_part_is_kept() -> None:
    shared = decider(select=REGEX, tenant={"group": "part"})
    assert reason(shared.candidate(facts("exports/2026-06/a"))) == "tenant_not_readable"


@given(st.lists(st.text(max_size=5), min_size=2, max_size=2))
def test_different_groups_never_share_a_group_key(names: list[str]) -> None:
    grouped = decider(
        select={"regex": r"(?s)exports/(?P<a>.{0,5})=(?P<b>.{0,5})"},
        keep={"latest": 1, "group_by": ["a", "b"]},
    )
    found = grouped.candidate(facts(f"exports/{names[0]}={names[1]}"))
    if isinstance(found, Candidate):
        assert found.group_key is not None
        first, second = json.loads(found.group_key)
        assert f"{first}={second}" == f"{names[0]}={names[1]}"


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=20))
def test_a_key_is_recordable_when_postgres_can_hold_it(key: str) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        assert not is_recordable(key)
    else:
        assert is_recordable(key) == ("\0" not in key)


@given(
    st.text(max_size=30), st.integers(min_value=-100, max_value=100), st.integers(min_value=0, max_value=3000)
)
def test_what_expires_is_selected_old_enough_and_of_the_bucket(key: str, days: int, size: int) -> None:
    one = facts(key, at=NOW + days * DAY, size=size)
    verdict = decider(select={"include": ["exports/**"], "max_size": 1000}).verdict(one, now=NOW)
    expires = key.startswith("exports/") and "\0" not in key and size <= 1000 and days < -30
    assert (verdict.action is Action.EXPIRE) == expires


def test_a_verdict_is_a_value_and_prints_itself() -> None:
    verdict = decider().verdict(facts(), now=NOW)
    assert verdict.action == "expire"
    assert "due" in repr(verdict)
    with pytest.raises(FrozenInstanceError):
        verdict.reasons = ()  # type: ignore[misc]


def candidate(key: str, *, reference: int, modified: int = 0, group: str | None = "[]") -> Candidate:
    at = NOW - reference * DAY
    return Candidate(facts(key, at=NOW - modified * DAY), at, at + DAY, group)


def keep_latest(candidates: list[Candidate], n: int) -> set[Candidate]:
    return set(kept_by(candidates, Keep(latest=n), timezone="UTC", are_periods=False))


def kept(candidates: list[Candidate], n: int) -> set[str]:
    return {found.facts.ref.key for found in keep_latest(candidates, n)}


def test_the_newest_of_each_group_is_kept() -> None:
    candidates = [
        candidate("a1", reference=3, group='["a"]'),
        candidate("a2", reference=2, group='["a"]'),
        candidate("b1", reference=9, group='["b"]'),
    ]
    assert kept(candidates, 1) == {"a2", "b1"}
    assert kept(candidates, 2) == {"a1", "a2", "b1"}


def test_the_newest_is_told_by_reference_then_by_modification_then_by_the_bytes_of_the_key() -> None:
    assert kept([candidate("a", reference=1, modified=9), candidate("b", reference=2, modified=0)], 1) == {
        "a"
    }
    assert kept([candidate("a", reference=1, modified=1), candidate("b", reference=1, modified=2)], 1) == {
        "a"
    }
    # U+FF5E comes before U+1F600 in UTF-8 and in code points; UTF-16 has it the other way round.
    assert kept([candidate("\uff5e", reference=1), candidate("😀", reference=1)], 1) == {"😀"}


def test_a_candidate_without_a_reference_time_counts_as_the_newest() -> None:
    unknown = Candidate(facts("x"), None, None, "[]")
    assert kept([candidate("a", reference=0), unknown], 1) == {"x"}


@given(
    st.lists(st.builds(candidate, st.text(max_size=3), reference=st.integers(0, 3), modified=st.integers(0, 2),
                       group=st.sampled_from(["[]", '["a"]'])), unique=True, max_size=12),
    st.integers(min_value=1, max_value=4),
)  # fmt: skip
def test_every_group_keeps_n_or_all_that_it_has_and_nothing_kept_is_older_than_what_goes(
    candidates: list[Candidate], n: int
) -> None:
    spared = keep_latest(candidates, n)
    assert spared == keep_latest(candidates[::-1], n)
    for group in {found.group_key for found in candidates}:
        members = [found for found in candidates if found.group_key == group]
        gone = [found.reference_at for found in members if found not in spared]
        stay = [found.reference_at for found in members if found in spared]
        assert len(stay) == min(n, len(members))
        assert all(old <= new for old in gone for new in stay if old is not None and new is not None)
