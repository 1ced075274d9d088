"""The ids of commands. SQL computes the same ones: tests/integration/test_queries.py holds both together."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from s3_retention.core.command import command_id, ids_of, ids_of_each, incarnation, operation_id
from tests.factories import facts

UTC = timezone.utc
LONG = "k" * 1020 + "😀"
# Each key with the bytes that the formula of the seed hashes, written out by hand.
BYTES = {
    "exports/2026-06/customer-1.json": b"weekly-digests\nexports/2026-06/customer-1.json\nv3",
    "exports/caf\u00e9.json": b"weekly-digests\nexports/caf\xc3\xa9.json\nv3",
    "exports/cafe\u0301.json": b"weekly-digests\nexports/cafe\xcc\x81.json\nv3",
    "exports/😀.json": b"weekly-digests\nexports/\xf0\x9f\x98\x80.json\nv3",
    "exports/new\nline.json": b"weekly-digests\nexports/new\nline.json\nv3",
    "exports/a+b%20c.json ": b"weekly-digests\nexports/a+b%20c.json \nv3",
    LONG: b"weekly-digests\n" + b"k" * 1020 + b"\xf0\x9f\x98\x80\nv3",
}


@pytest.mark.parametrize("key", BYTES)
def test_the_operation_id_is_the_formula_of_the_seed_byte_for_byte(key: str) -> None:
    assert operation_id("weekly-digests", key, "v3") == hashlib.sha256(BYTES[key]).hexdigest()


def test_the_longest_key_has_1024_bytes() -> None:
    assert len(LONG.encode()) == 1024


def test_the_operation_id_never_changes_from_release_to_release() -> None:
    assert operation_id("weekly-digests", "exports/2026-06/customer-1842.json", "retain-30d-v2") == (
        "27878e852096e97f4fdd442498a38a71e3115027f6fd6e0950cddbba4b4134a0"
    )


def test_a_key_that_is_no_utf8_has_no_operation_id() -> None:
    with pytest.raises(UnicodeEncodeError):
        operation_id("weekly-digests", "exports/\udcff", "v3")


def test_keys_are_never_normalised() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert operation_id("b", composed, "v") != operation_id("b", decomposed, "v")


def test_an_incarnation_is_the_version_id_where_there_is_one() -> None:
    assert incarnation(facts(version_id="v1", etag='"e"', size=1)) == "version:v1"


def test_an_incarnation_without_a_version_is_etag_time_and_size() -> None:
    at = datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    assert incarnation(facts(etag='"e"', at=at, size=7)) == 'etag:"e"\n1767225600123456\n7'


def test_a_time_before_1970_and_a_missing_etag_have_an_incarnation_too() -> None:
    at = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert incarnation(facts(etag=None, at=at, size=0)) == "etag:\n-1\n0"


def test_the_command_id_hashes_the_operation_and_the_incarnation() -> None:
    one = facts("k", bucket="b", etag='"e"', size=7, at=datetime(2026, 1, 1, tzinfo=UTC))
    operation = hashlib.sha256(b"b\nk\nv").hexdigest().encode()
    assert command_id(one, "v") == hashlib.sha256(operation + b'\netag:"e"\n1767225600000000\n7').digest()


def test_each_part_of_an_incarnation_makes_another_command() -> None:
    one = facts()
    others = [
        replace(one, etag='"f"'),
        replace(one, size=2),
        replace(one, last_modified_at=one.last_modified_at + timedelta(microseconds=1)),
        facts(version_id="v1"),
    ]
    assert len({command_id(each, "v1") for each in (one, *others)}) == 5


def test_the_same_time_in_another_zone_is_the_same_command() -> None:
    there = timezone(timedelta(hours=5, minutes=30))
    one = facts()
    assert command_id(
        replace(one, last_modified_at=one.last_modified_at.astimezone(there)), "v1"
    ) == command_id(one, "v1")


def test_the_two_ids_of_each_are_its_command_id_and_its_operation_id() -> None:
    objects = [facts(key) for key in BYTES] + [facts("k", version_id="v1"), facts("k", etag=None, size=0)]
    both = [
        command_id(one, "v1") + bytes.fromhex(operation_id(one.ref.bucket, one.ref.key, "v1"))
        for one in objects
    ]
    assert ids_of_each(objects, "v1") == both
    assert [ids_of(one, "v1") for one in objects] == both
    assert {len(ids) for ids in both} == {64}
