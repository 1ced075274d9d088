"""What a policy says of orphaned rows: refused with field, value and fix when any part of it is doubtful."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from s3_retention.core.orphans import read_ref
from s3_retention.core.policy import RetentionPolicy, parse_policy
from s3_retention.core.policy_rows import RowKey
from s3_retention.errors import PolicyError

ROWS: dict[str, Any] = {
    "postgres_conn_id": "app_db",
    "table": "mail.attachments",
    "key": {"column": "sfs_key"},
    "orphaned": [{"column": "email_id", "is_null": True}],
    "detached_at": "orphaned_at",
}


def parse(rows: dict[str, Any] | None = None, **changes: Any) -> RetentionPolicy:
    """A policy of rows; a None in `rows` removes a field."""
    of_rows = {name: value for name, value in (ROWS | (rows or {})).items() if value is not None}
    data: dict[str, Any] = {
        "name": "sfs",
        "version": "v1",
        "mode": "enforce",
        "source": {"type": "postgres_rows", "bucket": "attachments", "prefix": "sfs/", "rows": of_rows},
        "select": {"include": ["sfs/**"]},
        "age": {"from": "detached_at", "retain": "7d"},
    }
    return parse_policy(data | changes, where="sfs.yaml", min_retention=timedelta(days=1))


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"table": "attachments"}, "table = 'attachments': is not a table; write schema.table"),
        ({"table": 'mail."x"; DROP TABLE y'}, "is not a table"),
        ({"id": "id; DROP"}, "id = 'id; DROP': is not a column"),
        ({"key": {}}, "key: must be one of column, url and template"),
        ({"key": {"column": "a", "url": "b"}}, "key: must be one of column, url and template"),
        ({"key": {"colum": "a"}}, "key.colum = 'a': unknown field; did you mean 'column'?"),
        ({"key": {"template": "sfs/x.bin"}}, "names no column"),
        ({"key": {"template": "sfs/{id}/{.bin"}}, "has a brace that is not closed"),
        ({"key": {"template": "sfs/{id!r}.bin"}}, "is not a column"),
        ({"orphaned": None}, "orphaned: or orphaned_sql says what an orphan is"),
        ({"orphaned": [{"column": "email_id"}]}, "orphaned[0]: must be one of is_null, equals and one_of"),
        (
            {"orphaned": [{"column": "n", "equals": 1.5}]},
            "orphaned[0].equals = 1.5: must be a text, a whole number",
        ),
        ({"orphaned": [{"column": "n", "equals": "\0"}]}, "has a NUL"),
        ({"orphaned_sql": "../secret.sql", "orphaned": None}, "is not the name of a file"),
        ({"orphaned_sql": "o.sql", "orphaned": None}, "orphaned_sql = 'o.sql': is not there"),
        ({"soft_delete": "orphaned_at"}, "soft_delete = 'orphaned_at': is detached_at too"),
        ({"detached_at": None}, "detached_at: is missing, and so is soft_delete; mode: enforce needs one"),
        ({"statement_timeout": "2h"}, "statement_timeout = '2h': must be up to 1h"),
        ({"statement_timeout": "0s"}, "statement_timeout = '0s': must be up to 1h"),
        ({"max_absent_share": 0.0}, "max_absent_share = 0.0"),
        (
            {"references": [{"table": "drafts", "column": "k"}]},
            "references[0].table = 'drafts': is not a table",
        ),
        ({"references": [{"table": "a.b", "column": "k", "to": "row"}]}, "references[0].to = 'row'"),
    ],
)
def test_what_is_doubtful_is_refused_with_its_field_its_value_and_the_fix(
    rows: dict[str, Any], told: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        parse(rows)
    assert "sfs.yaml: source.rows." in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"age": {"from": "last_modified", "retain": "7d"}},
            "age.from = 'last_modified': does not go with postgres_rows",
        ),
        ({"keep": {"latest": 1}}, "keep: does not go with postgres_rows"),
        (
            {"select": {"include": ["sfs/**"], "storage_class": ["STANDARD"]}},
            "select.storage_class: does not go with postgres_rows",
        ),
        (
            {
                "select": {"regex": "sfs/(?P<a>.*)"},
                "age": {"from": "detached_at", "retain": "7d", "whole_groups": ["a"]},
            },
            "age.whole_groups: does not go with postgres_rows",
        ),
        ({"versions": "all"}, "versions = 'all': does not go with postgres_rows"),
        ({"tenant": {"group": "a", "column": "b"}}, "tenant: must be one of group and column"),
        ({"tenant": {"column": "a b"}}, "tenant.column = 'a b': is not a column"),
        (
            {"source": {"type": "postgres_rows", "bucket": "attachments", "prefix": "sfs/"}},
            "source.rows: is missing; type: postgres_rows needs it",
        ),
        (
            {"source": {"type": "s3_listing", "bucket": "attachments", "prefix": "sfs/", "rows": ROWS}},
            "source.rows: is only for type: postgres_rows",
        ),
    ],
)
def test_what_does_not_go_with_rows_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse(**changes)
    assert f"sfs.yaml: {told}" in str(caught.value)


def test_a_tenant_of_a_column_and_an_age_of_a_row_are_for_rows_alone() -> None:
    listing = {"type": "s3_listing", "bucket": "attachments", "prefix": "sfs/"}
    with pytest.raises(PolicyError) as caught:
        parse(source=listing, tenant={"column": "account"})
    assert "tenant.column = 'account': is only for source.type: postgres_rows" in str(caught.value)
    assert "age.from = 'detached_at': is only for source.type: postgres_rows" in str(caught.value)


def test_a_simulation_needs_no_detach_time() -> None:
    assert parse({"detached_at": None}, mode="simulate").source.rows is not None


def test_limits_of_the_database_may_change_under_one_version_and_the_rows_may_not() -> None:
    first = parse().rules_hash
    assert parse({"statement_timeout": "5m", "max_absent_share": 1.0}).rules_hash == first
    assert parse({"soft_delete": "deleting_at"}).rules_hash != first
    assert parse({"orphaned": [{"column": "email_id", "is_null": False}]}).rules_hash != first


@pytest.mark.parametrize(
    ("key", "named", "expected"),
    [
        ({"column": "k"}, "sfs/a b%20c", "sfs/a b%20c"),
        ({"column": "k"}, "/sfs//a", "/sfs//a"),
        ({"column": "k"}, "s3://b/sfs/a", None),
        ({"column": "k"}, "", None),
        ({"column": "k"}, "é" * 513, None),
        ({"url": "u"}, "s3://attachments/sfs/a?b=c#d", "sfs/a?b=c#d"),
        ({"url": "u"}, "s3://attachments/sfs/a\nb", "sfs/a\nb"),
        ({"url": "u"}, "s3://attachments/", None),
        ({"url": "u"}, "S3://attachments/sfs/a", None),
        ({"url": "u"}, "https://attachments.s3.amazonaws.com/sfs/a", None),
        ({"url": "u"}, " s3://attachments/sfs/a", None),
    ],
)
def test_a_key_is_read_byte_for_byte_or_refused(
    key: dict[str, str], named: str, expected: str | None
) -> None:
    ref = read_ref(RowKey.model_validate(key), named, "attachments")
    assert (None if isinstance(ref, str) else ref.key) == expected
