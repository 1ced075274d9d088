from __future__ import annotations

import copy
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped, unused-ignore]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from s3_retention.core.durations import format_duration, parse_duration, spell_duration
from s3_retention.core.policy import Mode, RetentionPolicy, Tenant, Versions, parse_policy, policy_schema
from s3_retention.core.schedule import PRESETS, check_schedule, longest_gap
from s3_retention.errors import PolicyError

WHERE = "include/policies/weekly_digests.yaml"
FLOOR = timedelta(days=1)
GOOD: dict[str, Any] = {
    "name": "weekly_digests",
    "version": "retain-30d-v2",
    "schedule": "0 3 * * 0",
    "source": {"type": "s3_listing", "bucket": "weekly-digests", "prefix": "exports/"},
    "select": {"include": ["exports/*/customer-*.json"]},
    "age": {"from": "last_modified", "retain": "30d"},
}
KEY_DATE = {"from": "key_date", "regex": r"/(?P<date>\d{4}-\d{2})/", "format": "%Y-%m", "retain": "30d"}
WHOLE = {"type": "s3_listing", "bucket": "weekly-digests", "whole_bucket": True}
REMOVE = object()


def document(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """Give the good policy with some fields changed: ``{"age.retain": "1h"}``."""
    data = copy.deepcopy(GOOD)
    for path, value in (changes or {}).items():
        *sections, field = path.split(".")
        place = data
        for section in sections:
            place = place.setdefault(section, {})
        if value is REMOVE:
            del place[field]
        else:
            place[field] = value
    return data


def parse(changes: dict[str, Any] | None = None, floor: timedelta = FLOOR) -> RetentionPolicy:
    return parse_policy(document(changes), where=WHERE, min_retention=floor)


def faults(changes: dict[str, Any], floor: timedelta = FLOOR) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        parse(changes, floor)
    lines = str(caught.value).split("\n")
    assert all(line.startswith(f"{WHERE}: ") for line in lines)
    return [line.removeprefix(f"{WHERE}: ") for line in lines]


def test_a_new_policy_simulates_and_has_the_defaults_of_the_documentation() -> None:
    policy = parse()
    assert policy.mode is Mode.SIMULATE
    assert policy.timezone == "UTC"
    assert policy.start_at is None
    assert policy.keep is None
    assert policy.source.whole_bucket is False
    assert policy.window.width is None
    assert policy.window.safety_delay == timedelta(minutes=2)
    assert policy.window.lease == timedelta(minutes=10)
    assert (policy.batch.size, policy.batch.parallel) == (5000, 8)
    assert policy.limits.max_commands_per_run == 100_000
    assert policy.limits.max_denied_share == 0.5
    assert policy.limits.allow_expire_everything is False
    assert (policy.limits.max_objects, policy.limits.max_bytes, policy.limits.max_share) == (None, None, None)
    assert (policy.limits.approval_timeout, policy.limits.canary) == (timedelta(hours=24), None)
    assert policy.dag_id == "s3_retention_cleanup__weekly_digests"


def test_a_start_is_kept_in_utc() -> None:
    assert parse({"start_at": "2026-01-01T02:00:00+02:00"}).start_at == datetime(
        2026, 1, 1, tzinfo=timezone.utc
    )


def test_a_policy_cannot_be_changed_once_it_is_read() -> None:
    policy = parse()
    with pytest.raises(ValidationError, match="frozen"):
        policy.mode = Mode.ENFORCE  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"moed": "enforce"}, "moed = 'enforce'", "unknown field; did you mean 'mode'?"),
        ({"zzz": 1}, "zzz = 1", "unknown field; remove it"),
        ({"age.retian": "30d"}, "age.retian = '30d'", "did you mean 'retain'?"),
        ({"source.form": 1}, "source.form = 1", "unknown field"),
        ({"age.retain": REMOVE}, "age.retain", "is missing; add it"),
        ({"select": REMOVE}, "select", "is missing; add it"),
        ({"name": "Weekly"}, "name = 'Weekly'", "must be 1 to 63 of a-z"),
        ({"name": "a" * 64}, "name", "must be 1 to 63 of a-z"),
        ({"name": "weekly\n"}, "name = 'weekly\\n'", "must be 1 to 63 of a-z"),
        ({"version": "v 2"}, "version = 'v 2'", "must be 1 to 64"),
        ({"version": 1.1}, "version = 1.1", "must be a text; put it in quotes"),
        ({"version": ""}, "version = ''", "must be 1 to 64"),
        ({"mode": "delete"}, "mode = 'delete'", "must be 'simulate' or 'enforce'"),
        ({"description": "a\0b"}, "description = 'a\\x00b'", "NUL"),
        ({"owner": ""}, "owner = ''", "is empty; fill it in"),
        ({"schedule": "0 3 * *"}, "schedule = '0 3 * *'", "is not a cron expression"),
        ({"schedule": "61 * * * *"}, "schedule", "is not a cron expression"),
        ({"schedule": "0 0 30 2 *"}, "schedule = '0 0 30 2 *'", "ever fires"),
        ({"schedule": "R R * * *"}, "schedule = 'R R * * *'", "is not a cron expression"),
        ({"schedule": "@once"}, "schedule = '@once'", "is not a preset"),
        ({"schedule": 5}, "schedule = 5", "must be a text"),
        ({"timezone": "Mars/Olympus"}, "timezone = 'Mars/Olympus'", "is not an IANA time zone"),
        ({"timezone": "../../etc/passwd"}, "timezone", "is not an IANA time zone"),
        ({"timezone": "Europe"}, "timezone = 'Europe'", "is not an IANA time zone"),
        ({"timezone": ""}, "timezone = ''", "is not an IANA time zone"),
        ({"timezone": "localtime"}, "timezone = 'localtime'", "is not an IANA time zone"),
        ({"start_at": "2026-01-01T00:00:00"}, "start_at", "has no zone; write"),
        ({"start_at": datetime(2026, 1, 1)}, "start_at", "has no zone; write"),  # noqa: DTZ001
        ({"start_at": 1767225600}, "start_at = 1767225600", "must be a time with its zone"),
        ({"start_at": "1767225600"}, "start_at = '1767225600'", "must be a time with its zone"),
        ({"start_at": datetime(2026, 1, 1).date()}, "start_at", "must be a time with its zone"),  # noqa: DTZ001
        ({"start_at": "0001-01-01T00:00:00+14:00"}, "start_at", "is outside the calendar"),
        ({"source": "s3://x"}, "source = 's3://x'", "must be a mapping of fields"),
        ({"source.type": "gcs"}, "source.type = 'gcs'", "must be 's3_listing'"),
        (
            {"source.prefix": ""},
            "source.prefix = ''",
            "is the whole bucket; set a prefix, or whole_bucket: true",
        ),
        ({"source.prefix": REMOVE}, "source.prefix", "set a prefix, or whole_bucket: true"),
        ({"source.whole_bucket": True}, "source.whole_bucket = True", "contradicts source.prefix"),
        ({"source.whole_bucket": "true"}, "source.whole_bucket = 'true'", "must be true or false"),
        ({"source.prefix": "a\0/"}, "source.prefix", "NUL"),
        ({"source.prefix": "\ud800/"}, "source.prefix", "lone surrogate"),
        ({"source.prefix": "é" * 513}, "source.prefix", "is longer than the 1024 bytes"),
        ({"select": {}}, "select", "is an empty selection; add include (globs) or regex"),
        ({"select.include": []}, "select", "is an empty selection"),
        ({"select.storage_class": []}, "select.storage_class", "is empty"),
        ({"select.storage_class": ["ICE AGE"]}, "select.storage_class[0] = 'ICE AGE'", "is not the name of"),
        ({"select": {"regex": ""}}, "select", "is an empty selection"),
        ({"select.include": "exports/*"}, "select.include = 'exports/*'", "must be a list"),
        ({"select.include": [""]}, "select.include[0] = ''", "is an empty glob"),
        ({"select.include": ["exports/[a"]}, "select.include[0] = 'exports/[a'", "without its ']'"),
        ({"select.include": ["**a**b**c**"]}, "select.include[0]", "split it into several globs"),
        ({"select.exclude": ["exports/[z-a]"]}, "select.exclude[0]", "in reverse"),
        ({"select.exclude": ["**"]}, "select.exclude", "excludes every object"),
        ({"select.regex": ".*"}, "select.regex = '.*'", "stands beside include; remove one of the two"),
        ({"select": {"regex": "(a"}}, "select.regex = '(a'", "does not compile: missing )"),
        ({"select": {"regex": "a{99999999999999999999}"}}, "select.regex", "does not compile"),
        ({"select.min_size": 2, "select.max_size": 1}, "select.min_size = 2", "is over max_size"),
        ({"select.min_size": -1}, "select.min_size = -1", "must be greater than or equal to 0"),
        ({"select.max_size": "1"}, "select.max_size = '1'", "must be a"),
        (
            {"select.include": ["export/*"]},
            "select.include[0] = 'export/*'",
            "is an empty selection: no key under",
        ),
        (
            {"select.include": ["exports/*.json", "*"]},
            "select.include[1] = '*'",
            "is an empty selection: no key",
        ),
        ({"select.include": ["exports"]}, "select.include[0] = 'exports'", "is an empty selection: no key"),
        ({"age.from": "birth"}, "age.from = 'birth'", "must be 'last_modified', 'key_date', 'tag' or"),
        (
            {"age.retain": "1h"},
            "age.retain = '1h'",
            "retention is under the floor of 1 day; raise it, or lower",
        ),
        ({"age.retain": 30}, "age.retain = 30", "is a duration without a unit; write"),
        ({"age.retain": 30.5}, "age.retain = 30.5", "is a duration without a unit; write"),
        ({"age.retain": "30"}, "age.retain = '30'", "is a duration without a unit; write"),
        ({"age.retain": "1 month"}, "age.retain = '1 month'", "is not a duration; write"),
        ({"age.retain": "P1M"}, "age.retain = 'P1M'", "is not a duration; write"),
        ({"age.retain": "-30d"}, "age.retain = '-30d'", "must be longer than nothing"),
        ({"age.regex": r"(?P<date>\d+)"}, "age.regex", "is only for from: key_date"),
        ({"age.format": "%Y"}, "age.format = '%Y'", "is only for from: key_date"),
        ({"age": {"from": "key_date", "retain": "30d"}}, "age.regex", "is missing; from: key_date needs it"),
        ({"age": {**KEY_DATE, "regex": "(?P<d>.)"}}, "age.regex = '(?P<d>.)'", "has no group named date"),
        ({"age": {**KEY_DATE, "regex": "(?P<date>"}}, "age.regex", "does not compile"),
        ({"age": {**KEY_DATE, "format": "%m-%d"}}, "age.format = '%m-%d'", "has no year"),
        (
            {"age": {**KEY_DATE, "format": "%y%m%d"}},
            "age.format",
            "has the directive '%y', which is not read",
        ),
        ({"age": {**KEY_DATE, "format": "%Y-%Q"}}, "age.format", "has the directive '%Q', which is not read"),
        ({"age": {**KEY_DATE, "format": "%Y-%"}}, "age.format", "which is not read"),
        ({"age": {**KEY_DATE, "format": "%Y-%d"}}, "age.format = '%Y-%d'", "does not name one date"),
        ({"age": {**KEY_DATE, "format": "%Y-%V"}}, "age.format = '%Y-%V'", "does not name one date"),
        ({"age": {**KEY_DATE, "format": "%G"}}, "age.format = '%G'", "does not name one date"),
        ({"age": {**KEY_DATE, "format": "%Y/%Y-%m"}}, "age.format", "does not name one date"),
        ({"keep": {"latest": 0}}, "keep.latest = 0", "must be greater than or equal to 1"),
        ({"keep": {"latest": True}}, "keep.latest = True", "must be a whole number"),
        ({"keep": {"daily": 0}}, "keep.daily = 0", "must be greater than or equal to 1"),
        ({"keep": {"monthly": -1}}, "keep.monthly = -1", "must be greater than or equal to 1"),
        ({"keep": {"min_bytes": 0}}, "keep.min_bytes = 0", "must be greater than or equal to 1"),
        ({"keep": {"within": "0s"}}, "keep.within = '0s'", "must be longer than nothing"),
        ({"keep": {"within": 7}}, "keep.within = 7", "is a duration without a unit"),
        ({"keep": {"group_by": []}}, "keep", "keeps nothing; write one of latest, daily"),
        ({"keep": {}}, "keep", "keeps nothing"),
        ({"limits.max_commands_per_tenant": 5}, "limits.max_commands_per_tenant = 5", "is for each tenant"),
        ({"limits.max_tenant_share": 0.5}, "limits.max_tenant_share = 0.5", "is for each tenant"),
        ({"batch.parallel_per_tenant": 2}, "batch.parallel_per_tenant = 2", "is for each tenant"),
        (
            {"batch.parallel_per_tenant": 33},
            "batch.parallel_per_tenant = 33",
            "must be less than or equal to 32",
        ),
        ({"keep": {"hourly": 3}}, "keep.hourly", ""),
        ({"keep": {"valid_if": {"min_size": 1}}}, "keep", "keeps nothing; write one of latest, daily"),
        ({"keep": {"latest": 1, "valid_if": {}}}, "keep.valid_if.min_size", "is missing"),
        (
            {"keep": {"latest": 1, "valid_if": {"min_size": 0}}},
            "keep.valid_if.min_size = 0",
            "must be greater than or equal to 1",
        ),
        (
            {"versions": "all", "keep": {"latest": 1, "valid_if": {"min_size": 1}}},
            "keep.valid_if",
            "is not for versions: noncurrent or all, where a key is kept with its whole history",
        ),
        ({"select.tags": {}}, "select.tags", "is empty"),
        ({"select.tags": {"a": []}}, "select.tags.a", "is empty"),
        ({"select.tags": {"a": 1}}, "select.tags.a[0]", "must be a text"),
        ({"select.tags": {"": "x"}}, "select.tags", "is empty"),
        ({"select.tags": ["a"]}, "select.tags", "must be a mapping"),
        ({"select.tags": {str(n): "x" for n in range(51)}}, "select.tags", "is too long"),
        ({"select.exclude_tags": {"a": "x" * 257}}, "select.exclude_tags.a[0]", "is too long"),
        ({"age": {"from": "tag", "retain": "30d", "format": "%Y"}}, "age.tag", "is missing; from: tag"),
        ({"age": {"from": "tag", "retain": "30d", "tag": "t"}}, "age.format", "is missing; from: tag"),
        ({"age": KEY_DATE | {"tag": "t"}}, "age.tag = 't'", "is only for from: tag"),
        (
            {"age": KEY_DATE | {"from": "tag", "tag": "t"}},
            "age.regex",
            "is only for from: key_date",
        ),
        ({"age.format": "%Y"}, "age.format = '%Y'", "is only for from: key_date or tag"),
        (
            {"versions": "all", "select.tags": {"a": "x"}},
            "select.tags",
            "does not go with versions: noncurrent or all",
        ),
        (
            {"versions": "noncurrent", "age": {"from": "tag", "tag": "t", "format": "%Y", "retain": "30d"}},
            "age.tag",
            "does not go with versions: noncurrent or all",
        ),
        (
            {"select.exclude_tags": {"a": "x"}, "abort_incomplete_after": "7d"},
            "abort_incomplete_after = '7d'",
            "nobody tells the tags of an upload",
        ),
        ({"pointers": None}, "pointers = None", "is empty; fill it in or remove it"),
        ({"keep": None}, "keep = None", "is empty; fill it in or remove it"),
        ({"select.tags": None}, "select.tags = None", "is empty; fill it in or remove it"),
        ({"select.exclude_tags": None}, "select.exclude_tags = None", "is empty; fill it in or remove it"),
        ({"select.exclude_tags": {"hold": "yes*"}}, "select.exclude_tags.hold[0]", "is no pattern"),
        ({"select.exclude_tags": {"hold-*": "*"}}, "select.exclude_tags", "is no pattern"),
        ({"pointers": []}, "pointers", "is empty"),
        ({"pointers": [{"key": "a"}] * 101}, "pointers", "is too long"),
        ({"pointers": [{}]}, "pointers[0].key", "is missing"),
        ({"pointers": [{"key": ""}]}, "pointers[0].key = ''", "is empty"),
        ({"pointers": [{"key": "a", "pth": ["x"]}]}, "pointers[0].pth", "did you mean 'path'?"),
        ({"pointers": [{"key": "a", "path": ["x"]}]}, "pointers[0].path", "is only for format: json"),
        ({"pointers": [{"key": "a", "format": "csv"}]}, "pointers[0].format = 'csv'", "'lines' or 'json'"),
        ({"pointers": {"key": "a"}}, "pointers", "must be a list"),
        (
            {"versions": "all", "pointers": [{"key": "a"}]},
            "pointers",
            "does not go with versions: noncurrent or all",
        ),
        (
            {"versions": "noncurrent", "keep": {"latest": 1, "daily": 7}},
            "keep.daily = 7",
            "is not for versions: noncurrent or all",
        ),
        ({"keep": {"latest": 1, "group_by": ["customer"]}}, "keep.group_by", "select has no regex"),
        ({"window.safety_delay": "-1s"}, "window.safety_delay = '-1s'", "is negative"),
        ({"window.lease": "29s"}, "window.lease = '29s'", "is under 30s"),
        ({"window.max_age": "0s"}, "window.max_age = '0s'", "must be longer than nothing"),
        ({"window.width": "0s"}, "window.width = '0s'", "must be longer than nothing"),
        ({"window.width": "7d"}, "window.width = '7d'", "never catches up: the schedule leaves up to 7 days"),
        ({"window.width": "30d", "schedule": "@monthly"}, "window.width", "never catches up"),
        ({"batch.size": 0}, "batch.size = 0", "must be greater than or equal to 1"),
        ({"batch.size": 100_001}, "batch.size = 100001", "must be less than or equal to 100000"),
        ({"batch.parallel": 33}, "batch.parallel = 33", "must be less than or equal to 32"),
        ({"batch.parallel": "8"}, "batch.parallel = '8'", "must be a"),
        ({"limits.max_commands_per_run": 0}, "limits.max_commands_per_run = 0", "greater than or equal to 1"),
        ({"limits.max_objects": -1}, "limits.max_objects = -1", "greater than or equal to 0"),
        ({"limits.max_objects": "10"}, "limits.max_objects = '10'", "must be a"),
        ({"limits.max_bytes": 1.5}, "limits.max_bytes = 1.5", "must be a"),
        ({"limits.max_share": 1.5}, "limits.max_share = 1.5", "must be less than or equal to 1"),
        ({"limits.canary": 0}, "limits.canary = 0", "greater than or equal to 1"),
        ({"limits.canary": 1001}, "limits.canary = 1001", "must be less than or equal to 1000"),
        ({"limits.approval_timeout": 24}, "limits.approval_timeout = 24", "duration without a unit"),
        ({"limits.approval_timeout": "0s"}, "limits.approval_timeout = '0s'", "must be longer than nothing"),
        ({"limits.max_denied_share": 0}, "limits.max_denied_share = 0", "must be greater than 0"),
        ({"limits.max_denied_share": 50}, "limits.max_denied_share = 50", "must be less than or equal to 1"),
        ({"limits.max_denied_share": float("nan")}, "limits.max_denied_share = nan", "must be"),
        ({"limits.max_denied_share": "0.5"}, "limits.max_denied_share = '0.5'", "must be a number, without"),
        (
            {"limits.allow_expire_everything": 1},
            "limits.allow_expire_everything = 1",
            "must be true or false",
        ),
    ],
)
def test_what_is_doubtful_is_refused_with_its_field_its_value_and_the_fix(
    changes: dict[str, Any], field: str, words: str
) -> None:
    lines = faults(changes)
    assert any(line.startswith(field) and words in line for line in lines), lines


@pytest.mark.parametrize(
    "bucket",
    [
        "ab",
        "a" * 64,
        "Upper",
        "under_score",
        "-dash",
        "dash-",
        ".dot",
        "a..b",
        "10.0.0.1",
        "xn--a",
        "x-s3alias",
        "a/b",
    ],
)
def test_a_name_that_s3_would_not_give_to_a_bucket_is_refused(bucket: str) -> None:
    assert faults({"source.bucket": bucket})[0].startswith(f"source.bucket = '{bucket}': is ")


def test_a_group_that_the_regex_lacks_is_refused_by_its_place() -> None:
    changes = {"select": {"regex": "exports/(?P<a>.*)"}, "keep": {"latest": 1, "group_by": ["a", "b"]}}
    assert faults(changes)[0].startswith("keep.group_by[1] = 'b': is not a group of select.regex")


def test_a_group_named_twice_is_refused() -> None:
    changes = {"select": {"regex": "exports/(?P<a>.*)"}, "keep": {"latest": 1, "group_by": ["a", "a"]}}
    assert "names a group twice" in faults(changes)[0]


def test_a_tenant_is_a_group_of_the_regex_that_selects() -> None:
    select = {"regex": "exports/(?P<a>.*)"}
    assert parse({"select": select, "tenant": {"group": "a"}}).tenant == Tenant(group="a")
    (fault,) = faults({"select": select, "tenant": {"group": "b"}})
    assert fault.startswith("tenant.group = 'b': is not a group of select.regex; add one of that name")
    assert faults({"tenant": {"group": "b"}})[0].startswith(
        "tenant.group = 'b': is not a group of select.regex"
    )
    assert faults({"select": select, "tenant": {"group": ""}})[0].startswith("tenant.group = '': is empty")


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"a": 0}, "tenant.weights.a = 0: must be greater than or equal to 1"),
        ({"a": 101}, "tenant.weights.a = 101: must be less than or equal to 100"),
        ({"a": 1.5}, "tenant.weights.a = 1.5: must be a whole number"),
        ({"a": True}, "tenant.weights.a = True: must be a whole number"),
        ({"": 3}, "tenant.weights"),
        ({7: 3}, "tenant.weights"),
        (3, "tenant.weights = 3: "),
        (None, "tenant.weights = None: "),
    ],
)
def test_a_weight_is_a_whole_number_of_a_tenant_by_name(weights: object, said: str) -> None:
    select = {"regex": "exports/(?P<a>.*)"}
    (fault,) = faults({"select": select, "tenant": {"group": "a", "weights": weights}})
    assert fault.startswith(said)


def test_all_faults_are_reported_at_once() -> None:
    changes = {
        "moed": "enforce",
        "source.bucket": "X",
        "timezone": "Mars",
        "age.retain": "1h",
        "window.width": "1d",
        "keep": {"latest": 1, "group_by": ["a"]},
        "tenant": {"group": "a"},
    }
    fields = {line.split(" = ")[0].split(":")[0] for line in faults(changes)}
    assert fields == {
        *("moed", "source.bucket", "timezone", "age.retain", "window.width", "keep.group_by", "tenant.group"),
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("description", "text"),
        ("owner", "team"),
        ("schedule", "@daily"),
        ("timezone", "Europe/Berlin"),
        ("deadline", "2h"),
        ("start_at", "2026-01-01T00:00:00Z"),
        ("mode", "enforce"),
        ("window", {"width": "8d"}),
        ("limits", {"max_command_age": "3d"}),
        ("batch", {"size": 7}),
    ],
)
def test_a_fault_beside_any_good_field_is_told_and_breaks_nothing_else(field: str, value: object) -> None:
    assert [line.partition(" = ")[0] for line in faults({field: value, "moed": "enforce"})] == ["moed"]


def test_versions_are_the_current_ones_unless_the_file_says_otherwise() -> None:
    assert parse().versions is Versions.CURRENT
    assert parse({"versions": "noncurrent", "keep_newest_noncurrent": 3}).keep_newest_noncurrent == 3
    assert parse({"versions": "current"}).rules_hash == parse().rules_hash


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"versions": "old"}, "versions = 'old': "),
        ({"versions": True}, "versions = True: "),
        ({"keep_newest_noncurrent": 3}, "keep_newest_noncurrent = 3: is only for versions: noncurrent"),
        (
            {"keep_newest_noncurrent": 3, "versions": "all"},
            "keep_newest_noncurrent = 3: is only for versions: noncurrent",
        ),
        ({"keep_newest_noncurrent": 0, "versions": "noncurrent"}, "keep_newest_noncurrent = 0: "),
        ({"bypass_governance": True}, "bypass_governance = True: is only for versions that are named"),
        ({"bypass_governance": "yes", "versions": "all"}, "bypass_governance = 'yes': "),
    ],
)
def test_what_is_said_of_versions_must_agree(changes: dict[str, Any], start: str) -> None:
    (fault,) = faults(changes)
    assert fault.startswith(start)


def test_noncurrent_versions_of_a_whole_bucket_leave_its_objects_and_need_no_permission_to_empty_it() -> None:
    whole = {"source": WHOLE, "select.include": ["**"]}
    assert parse(whole | {"versions": "noncurrent"}).source.whole_bucket
    for versions in ("current", "all"):
        (fault,) = faults(whole | {"versions": versions})
        assert "would expire every object of the bucket" in fault


def test_a_deadline_needs_a_schedule_and_a_length() -> None:
    assert parse({"deadline": "2h"}).deadline == timedelta(hours=2)
    (fault,) = faults({"deadline": "2h", "schedule": None})
    assert fault.startswith("deadline = '2h': counts from a tick, and there is no schedule")
    (fault,) = faults({"deadline": "0s"})
    assert fault.startswith("deadline = '0s': must be longer than nothing")
    (fault,) = faults({"limits.max_command_age": "0s"})
    assert fault.startswith("limits.max_command_age = '0s': must be longer than nothing")


def test_the_message_of_a_short_retention_is_the_one_that_the_runbook_quotes() -> None:
    with pytest.raises(PolicyError) as caught:
        parse({"age.retain": "1h"})
    assert str(caught.value) == (
        "include/policies/weekly_digests.yaml: age.retain = '1h': retention is under the floor of 1 day; "
        "raise it, or lower [s3_retention] min_retention"
    )


def test_a_retention_at_the_floor_is_accepted() -> None:
    assert parse({"age.retain": "24h"}).age.retain == FLOOR
    assert parse({"age.retain": "1h"}, floor=timedelta(0)).age.retain == timedelta(hours=1)


@pytest.mark.parametrize(
    "value",
    ["x" * 5000, "x\n" * 5000, 10**70, 1 << 20_000, ["x" * 5000], {"x" * 5000: {"y": [1] * 5000}}],
    ids=["text", "lines", "number", "huge number", "list", "mapping"],
)
def test_a_message_never_echoes_more_than_80_characters_of_a_value(value: Any) -> None:
    for line in faults(
        {"age.retain": value, "select.include": [value], "select.regex": value, "what": value}
    ):
        assert len(line) < 80 + 210
        assert "x" * 81 not in line


def test_a_field_name_with_a_line_break_forges_no_second_fault() -> None:
    assert len(faults({"x\nx.yaml: ok": 1})) == 1


def test_a_field_whose_name_is_no_text_is_refused() -> None:
    with pytest.raises(PolicyError, match="name of a field must be a text"):
        parse_policy({**GOOD, True: 1}, where=WHERE, min_retention=FLOOR)  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "select", [{"include": ["**"]}, {"include": ["x", "**/*"]}, {"regex": ".*"}, {"regex": "(?s).+"}]
)
@pytest.mark.parametrize("more", [{}, {"exclude": ["README"]}, {"min_size": 1}])
def test_a_policy_that_would_empty_its_bucket_is_refused_unless_it_says_so(
    select: dict[str, Any], more: dict[str, Any]
) -> None:
    changes = {"source": WHOLE, "select": {**select, **more}}
    assert "would expire every object of the bucket" in faults(changes)[0]
    parse({**changes, "limits.allow_expire_everything": True})
    parse({**changes, "keep": {"latest": 1}})


@pytest.mark.parametrize("select", [{"include": ["*"]}, {"include": ["**/*.json"]}, {"regex": "tmp/.*"}])
def test_a_whole_bucket_is_accepted_where_select_is_narrow(select: dict[str, Any]) -> None:
    assert parse({"source": WHOLE, "select": select}).source.whole_bucket


def test_a_width_over_the_schedule_period_is_accepted() -> None:
    assert parse({"window.width": "7d1s"}).window.width == timedelta(days=7, seconds=1)
    assert parse({"window.width": "1h", "schedule": None}).window.width == timedelta(hours=1)


@pytest.mark.parametrize(
    ("schedule", "gap"),
    [
        ("0 3 * * 0", timedelta(days=7)),
        ("@hourly", timedelta(hours=1)),
        ("@quarterly", timedelta(days=92)),
        ("0 9 * * 1-5", timedelta(days=3)),
        ("*/5 9-17 * * 1-5", timedelta(days=2, hours=15, minutes=5)),
        ("0 0 29 2 *", timedelta(days=1461)),
        ("* * * 1 *", timedelta(days=335, minutes=1)),
        ("0 1,4 * * *", timedelta(hours=21)),
    ],
)
def test_the_period_of_a_schedule_is_its_longest_gap(schedule: str, gap: timedelta) -> None:
    assert longest_gap(check_schedule(schedule)) == gap


def test_every_preset_is_a_schedule() -> None:
    assert [check_schedule(preset) for preset in PRESETS] == list(PRESETS)


RULES = {
    "source.bucket": "other",
    "select.min_size": 1,
    "age.retain": "31d",
    "keep": {"latest": 1},
    "pointers": [{"key": "exports/latest"}],
    "timezone": "Europe/Berlin",
    "versions": "noncurrent",
    "select.storage_class": ["GLACIER"],
    "select.tags": {"class": "temp"},
    "select.exclude_tags": {"hold": "*"},
    "age": {"from": "tag", "tag": "expires", "format": "%Y-%m-%d", "retain": "30d"},
}
FREE = {
    "version": "v3",
    "mode": "enforce",
    "schedule": None,
    "owner": "you",
    "description": "other",
    "batch.size": 1,
    "limits.max_commands_per_run": 1,
    "window.safety_delay": "5m",
    "start_at": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize("field", RULES)
def test_the_rules_hash_changes_with_every_rule(field: str) -> None:
    assert parse({field: RULES[field]}).rules_hash != parse().rules_hash


@pytest.mark.parametrize("field", FREE)
def test_the_rules_hash_stays_when_anything_else_changes(field: str) -> None:
    assert parse({field: FREE[field]}).rules_hash == parse().rules_hash


def test_limits_are_no_rules_and_may_change_under_the_same_version() -> None:
    limits = {"max_objects": 1, "max_bytes": 1, "max_share": 0.1, "canary": 1, "approval_timeout": None}
    assert parse({"limits": limits}).rules_hash == parse().rules_hash


def test_the_rules_hash_stays_whoever_looks_in_a_simulation() -> None:
    source = parse().source.model_dump(exclude_none=True)
    assert parse({"source": source | {"simulate_aws_conn_id": "onlooker"}}).rules_hash == parse().rules_hash
    assert parse({"source": source | {"aws_conn_id": "another"}}).rules_hash != parse().rules_hash


def test_the_rules_hash_is_of_the_meaning_and_not_of_the_writing() -> None:
    written = {"age.retain": "P4W2D", "select.exclude": [], "source.whole_bucket": False, "tenant": None}
    assert parse(written).rules_hash == parse().rules_hash


def test_the_rules_hash_asks_for_no_order_of_storage_classes() -> None:
    pairs = (["STANDARD", "GLACIER"], ["GLACIER", "STANDARD", "GLACIER"])
    first, second = (parse({"select.storage_class": pair}).rules_hash for pair in pairs)
    assert first == second


def test_the_rules_hash_asks_for_no_order_of_tags_and_values() -> None:
    written = ({"a": ["x", "y"], "b": "z"}, {"b": ["z"], "a": ["y", "x", "y"]})
    first, second = (parse({"select.tags": tags}).rules_hash for tags in written)
    assert first == second


def test_the_rules_hash_changes_with_the_number_of_noncurrent_versions_that_are_kept() -> None:
    kept = [parse({"versions": "noncurrent", "keep_newest_noncurrent": n}).rules_hash for n in (None, 1, 2)]
    assert len(set(kept)) == 3


def test_the_rules_hash_changes_with_a_bypass_of_governance_and_not_with_its_absence() -> None:
    all_of_it = {"versions": "all"}
    assert parse(all_of_it | {"bypass_governance": False}).rules_hash == parse(all_of_it).rules_hash
    assert parse(all_of_it | {"bypass_governance": True}).rules_hash != parse(all_of_it).rules_hash


def test_the_rules_hash_changes_with_the_tenant_and_not_with_its_absence() -> None:
    select = {"select": {"regex": "exports/(?P<a>[^/]*)/(?P<b>.*)"}}
    hashes = [parse(select | {"tenant": {"group": name}}).rules_hash for name in "ab"]
    assert len({*hashes, parse(select).rules_hash}) == 3
    assert parse(select | {"tenant": None}).rules_hash == parse(select).rules_hash


def test_weights_are_no_rule_and_the_hash_of_a_policy_with_tenants_is_the_one_that_ledgers_hold() -> None:
    select = {"select": {"regex": "exports/(?P<a>[^/]*)/(?P<b>.*)"}}
    plain = parse(select | {"tenant": {"group": "a"}}).rules_hash
    assert plain == "5bf60ee9b78c5b3413a824fbdc687761c869e3d5158a6c4c1af93d432d9324b2"
    for number in (1, 3):
        tenant = {"group": "a", "weights": {"acme": number}}
        assert parse(select | {"tenant": tenant}).rules_hash == plain
    assert parse(select | {"tenant": {"group": "a"}, "batch": {"parallel_per_tenant": 1}}).rules_hash == plain


def test_the_rules_hash_of_a_release_is_the_one_that_ledgers_already_hold() -> None:
    assert parse().rules_hash == "1250478ab9ddaccbb4bdf4d76bd24ca00491d45c9746a54b91e97cec5840cbac"


def test_a_policy_written_out_and_read_again_is_the_same_policy() -> None:
    changes = {
        "age": KEY_DATE,
        "select": {"regex": "exports/(?P<c>.*)"},
        "keep": {"latest": 2, "group_by": ["c"]},
        "window.width": "8d",
        "start_at": "2026-01-01T00:00:00Z",
    }
    policy = parse(changes)
    written = json.loads(policy.model_dump_json(by_alias=True, exclude_none=True))
    assert parse_policy(written, where=WHERE, min_retention=FLOOR) == policy


@given(st.integers(min_value=0, max_value=10**9))
def test_a_duration_is_read_back_as_it_was_written(seconds: int) -> None:
    length = timedelta(seconds=seconds)
    assert parse_duration(format_duration(length)) == length
    assert parse_duration(format_duration(-length)) == -length


@given(st.text(alphabet="0123456789wdhmsPTWDHMS-. \n\u0663", max_size=12))
def test_a_text_is_a_duration_or_refused_and_never_something_else(text: str) -> None:
    schema = json.loads(policy_schema())["$defs"]["Age"]["properties"]["retain"]
    try:
        length = parse_duration(text)
    except ValueError:
        return
    assert parse_duration(format_duration(length)) == length
    jsonschema.validate(text, schema)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("30d", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
        ("1d12h", timedelta(hours=36)),
        ("15m", timedelta(minutes=15)),
        ("45s", timedelta(seconds=45)),
        ("P1DT12H", timedelta(hours=36)),
        ("PT15M", timedelta(minutes=15)),
        ("P2W", timedelta(weeks=2)),
    ],
)
def test_durations_are_read_with_their_units(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "d",
        "12h1d",
        "1d 12h",
        "30D",
        "\u0663\u0660d",
        "1.5d",
        "1h\n",
        "9" * 30 + "d",
        "1y",
        True,
        None,
    ],
)
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_a_timedelta_of_whole_seconds_is_a_duration() -> None:
    assert parse_duration(FLOOR) == FLOOR
    with pytest.raises(ValueError, match="must be whole seconds"):
        parse_duration(timedelta(microseconds=1))


def test_durations_are_spelled_for_people() -> None:
    assert spell_duration(timedelta(days=1)) == "1 day"
    assert spell_duration(timedelta(days=30, hours=1)) == "30 days 1 hour"


def test_the_checked_in_json_schema_is_the_one_of_the_models() -> None:
    path = Path(__file__).parents[2] / "include" / "policies" / "policy.schema.json"
    assert path.read_text() == policy_schema(), (
        "run: PYTHONPATH=plugins python -m s3_retention policy-schema > include/policies/policy.schema.json"
    )


def test_the_json_schema_accepts_a_good_file_and_refuses_an_unknown_field() -> None:
    schema = json.loads(policy_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document({"age": KEY_DATE, "keep": {"latest": 1}, "window.width": "8d"}), schema)
    for changes in ({"zzz": 1}, {"age.zzz": 1}, {"age.retain": 30}, {"mode": "delete"}, {"name": "A"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document(changes), schema)
