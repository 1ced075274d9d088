"""Answers that no store should give cost a look or an attempt, and neither the task nor a wrong outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from s3_retention.core.condition import Guard
from s3_retention.core.outcome import FailureClass, Outcome
from s3_retention.errors import ListingError
from sandbox.faults import Fault, Rule, Way

if TYPE_CHECKING:
    from tests.factories import World
    from tests.faults.conftest import Faulty

KEYS = [f"exports/2020-01/{name}.json" for name in "abc"]
LOOKED_AT = Guard(looks_first=True)
WHOLE = {"Last-Modified": "Wed, 01 Jan 2020 00:00:00 GMT", "ETag": '"e"', "Content-Length": "1"}


def answering(operation: str, body: str = "", **headers: str) -> Rule:
    """A 200 with this body, in place of the store's answer."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Rule(Fault(Way.ANSWER, status=200, headers=named, body=body.encode()), operation=operation)


def listing(entry: str) -> str:
    return (
        f"<ListBucketResult><Contents>{entry}</Contents><IsTruncated>false</IsTruncated></ListBucketResult>"
    )


WELL = "<Key>exports/a</Key><LastModified>2020-01-01T00:00:00Z</LastModified><Size>1</Size>"


@pytest.mark.parametrize(
    "entry",
    [
        WELL.replace("2020-01-01T00:00:00Z", "never"),
        WELL.replace("2020-01-01T00:00:00Z", "9" * 30),
        WELL.replace("<Size>1", "<Size>one"),
        WELL.replace("<Size>1</Size>", ""),
        WELL.replace("<Key>exports/a</Key>", ""),
        WELL + "<Key>exports/b</Key>",
        WELL + "<Size>2</Size>",
        WELL + "<LastModified>2020-01-01T00:00:00Z</LastModified>",
        "",
    ],
)
def test_a_listing_with_an_entry_that_cannot_be_read_is_a_fault_of_the_store(
    faulty: Faulty, entry: str
) -> None:
    faulty.server.script(answering("ListObjectsV2", listing(entry)))
    with pytest.raises(ListingError):
        list(faulty.gateway().list_pages("bucket", "exports/"))


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Last_Modified": "never", "ETag": '"e"'}, "ValueError"),
        ({"Last_Modified": "Wed, 01 Jan 2020 00:00:00 GMT"}, "NoETag"),
    ],
)
def test_a_look_that_cannot_be_read_says_nothing(
    world: World, faulty: Faulty, headers: dict[str, str], code: str
) -> None:
    world.put(KEYS[0])
    ((one,),) = world.gateway.list_pages(world.bucket, "exports/")
    faulty.server.script(answering("HeadObject", **headers))
    found = faulty.gateway().look(one.ref)
    assert isinstance(found, Outcome)
    assert (found.kind, found.code) == (FailureClass.UNKNOWN, code)
    (outcome,) = faulty.gateway().delete_chunk([one], guard=LOOKED_AT)
    assert outcome.kind is FailureClass.UNKNOWN


@pytest.mark.parametrize(
    "entries",
    [
        "<Deleted><Key>{0}</Key><Key>{1}</Key></Deleted>",
        "<Error><Key>{0}</Key><Key>{1}</Key><Code>AccessDenied</Code></Error>",
        "<Error><Key>{0}</Key><Code>AccessDenied</Code><Code>SlowDown</Code></Error>",
        "<Deleted><Key>{0}</Key><VersionId>a</VersionId><VersionId>b</VersionId></Deleted>",
        "<Deleted/><Error/>",
    ],
)
def test_an_answer_that_says_two_things_at_once_of_a_key_is_settled_by_a_look(
    world: World, faulty: Faulty, entries: str
) -> None:
    world.put(*KEYS)
    ((*targets,),) = world.gateway.list_pages(world.bucket, "exports/")
    body = f"<DeleteResult>{entries.format(*KEYS)}<Deleted><Key>{KEYS[2]}</Key></Deleted></DeleteResult>"
    faulty.server.script(answering("DeleteObjects", body))
    outcomes = faulty.gateway().delete_chunk(targets)
    assert [outcome.kind.value for outcome in outcomes] == ["unknown", "unknown", "deleted"]


@pytest.mark.parametrize(
    "body",
    [
        "<html><body>Please log in</body></html>",
        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
        "<Other/>",
    ],
)
def test_an_answer_of_something_else_than_the_store_stops_the_batch_and_quarantines_nothing(
    world: World, faulty: Faulty, body: str
) -> None:
    world.put(*KEYS)
    (batch,) = world.planned().batches
    through = world.through(faulty.gateway())
    through.know_store()
    faulty.server.script(answering("DeleteObjects", body))
    result = through.delete(batch)
    assert (result.stopped_class, result.may_pass) == ("unknown", True)
    world.sweep()
    assert world.waiting() == {}
    faulty.server.script()
    assert through.delete(batch, try_number=2).num_by_outcome == {"deleted": 3}


def test_a_request_id_and_a_code_that_the_ledger_could_not_hold_are_cut_and_the_outcomes_settled(
    world: World, faulty: Faulty
) -> None:
    world.put(*KEYS)
    (batch,) = world.planned().batches
    through = world.through(faulty.gateway())
    through.know_store()
    gone = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in KEYS[:2])
    denied = f"<Error><Key>{KEYS[2]}</Key><Code>{'X' * 100_000}</Code></Error>"
    faulty.server.script(
        answering("DeleteObjects", f"<DeleteResult>{gone}{denied}</DeleteResult>", x_amz_request_id="a\0b")
    )
    assert through.delete(batch).num_by_outcome == {"deleted": 2}
    assert world.value("SELECT DISTINCT request_id FROM s3_retention.ledger_entries") == "ab"
    assert world.value("SELECT length(code) FROM s3_retention.failures") == 500
