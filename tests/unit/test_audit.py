"""What a row is said to name, and the one screen of an audit."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from s3_retention.core.audit import Audit, Difference, Kind, KindCount, Named, State, read_named, write_named
from s3_retention.core.policy_rows import RowKey
from s3_retention.core.policy_source import Source
from tests.app_database import orphans_of

AT = datetime(2026, 6, 1, tzinfo=timezone.utc)
KEY, URL = RowKey(column="sfs_key"), RowKey(url="sfs_key")


def source() -> Source:
    return Source.model_validate(orphans_of("acme"))


@pytest.mark.parametrize(
    ("key", "named", "says"),
    [
        (KEY, "sfs/a", Named("sfs/a")),
        (KEY, None, Named(None, Kind.ROW_WITHOUT_KEY)),
        (KEY, "", Named("", Kind.ROW_MALFORMED, "is empty")),
        (KEY, "other/a", Named("other/a", Kind.ROW_ELSEWHERE, "not under the prefix")),
        (URL, "s3://acme/sfs/%20 ", Named("sfs/%20 ")),
        (URL, "s3://other/sfs/a", Named("s3://other/sfs/a", Kind.ROW_ELSEWHERE, "in another bucket")),
        (
            URL,
            "s3://acme/other/a",
            Named("s3://acme/other/a", Kind.ROW_ELSEWHERE, "not under the prefix"),
        ),
        (URL, "sfs/a", Named("sfs/a", Kind.ROW_MALFORMED, "is not s3://bucket/key")),
    ],
)
def test_a_row_is_compared_where_its_object_can_be_under_the_prefix(
    key: RowKey, named: str | None, says: Named
) -> None:
    assert read_named(source(), key, named) == says


@pytest.mark.parametrize("key", [KEY, URL])
def test_what_a_row_would_say_of_an_object_is_read_as_that_object(key: RowKey) -> None:
    for name in ("sfs/a", "sfs/ \n%20", "sfs/s3://"):
        assert read_named(source(), key, write_named(source(), key, name)) == Named(name)


def audit_of(**more: Any) -> Audit:
    counts = {Kind.OVERDUE: KindCount(3, 1, 4, 1), Kind.ROW_ELSEWHERE: KindCount(7)}
    findings = (
        Difference(Kind.OVERDUE, "sfs/\x1b[31m", since=AT),
        Difference(Kind.OVERDUE, "k" * 1024, row_id="7", detail="AccessDenied", state=State.UNKNOWN),
    )
    return Audit("p", "v1", "acme", AT, AT, 12, 34, counts, findings, **more)


def test_the_screen_of_an_audit_is_short_whatever_the_keys_hold() -> None:
    lines = str(audit_of(num_waiting={"in_quarantine": 5})).splitlines()
    assert lines[0] == "audit of policy p: 12 rows and 34 objects were read"
    assert "(1 confirmed, 1 could not be looked at; 4 more were settled meanwhile)" in lines[1]
    assert lines[2].strip() == r"'sfs/\x1b[31m', since 2026-06-01 00:00:00"
    assert lines[3].strip() == f"row 7, '{'k' * 200}', AccessDenied, unknown"
    assert lines[4].strip() == "and 1 more"
    assert lines[-2].strip() == "5 are due and wait: in_quarantine"


def test_rows_that_are_not_compared_are_no_differences() -> None:
    assert audit_of().num_found == 3
