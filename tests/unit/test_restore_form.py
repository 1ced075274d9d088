"""The form of the restore DAG: what it takes, and how it says what it does not."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from s3_retention.core.restore import RestoreForm
from s3_retention.core.restore_form import parse_restore_form
from s3_retention.errors import RestoreRefusedError

FORM = {"dry_run": True, "max_objects": 5, "bucket": "a-bucket"}


def test_a_form_is_read_byte_for_byte_and_is_a_dry_run_unless_it_says_so() -> None:
    form = {
        "max_objects": 5,
        "bucket": "a-bucket",
        "prefix": " a%20b/",
        "deleted_from": "2027-01-31T00:00:00Z",
    }
    at = datetime(2027, 1, 31, tzinfo=timezone.utc)
    assert parse_restore_form(form) == RestoreForm(
        bucket="a-bucket", prefix=" a%20b/", deleted_from=at, max_objects=5, is_dry_run=True
    )


def test_an_interval_is_read_without_the_blanks_around_it() -> None:
    assert parse_restore_form(FORM | {"interval_key": " cleanup:p:a:b\n"}).interval_key == "cleanup:p:a:b"


def test_operation_ids_are_read_as_bytes() -> None:
    assert parse_restore_form(FORM | {"operation_ids": ["ab" * 32]}).operation_ids == (b"\xab" * 32,)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dry_run": "no"}, "dry_run = 'no': it is true or false"),
        ({"max_objects": 0}, "max_objects = 0: write a number from 1 to 100000"),
        ({"max_objects": True}, "max_objects = True: write a number"),
        ({"operation_ids": ["ab"]}, "operation_ids: 'ab' is not one: it has 64 hex digits"),
        ({"operation_ids": "ab"}, "operation_ids = 'ab': write a list"),
        ({"bucket": "A"}, "bucket = 'A': "),
        ({"bucket": None}, "nothing is selected: give operation_ids, interval_key, bucket, or a time"),
        ({"bucket": None, "prefix": "a/"}, "prefix is given without bucket"),
        ({"prefix": "a\0"}, "prefix = 'a\\x00': has a NUL"),
        ({"deleted_from": "2027-01-31"}, "deleted_from = '2027-01-31': write a time with its zone"),
        (
            {"deleted_from": "2027-01-31T00:00:00Z", "deleted_before": "2027-01-31T00:00:00Z"},
            "is not before deleted_before",
        ),
        ({"dry_run": False}, "note is empty: say in a sentence why"),
        ({"note": "  "}, "note = '  ': write it as text"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_field_and_the_fix(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(RestoreRefusedError) as caught:
        parse_restore_form(FORM | changes)
    assert said in str(caught.value)
