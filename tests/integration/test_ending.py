"""A delivery that is to end sends nothing more, whatever its threads were about to try again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.condition import Guard
from s3_retention.core.holder import Holder
from s3_retention.errors import BatchStoppedError, ClaimLostError
from s3_retention.s3.deletes import NOT_SENT
from s3_retention.s3.limits import RetryLimits
from s3_retention.s3.recheck import MAX_LOOKS
from s3_retention.steps import delete, probe
from s3_retention.steps.retry import delete_with_retries
from s3_retention.store import batches, chunks
from tests.factories import CLEANUP, KEEP_LATEST, facts, holder
from tests.fakes import asked, deleted, fake_gateway, faulty_gateway, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from s3_retention.core.objects import ObjectFacts
    from tests.factories import World

A, B = (f"exports/2020-01/{name}.json" for name in "ab")
PATIENCE = 30.0


class Scene:
    """Two requests in flight: one waits to try again while what becomes of the other ends the delivery."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any]) -> None:
        self.world = world
        self.seen: list[str] = []
        self.waits: list[float] = []
        self.is_waiting = threading.Event()
        self.has_ended = threading.Event()
        self.answer = answer
        monkeypatch.setattr(delete, "Event", lambda: self.has_ended)

    def delete_objects(self, **arguments: Any) -> Any:
        (key,) = asked(arguments)
        self.seen.append(key)
        if key == A:
            raise refusal("SlowDown", 503)
        assert self.is_waiting.wait(PATIENCE)
        return self.answer()

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.is_waiting.set()
        assert self.has_ended.wait(PATIENCE)

    def run(self, **calls: Any) -> delete.DeleteResult:
        self.world.put(A, B)
        (batch,) = self.world.planned().batches
        self.world.cut_chunks(1)
        self.batch = batch
        self.world.know_store()
        gateway = faulty_gateway(self.world.gateway, delete_objects=self.delete_objects, **calls)
        who = Holder(CLEANUP, "run-1", "delete", batch.map_index, 1)
        limits = RetryLimits(sleep=self.sleep)
        return delete.run(self.world.conn, gateway, self.world.policy, batch.batch_id, who, limits=limits)


def test_a_worker_whose_claim_was_lost_tries_nothing_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_over() -> Any:
        newer = holder("delete", map_index=0, try_number=2)
        batches.claim(world.root, scene.batch.batch_id, holder=newer, lease=world.policy.window.lease)
        return {"Deleted": [{"Key": B}], "ResponseMetadata": {"HTTPHeaders": {}}}

    scene = Scene(world, monkeypatch, taken_over)
    with pytest.raises(ClaimLostError):
        scene.run()
    assert sorted(scene.seen) == [A, B]


def test_a_batch_that_is_stopped_tries_nothing_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> Any:
        raise refusal("InvalidAccessKeyId", 403)

    scene = Scene(world, monkeypatch, refused)
    result = scene.run()
    assert result.stopped_class == "auth"
    assert sorted(scene.seen) == [A, B]
    assert world.sweep().num_batches == 0
    assert world.balance() == (2, 0, 0, 0, 0, 0, 2)


def test_what_was_not_sent_any_more_stays_unfinished(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = world.under(keep=KEEP_LATEST)
    newer = [key.replace("2020-01", "2020-02") for key in (A, B)]
    world.put(*newer)

    def refused() -> Any:
        raise refusal("InvalidAccessKeyId", 403)

    def look(**arguments: Any) -> Any:
        if arguments["Key"] == newer[0]:
            scene.is_waiting.set()
            assert scene.has_ended.wait(PATIENCE)
        return world.gateway.client.head_object(**arguments)

    scene = Scene(world, monkeypatch, refused)
    result = scene.run(head_object=look)
    assert (result.stopped_class, scene.seen) == ("auth", [B])
    assert world.balance() == (2, 0, 0, 0, 0, 0, 2)
    with pytest.raises(BatchStoppedError):
        world.report()
    monkeypatch.undo()
    assert world.clean("run-2").num_by_outcome == {"deleted": 2}
    assert world.keys() == set(newer)


def test_a_wait_ends_with_the_delivery() -> None:
    limits = RetryLimits()
    limits.ending.set()
    limits.pause(3600.0)


def test_what_was_not_sent_before_the_end_has_no_outcome(world: World) -> None:
    world.put(A)
    (batch,) = world.planned().batches
    (chunk_id,) = chunks.list_open(world.conn, batch_id=batch.batch_id)
    commands = chunks.list_unfinished(world.conn, chunk_id=chunk_id, fence=1)
    limits = RetryLimits()
    limits.ending.set()
    assert delete_with_retries(fake_gateway(), commands, Guard(), limits).attempted == []
    assert probe.run(fake_gateway(), commands, limits) == probe.Probe()


# One delivery can take many requests: it ends between two of them -------------------------------------------
class Requests:
    """A store at whose first delete, or the one of that number, the delivery is told to end."""

    def __init__(self, ends_at: int = 1) -> None:
        self.ending = threading.Event()
        self.ends_at = ends_at
        self.deletes: list[list[str]] = []
        self.num_looks = 0

    def _see(self, keys: list[str]) -> None:
        assert not self.ending.is_set(), "a request left after the end"
        self.deletes.append(keys)
        if len(self.deletes) == self.ends_at:
            self.ending.set()

    def delete_object(self, **arguments: Any) -> Any:
        self._see([arguments["Key"]])
        return {"ResponseMetadata": {"HTTPStatusCode": 204}}

    def delete_objects(self, **arguments: Any) -> Any:
        self._see(asked(arguments))
        return deleted(*asked(arguments))

    def refuse_all(self, **arguments: Any) -> Any:
        self._see(asked(arguments))
        raise refusal("MalformedXML")

    def head_object(self, **arguments: Any) -> Any:
        self.num_looks += 1
        one = facts(arguments["Key"])
        return {"ETag": one.etag, "ContentLength": one.size, "LastModified": one.last_modified_at}


def not_sent(outcomes: list[Any]) -> int:
    return sum(outcome is NOT_SENT for outcome in outcomes)


def many(num: int, name: str = "exports/2020-01/{}.json") -> list[ObjectFacts]:
    return [facts(name.format(number)) for number in range(num)]


def test_keys_that_go_one_by_one_end_with_the_request_that_is_out() -> None:
    store = Requests()
    gateway = fake_gateway(delete_object=store.delete_object, head_object=store.head_object)
    outcomes = gateway.delete_chunk([*many(5, "exports/2020-01/\x01{}.json")], ending=store.ending)
    assert (len(store.deletes), not_sent(outcomes)) == (1, 4)
    assert outcomes[0].kind.value == "deleted"


def test_what_goes_together_is_not_sent_after_an_end_among_those_that_go_one_by_one() -> None:
    store = Requests()
    gateway = fake_gateway(delete_object=store.delete_object, head_object=store.head_object)
    targets = [*many(3), *many(1, "exports/2020-01/\x01{}.json")]
    outcomes = gateway.delete_chunk(targets, ending=store.ending)
    assert [outcome is NOT_SENT for outcome in outcomes] == [True, True, True, False]


def test_on_a_store_that_must_be_looked_at_no_further_part_is_looked_at_or_sent() -> None:
    store = Requests()
    gateway = fake_gateway(
        delete_objects=store.delete_objects,
        head_object=store.head_object,
        list_objects_v2=lambda **_: {"IsTruncated": False},
    )
    guard = Guard(sends_etag=False, looks_first=True)
    outcomes = gateway.delete_chunk(many(3 * MAX_LOOKS), guard=guard, ending=store.ending)
    assert ([len(keys) for keys in store.deletes], store.num_looks) == ([MAX_LOOKS], MAX_LOOKS)
    assert not_sent(outcomes) == 2 * MAX_LOOKS


def test_the_search_for_the_key_that_spoils_a_request_ends_too() -> None:
    store = Requests()
    outcomes = fake_gateway(delete_objects=store.refuse_all).delete_chunk(many(64), ending=store.ending)
    assert (len(store.deletes), not_sent(outcomes)) == (1, 64)


def test_what_was_not_sent_is_no_attempt_and_keeps_what_was_known_of_it(world: World) -> None:
    world.put(A, B)
    (batch,) = world.planned().batches
    (chunk_id,) = chunks.list_open(world.conn, batch_id=batch.batch_id)
    commands = chunks.list_unfinished(world.conn, chunk_id=chunk_id, fence=1)
    limits = RetryLimits(sleep=lambda _: None)

    def throttled_then_malformed(**arguments: Any) -> Any:
        if len(store.deletes) == 1:
            store._see(asked(arguments))
            limits.ending.set()
            raise refusal("MalformedXML")
        store._see(asked(arguments))
        raise refusal("SlowDown", 503)

    store = Requests(ends_at=0)
    done = delete_with_retries(
        fake_gateway(delete_objects=throttled_then_malformed), commands, Guard(), limits
    )
    assert [(outcome.kind.value, num) for _, outcome, num in done.attempted] == [("throttled", 1)] * 2
    assert done.num_failed_by_class == {"throttled": 2}
    assert [len(keys) for keys in store.deletes] == [2, 2]
