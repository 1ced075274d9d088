"""Unfinished multipart uploads, on two servers: which are aborted, and what is written down of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from s3_retention.errors import ListingError, ListingRefusedError
from s3_retention.s3.gateway import S3Gateway
from s3_retention.steps import abort_uploads
from s3_retention.steps.abort_uploads import AbortResult
from tests.factories import NO_WAIT, holder
from tests.fakes import fake_gateway, faulty_gateway, refusal
from tests.integration.versioned import IN_40_DAYS

if TYPE_CHECKING:
    from sandbox.moto import MotoServer
    from tests.factories import World

UTC = timezone.utc
KEY = "exports/2020-01/a.json"
ROWS = "SELECT * FROM s3_retention.aborted_uploads ORDER BY key"


@pytest.fixture(params=["weed", "moto"])
def uploading(request: pytest.FixtureRequest, world: World, moto: MotoServer) -> World:
    """What is begun now was begun 40 days ago when a run looks at it; a claimed interval."""
    if request.param == "moto":
        client = moto.client()
        bucket = f"{world.bucket}-uploads"
        client.create_bucket(Bucket=bucket)
        world = replace(world, admin=client, gateway=S3Gateway(client, NO_WAIT), bucket=bucket)
    world.set_clock(IN_40_DAYS)
    aborting = world.through(timeless(world.gateway)).under(abort_incomplete_after="7d")
    aborting.claim()
    return aborting


def timeless(gateway: S3Gateway) -> S3Gateway:
    """A store that tells no time: the clock of the ledger is a test's own."""

    def list_multipart_uploads(**arguments: Any) -> Any:
        answer = gateway.client.list_multipart_uploads(**arguments)
        answer["ResponseMetadata"]["HTTPHeaders"].pop("date")
        return answer

    return faulty_gateway(gateway, list_multipart_uploads=list_multipart_uploads)


def begin(world: World, *keys: str) -> dict[str, str]:
    """Begin an upload of each key; their ids."""
    client = world.admin
    return {key: client.create_multipart_upload(Bucket=world.bucket, Key=key)["UploadId"] for key in keys}


def unfinished(world: World) -> set[str]:
    found = world.admin.list_multipart_uploads(Bucket=world.bucket)
    assert not found["IsTruncated"]
    return {upload["Key"] for upload in found.get("Uploads", [])}


def abort(world: World, run: str = "run-1") -> AbortResult:
    return abort_uploads.run(
        world.conn, world.gateway, world.policy, holder("report", run), world.interval_id()
    )


def test_old_uploads_of_selected_keys_are_aborted_and_written_down(uploading: World) -> None:
    uploads = begin(uploading, KEY, "exports/2020-01/b.json", "exports/other.txt", "elsewhere/2020-01/a.json")
    assert abort(uploading) == AbortResult(num_aborted=2)
    assert unfinished(uploading) == {"exports/other.txt", "elsewhere/2020-01/a.json"}
    first, second = uploading.rows(ROWS)
    assert (first["key"], first["upload_id"]) == (KEY, uploads[KEY])
    assert second["key"] == "exports/2020-01/b.json"
    assert {(row["policy"], row["run_id"], row["outcome"]) for row in (first, second)} == {
        ("weekly_digests", "run-1", "aborted")
    }
    assert first["interval_id"] == uploading.interval_id()
    assert first["initiated_at"] < first["aborted_at"]


@pytest.mark.parametrize("uploading", ["weed"], indirect=True)
def test_an_upload_that_was_begun_lately_is_left(uploading: World) -> None:
    begin(uploading, KEY)
    uploading.set_clock("clock_timestamp() + interval '6 days 23 hours'")
    assert abort(uploading) == AbortResult()
    assert unfinished(uploading) == {KEY}
    assert abort(uploading.under(abort_incomplete_after="6d")) == AbortResult(num_aborted=1)


def test_the_second_time_nothing_is_left_to_abort_and_nothing_is_written_twice(uploading: World) -> None:
    begin(uploading, KEY)
    abort(uploading)
    assert abort(uploading, "run-2") == AbortResult()
    assert len(uploading.rows(ROWS)) == 1


@pytest.mark.parametrize("mode", ["none", "simulate", "rules"])
def test_a_policy_that_may_not_delete_or_has_no_age_for_uploads_aborts_none(
    uploading: World, mode: str
) -> None:
    begin(uploading, KEY)
    other: dict[str, dict[str, Any]] = {
        "none": {"abort_incomplete_after": None},
        "simulate": {"mode": "simulate"},
        "rules": {"timezone": "Europe/Berlin"},
    }
    assert abort(uploading.under(**other[mode])) == AbortResult()
    assert unfinished(uploading) == {KEY}
    assert uploading.rows(ROWS) == []


def test_uploads_over_the_borders_of_pages_are_all_aborted_while_the_listing_goes_on(
    uploading: World,
) -> None:
    begin(uploading, *(f"exports/2020-01/{number}.json" for number in range(7)))
    real = uploading.gateway.client

    def in_pages_of_two(**arguments: Any) -> Any:
        return real.list_multipart_uploads(**arguments, MaxUploads=2)

    small = uploading.through(faulty_gateway(uploading.gateway, list_multipart_uploads=in_pages_of_two))
    assert abort(small) == AbortResult(num_aborted=7)
    assert unfinished(uploading) == set()


def test_a_run_aborts_no_more_than_it_may_delete_and_the_next_goes_on(uploading: World) -> None:
    begin(uploading, *(f"exports/2020-01/{number}.json" for number in range(3)))
    few = uploading.under(limits={"max_commands_per_run": 2, "allow_expire_everything": True})
    assert abort(few).num_aborted == 2
    assert abort(few, "run-2").num_aborted == 1


def test_the_report_counts_what_the_run_has_aborted_outside_of_the_balance(uploading: World) -> None:
    begin(uploading, KEY)
    uploading.plan()
    abort(uploading)
    report = uploading.report()
    assert (report.num_uploads_aborted, report.num_discovered, report.is_balanced) == (1, 0, True)
    assert "uploads aborted            1" in str(report)
    assert report.counts()["num_uploads_aborted"] == 1
    assert uploading.clean("run-2").num_uploads_aborted == 0


def test_an_object_that_is_uploaded_whole_stays_when_an_upload_of_its_key_is_aborted(
    uploading: World,
) -> None:
    uploading.admin.put_object(Bucket=uploading.bucket, Key=KEY, Body=b"whole")
    begin(uploading, KEY)
    abort(uploading)
    assert uploading.admin.get_object(Bucket=uploading.bucket, Key=KEY)["Body"].read() == b"whole"


# What a store may say -------------------------------------------------------------------------------------
def upload(number: int, key: str = KEY) -> dict[str, Any]:
    return {"Key": key, "UploadId": f"u{number}", "Initiated": datetime(2020, 1, 1, tzinfo=UTC)}


def answer(*uploads: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"IsTruncated": False, "Uploads": list(uploads), "ResponseMetadata": {}} | more


@pytest.fixture
def claimed(world: World) -> World:
    aborting = world.under(abort_incomplete_after="7d")
    aborting.claim()
    return aborting


def test_an_upload_that_is_gone_by_then_is_a_success_and_told_so(claimed: World) -> None:
    def gone(**_: Any) -> Any:
        raise refusal("NoSuchUpload", 404)

    store = fake_gateway(list_multipart_uploads=lambda **_: answer(upload(1)), abort_multipart_upload=gone)
    assert abort(claimed.through(store)) == AbortResult(num_already_absent=1)
    assert [row["outcome"] for row in claimed.rows(ROWS)] == ["already_absent"]
    claimed.plan()
    assert claimed.report().num_uploads_aborted == 0


def test_an_upload_that_is_denied_costs_no_other_and_is_told(claimed: World) -> None:
    def one_denied(**arguments: Any) -> Any:
        if arguments["UploadId"] == "u2":
            raise refusal("AccessDenied", 403)
        return {"ResponseMetadata": {}}

    store = fake_gateway(
        list_multipart_uploads=lambda **_: answer(upload(1), upload(2), upload(3)),
        abort_multipart_upload=one_denied,
    )
    result = abort(claimed.through(store))
    assert result == AbortResult(2, 0, 1, f"{KEY!r}: permission (AccessDenied)")
    assert sorted(row["upload_id"] for row in claimed.rows(ROWS)) == ["u1", "u3"]


def test_an_answer_that_was_lost_is_asked_for_again(claimed: World) -> None:
    answers = [refusal("SlowDown", 503), refusal("NoSuchUpload", 404)]

    def lost(**_: Any) -> Any:
        raise answers.pop(0)

    store = fake_gateway(list_multipart_uploads=lambda **_: answer(upload(1)), abort_multipart_upload=lost)
    assert abort(claimed.through(store)).num_already_absent == 1


def test_a_store_that_is_at_fault_is_not_asked_for_the_next_page(claimed: World) -> None:
    def expired(**_: Any) -> Any:
        raise refusal("ExpiredToken", 400)

    pages = answer(upload(1), IsTruncated=True, NextKeyMarker=KEY, NextUploadIdMarker="u1")
    store = fake_gateway(list_multipart_uploads=lambda **_: pages, abort_multipart_upload=expired)
    assert abort(claimed.through(store)).num_failed == 1


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (refusal("AccessDenied", 403), ListingRefusedError),
        (refusal("SlowDown", 503), ListingError),
        ({"ResponseMetadata": {}}, ListingError),
        (answer(upload(2, "other/a.json")), ListingError),
        (answer(upload(2), IsTruncated=True), ListingError),
        (answer(upload(2), IsTruncated=True, NextUploadIdMarker="u1"), ListingError),
    ],
)
def test_a_listing_that_breaks_off_is_told_and_what_was_aborted_by_then_is_written_down(
    claimed: World, second: Any, error: type[Exception]
) -> None:
    def pages(**arguments: Any) -> Any:
        if "UploadIdMarker" not in arguments:
            return answer(upload(1), IsTruncated=True, NextUploadIdMarker="u1")
        if isinstance(second, Exception):
            raise second
        return second

    store = fake_gateway(
        list_multipart_uploads=pages, abort_multipart_upload=lambda **_: {"ResponseMetadata": {}}
    )
    with pytest.raises(error):
        abort(claimed.through(store))
    assert "u1" in {row["upload_id"] for row in claimed.rows(ROWS)}


@pytest.mark.parametrize("missing", ["Key", "UploadId", "Initiated"])
def test_an_upload_of_which_a_part_is_not_told_is_a_fault_of_the_listing(
    claimed: World, missing: str
) -> None:
    some = {name: value for name, value in upload(1).items() if name != missing}
    store = fake_gateway(list_multipart_uploads=lambda **_: answer(some))
    with pytest.raises(ListingError, match=r"named an upload without a key, an id and a time"):
        abort(claimed.through(store))


def test_an_upload_that_is_listed_twice_is_aborted_once(claimed: World) -> None:
    aborted: list[str] = []

    def abort_one(**arguments: Any) -> Any:
        if arguments["UploadId"] in aborted:
            raise refusal("NoSuchUpload", 404)
        aborted.append(arguments["UploadId"])
        return {"ResponseMetadata": {}}

    twice = answer(upload(1), upload(1), upload(2))
    store = fake_gateway(list_multipart_uploads=lambda **_: twice, abort_multipart_upload=abort_one)
    assert abort(claimed.through(store)) == AbortResult(num_aborted=2)
    assert [row["outcome"] for row in claimed.rows(ROWS)] == ["aborted"] * 2


def test_a_ledger_whose_clock_is_ahead_of_the_stores_aborts_nothing_that_is_young(world: World) -> None:
    young = world.under(abort_incomplete_after="7d")
    young.set_clock(IN_40_DAYS)
    young.claim()
    begin(young, KEY)
    assert abort(young) == AbortResult()
    assert unfinished(young) == {KEY}


def test_a_store_whose_clock_is_ahead_of_the_ledgers_aborts_nothing_that_is_young(claimed: World) -> None:
    told = answer(upload(1) | {"Initiated": datetime.now(UTC) - timedelta(days=6)})
    ahead = datetime.now(UTC) + timedelta(days=40)
    told["ResponseMetadata"] = {"HTTPHeaders": {"date": format_datetime(ahead, usegmt=True)}}
    assert abort(claimed.through(fake_gateway(list_multipart_uploads=lambda **_: told))) == AbortResult()


def test_a_key_that_the_store_cannot_write_is_left_alone(claimed: World) -> None:
    store = fake_gateway(list_multipart_uploads=lambda **_: answer(upload(1, "exports/2020-01/a\ufffd.json")))
    assert abort(claimed.through(store)) == AbortResult()


def test_what_was_aborted_can_be_neither_changed_nor_deleted(claimed: World) -> None:
    store = fake_gateway(
        list_multipart_uploads=lambda **_: answer(upload(1)),
        abort_multipart_upload=lambda **_: {"ResponseMetadata": {}},
    )
    abort(claimed.through(store))
    for statement in (
        "UPDATE s3_retention.aborted_uploads SET key = 'x'",
        "TRUNCATE s3_retention.aborted_uploads",
    ):
        with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
            claimed.root.execute(statement)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        claimed.conn.execute("DELETE FROM s3_retention.aborted_uploads")


def test_the_age_of_uploads_is_a_duration_over_the_floor() -> None:
    from s3_retention.errors import PolicyError
    from tests.factories import a_policy

    assert a_policy(abort_incomplete_after="7d").abort_incomplete_after == timedelta(days=7)
    assert a_policy(abort_incomplete_after="7d").rules_hash == a_policy().rules_hash
    for wrong in ("0s", "1h", 7):
        with pytest.raises(PolicyError, match="a test: abort_incomplete_after = "):
            a_policy(abort_incomplete_after=wrong)
    with pytest.raises(PolicyError) as both:
        a_policy(abort_incomplete_after="1h", batch={"size": "x"})
    assert "batch.size" in str(both.value)
