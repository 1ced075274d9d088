"""What is sent to the store, and when: it waits neither for the ledger nor for a delivery that has found out enough."""

from __future__ import annotations

import threading
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.errors import LedgerUnavailableError
from s3_retention.store import chunks, ledger_entries
from tests.factories import ODD_KEYS
from tests.fakes import asked, faulty_gateway, refusal

if TYPE_CHECKING:
    from tests.factories import World

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")
KEYS = [f"exports/2020-01/{name}.json" for name in "abcde"]
PATIENCE = 20.0


def planned(world: World, *keys: str, parallel: int) -> tuple[World, Any]:
    """A batch of one chunk for each key."""
    world.put(*keys)
    world = world.under(batch={"parallel": parallel})
    (batch,) = world.planned().batches
    world.cut_chunks(1)
    return world, batch


def test_the_next_request_is_sent_before_the_last_one_is_settled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, batch = planned(world, A, B, C, parallel=1)
    sent = [threading.Event() for _ in range(3)]
    num_sent = num_settled = 0

    def delete_objects(**arguments: Any) -> Any:
        nonlocal num_sent
        sent[num_sent].set()
        num_sent += 1
        return world.gateway.client.delete_objects(**arguments)

    settle = ledger_entries.settle

    def settle_late(*args: Any, **named: Any) -> int:
        nonlocal num_settled
        num_settled += 1
        # Of three, two have one behind them.
        assert num_settled == 3 or sent[num_settled].wait(PATIENCE)
        return settle(*args, **named)

    monkeypatch.setattr(ledger_entries, "settle", settle_late)
    result = world.through(faulty_gateway(world.gateway, delete_objects=delete_objects)).delete(batch)
    assert result.num_by_outcome == {"deleted": 3}
    assert world.outcomes() == dict.fromkeys((A, B, C), "deleted")


def test_a_ledger_that_goes_away_before_the_next_load_leaves_no_answer_unsettled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, batch = planned(world, A, B, C, parallel=1)
    num_loaded = 0
    load = chunks.list_unfinished

    def load_two(*args: Any, **named: Any) -> Any:
        nonlocal num_loaded
        num_loaded += 1
        if num_loaded == 3:
            raise LedgerUnavailableError
        return load(*args, **named)

    monkeypatch.setattr(chunks, "list_unfinished", load_two)
    with pytest.raises(LedgerUnavailableError):
        world.delete(batch)
    assert world.outcomes() == {A: "deleted"}


class _Watched(list[Any]):
    """A list of which can be told whether anyone holds it still."""


def test_what_is_settled_is_not_held_while_the_next_is_loaded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, batch = planned(world, *KEYS, parallel=1)
    loaded: list[weakref.ref[_Watched]] = []
    sent = [threading.Event() for _ in KEYS]
    held: list[int] = []
    load = chunks.list_unfinished

    def load_watched(*args: Any, **named: Any) -> Any:
        if len(loaded) > 1:
            # Its thread has let the one before go by then, which is settled.
            assert sent[len(loaded) - 1].wait(PATIENCE)
            held.append(sum(one() is not None for one in loaded))
        commands = _Watched(load(*args, **named))
        loaded.append(weakref.ref(commands))
        return commands

    def delete_objects(**arguments: Any) -> Any:
        (key,) = asked(arguments)
        sent[KEYS.index(key)].set()
        return world.gateway.client.delete_objects(**arguments)

    monkeypatch.setattr(chunks, "list_unfinished", load_watched)
    result = world.through(faulty_gateway(world.gateway, delete_objects=delete_objects)).delete(batch)
    assert result.num_by_outcome == {"deleted": len(KEYS)}
    # The one that is at the store.
    assert held == [1] * (len(KEYS) - 2)


def test_what_a_probe_found_lets_others_go_before_its_own_delivery_is_back(world: World) -> None:
    world, batch = planned(replace(world, knows_store=False), A, B, parallel=2)
    other_is_there = threading.Event()

    def delete_objects(**arguments: Any) -> Any:
        (key,) = asked(arguments)
        if key == B:
            other_is_there.set()
        elif not is_probe(arguments):
            assert other_is_there.wait(PATIENCE)
        return world.gateway.client.delete_objects(**arguments)

    etag = world.gateway.client.head_object(Bucket=world.bucket, Key=A)["ETag"]

    def is_probe(arguments: Any) -> bool:
        return bool(arguments["Delete"]["Objects"][0].get("ETag") != etag)

    result = world.through(faulty_gateway(world.gateway, delete_objects=delete_objects)).delete(batch)
    assert result.num_by_outcome == {"deleted": 2}
    assert world.value("SELECT count(*) FROM s3_retention.store_probes") == 1


def test_nothing_is_sent_behind_a_request_that_stops_the_batch(world: World) -> None:
    world, batch = planned(world, A, B, C, parallel=1)
    num_sent = 0

    def delete_objects(**_: Any) -> Any:
        nonlocal num_sent
        num_sent += 1
        raise refusal("InvalidAccessKeyId", 403)

    result = world.through(faulty_gateway(world.gateway, delete_objects=delete_objects)).delete(batch)
    assert (result.stopped_class, num_sent) == ("auth", 1)
    assert world.outcomes() == {}


def test_a_store_that_is_not_known_yet_is_found_out_and_then_used_by_all_threads(world: World) -> None:
    world, batch = planned(replace(world, knows_store=False), *ODD_KEYS[:6], parallel=4)
    assert world.delete(batch).num_by_outcome == {"deleted": 6}
    assert world.balance() == (6, 6, 0, 0, 0, 0, 0)


# One tenant among others ----------------------------------------------------------------------------------
BY_TENANT: dict[str, Any] = {
    "select": {"regex": r"exports/2020-01/(?P<customer>[^/]+)/.*"},
    "tenant": {"group": "customer"},
}


def test_a_tenant_whose_requests_hang_leaves_threads_to_the_others(world: World) -> None:
    noisy = [f"exports/2020-01/a/{number}.json" for number in range(6)]
    others = [f"exports/2020-01/{who}/{number}.json" for who in "bc" for number in range(3)]
    world.put(*noisy, *others)
    world = world.under(**BY_TENANT, batch={"parallel": 4, "parallel_per_tenant": 2})
    (batch,) = world.planned().batches
    world.cut_chunks(1)
    lock, are_done = threading.Lock(), threading.Event()
    left, at_once, most = set(others), 0, 0

    def delete_objects(**arguments: Any) -> Any:
        nonlocal at_once, most
        (key,) = asked(arguments)
        if key in others:
            answer = world.gateway.client.delete_objects(**arguments)
            with lock:
                left.remove(key)
                if not left:
                    are_done.set()
            return answer
        with lock:
            at_once += 1
            most = max(most, at_once)
        # The store answers for this tenant only when all others are done.
        assert are_done.wait(PATIENCE)
        with lock:
            at_once -= 1
        return world.gateway.client.delete_objects(**arguments)

    result = world.through(faulty_gateway(world.gateway, delete_objects=delete_objects)).delete(batch)
    assert result.num_by_outcome == {"deleted": 12}
    assert most == 2
    assert world.keys() == set()


def test_a_limit_of_each_tenant_holds_where_one_is_alone(world: World) -> None:
    keys = [f"exports/2020-01/a/{number}.json" for number in range(9)]
    world.put(*keys)
    world = world.under(**BY_TENANT, batch={"parallel": 8, "parallel_per_tenant": 1})
    (batch,) = world.planned().batches
    world.cut_chunks(2)
    lock, at_once, most = threading.Lock(), 0, 0

    def delete_objects(**arguments: Any) -> Any:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        answer = world.gateway.client.delete_objects(**arguments)
        with lock:
            at_once -= 1
        return answer

    result = world.through(faulty_gateway(world.gateway, delete_objects=delete_objects)).delete(batch)
    assert (result.num_by_outcome, most) == ({"deleted": 9}, 1)
    world.sweep()
    assert world.report().is_balanced


def test_a_redrive_under_a_limit_of_each_tenant_ends(world: World) -> None:
    keys = [f"exports/2020-01/{who}/{number}.json" for who in "ab" for number in range(3)]
    world.put(*keys)
    world = world.under(**BY_TENANT, batch={"parallel": 4, "parallel_per_tenant": 1})
    world.s3.deny(world.bucket, keys)
    world.clean()
    world.s3.allow(world.bucket, keys)
    assert world.redrive().num_by_outcome == {"deleted": 6}
