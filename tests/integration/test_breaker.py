"""What stops a batch: a share of denials that no single object is to blame for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from s3_retention.core.outcome import FailureClass, Final, Outcome
from s3_retention.errors import BatchStoppedError
from s3_retention.steps.breaker import MIN_DENIED, Delivered
from tests.fakes import faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from tests.factories import World

DENIED = Outcome(FailureClass.PERMISSION, code="AccessDenied")
DELETED = Outcome(Final.DELETED)


def keys(num: int) -> list[str]:
    return [f"exports/2020-01/{number:04d}.json" for number in range(num)]


def test_a_batch_of_which_most_is_denied_is_stopped_and_resumed_when_the_rights_are_back(
    world: World,
) -> None:
    all_keys = keys(240)
    denied = all_keys[:130]
    world.put(*all_keys)
    world.s3.deny(world.bucket, denied)
    (batch,) = world.planned().batches
    result = world.delete(batch)
    assert (result.stopped_class, result.may_pass) == ("permission", False)
    assert result.stopped_message == (
        "130 of 240 objects were denied, which is more than limits.max_denied_share = 0.5: "
        "the rights of the identity are to be looked at"
    )
    assert world.sweep().num_batches == 0
    assert world.waiting() == {}
    with pytest.raises(BatchStoppedError, match="130 of 240 objects were denied"):
        world.report()
    assert world.balance() == (240, 110, 0, 0, 0, 0, 130)
    world.s3.allow(world.bucket, denied)
    assert world.clean("run-2").num_by_outcome == {"deleted": 240}
    assert world.keys() == set()


def test_nothing_more_is_sent_once_the_share_is_exceeded(world: World) -> None:
    all_keys = keys(400)
    world.put(*all_keys)
    world.s3.deny(world.bucket, all_keys[:100])
    narrow = world.under(batch={"parallel": 1})
    (batch,) = narrow.planned().batches
    narrow.cut_chunks(100)
    assert narrow.delete(batch).stopped_class == "permission"
    assert world.keys() == set(all_keys)


def test_denials_under_the_share_are_quarantined_one_by_one(world: World) -> None:
    all_keys = keys(240)
    world.put(*all_keys)
    world.s3.deny(world.bucket, all_keys[:120])
    assert world.clean().num_by_outcome == {"deleted": 120, "quarantined": 120}


def test_a_policy_may_say_that_any_share_of_denials_is_right(world: World) -> None:
    all_keys = keys(110)
    world.put(*all_keys)
    world.s3.deny(world.bucket, all_keys)
    anyway = world.under(limits={"max_denied_share": None, "allow_expire_everything": True})
    assert anyway.clean().num_by_outcome == {"quarantined": 110}


@pytest.mark.parametrize("code", ["InvalidArgument", "MalformedXML"])
def test_a_store_that_takes_no_such_request_at_all_stops_the_batch_and_quarantines_nothing(
    world: World, code: str
) -> None:
    all_keys = keys(120)
    world.put(*all_keys)
    (batch,) = world.planned().batches
    refuses = faulty_gateway(world.gateway, delete_objects=one_after_another(refusal(code)))
    result = world.through(refuses).delete(batch)
    assert (result.stopped_class, result.may_pass) == ("malformed", False)
    assert result.stopped_message == f"{code} the store says so"
    world.sweep()
    assert world.waiting() == {}
    with pytest.raises(BatchStoppedError, match=code):
        world.report()
    assert world.clean("run-2").num_by_outcome == {"deleted": 120}


@pytest.mark.parametrize(
    ("num_denied", "num_deleted", "is_stopped"),
    [
        (MIN_DENIED - 1, 0, False),
        (MIN_DENIED, 0, True),
        (MIN_DENIED, MIN_DENIED, False),
        (MIN_DENIED + 1, MIN_DENIED, True),
    ],
)
def test_a_share_counts_from_100_denials_on_and_must_be_exceeded(
    num_denied: int, num_deleted: int, is_stopped: bool
) -> None:
    delivered = Delivered(0.5)
    delivered.count([DELETED] * num_deleted + [DENIED] * num_denied)
    assert delivered.is_ending is is_stopped


def test_the_share_is_that_of_the_whole_delivery_and_not_of_one_answer() -> None:
    delivered = Delivered(0.5)
    delivered.count([DELETED] * 1000)
    delivered.count([DENIED] * 1000)
    assert not delivered.is_ending
    delivered.count([DENIED])
    assert delivered.is_ending


def test_the_first_thing_that_stops_a_batch_is_the_one_that_is_told() -> None:
    delivered = Delivered(0.5)
    delivered.count([Outcome(FailureClass.CONFIG, code="NoSuchBucket", whole_request=True)])
    delivered.count([DENIED] * 200)
    assert delivered.stop is not None
    assert (delivered.stop.by, delivered.stop.why) == ("config", "NoSuchBucket")


@pytest.mark.parametrize(
    ("code", "kind", "may_pass"),
    [
        ("ExpiredToken", FailureClass.AUTH, True),
        ("InvalidAccessKeyId", FailureClass.AUTH, False),
        ("SlowDown", FailureClass.THROTTLED, True),
        ("AccessDenied", FailureClass.PERMISSION, False),
    ],
)
def test_a_new_try_of_the_task_is_worth_it_where_credentials_are_fetched_anew(
    code: str, kind: FailureClass, may_pass: bool
) -> None:
    delivered = Delivered(0.5)
    delivered.count([Outcome(kind, code=code, whole_request=True)])
    assert delivered.stop is not None
    assert delivered.stop.may_pass is may_pass
