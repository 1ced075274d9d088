"""A listing of versions that leaves out a whole key, as SeaweedFS's does at the border of a page, proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.errors import BatchStoppedError
from tests.fakes import faulty_gateway, refusal
from tests.integration.versioned import deliver, ledger, put, remove, there, versioned_world, versions_waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.factories import World

# A key that is a folder, too, with more beneath it than a page holds.
KEY = "exports/2020-01/a"
BENEATH = [f"{KEY}/{name}.json" for name in "bcd"]
SELECT = {"select": {"include": ["exports/2020-01/a"]}}


@pytest.fixture
def versioned(world: World) -> World:
    return versioned_world(world, None).under(**SELECT)


def with_small_pages(world: World, **calls: Callable[..., Any]) -> World:
    real = world.gateway.client

    def list_object_versions(**arguments: Any) -> Any:
        return real.list_object_versions(**arguments, MaxKeys=2)

    return world.through(faulty_gateway(world.gateway, list_object_versions=list_object_versions, **calls))


def test_a_version_that_no_page_shows_at_its_delete_is_not_said_to_be_gone(versioned: World) -> None:
    first, second, third = put(versioned, KEY, "1", "2", "3")
    for key in BENEATH:
        put(versioned, key, "1")
    versioned.planned()
    deliver(with_small_pages(versioned))
    assert ledger(versioned) == dict.fromkeys((first, second), "kept:latest_not_listed")
    assert {(KEY, one) for one in (first, second, third)} <= there(versioned)
    versioned.clean("run-2")
    assert {one for one in there(versioned) if one[0] == KEY} == {(KEY, third)}


def test_a_version_that_is_gone_and_that_no_page_shows_is_told_so(versioned: World) -> None:
    first, second, _ = put(versioned, KEY, "1", "2", "3")
    for key in BENEATH:
        put(versioned, key, "1")
    versioned.planned()
    remove(versioned, KEY, first)
    deliver(with_small_pages(versioned))
    assert ledger(versioned) == {first: "already_absent", second: "kept:latest_not_listed"}


def test_a_key_that_is_gone_with_its_whole_history_is_told_so(versioned: World) -> None:
    ids = put(versioned, KEY, "1", "2")
    every = versioned.under(versions="all", **SELECT)
    every.planned()
    for one in ids:
        remove(versioned, KEY, one)
    deliver(every)
    assert ledger(versioned) == dict.fromkeys(ids, "already_absent")


def test_where_a_version_that_no_page_shows_may_not_be_looked_at_it_waits_with_its_cause(
    versioned: World,
) -> None:
    first, _ = put(versioned, KEY, "1", "2")
    for key in BENEATH:
        put(versioned, key, "1")
    versioned.planned()

    def refuse(**_: Any) -> Any:
        raise refusal("403", 403)

    deliver(with_small_pages(versioned, head_object=refuse))
    assert ledger(versioned) == {}
    assert versions_waiting(versioned) == {first: "permission"}


# A key that the store never shows -------------------------------------------------------------------------
def hiding(
    world: World, *hidden: str, code: str = "InternalError", status: int = 500
) -> tuple[World, list[str]]:
    """A store that fails whenever it is asked for one of these keys; and what it is asked for."""
    real = world.gateway.client
    asked: list[str] = []

    def list_object_versions(**arguments: Any) -> Any:
        asked.append(arguments["Prefix"])
        if arguments["Prefix"] in hidden:
            raise refusal(code, status)
        return real.list_object_versions(**arguments)

    return world.through(faulty_gateway(world.gateway, list_object_versions=list_object_versions)), asked


KEYS = [f"exports/2020-01/{number}.json" for number in range(8)]


@pytest.fixture
def eight(world: World) -> World:
    """8 keys of two versions each, planned."""
    eight = versioned_world(world, None)
    for key in KEYS:
        put(eight, key, "1", "2")
    eight.planned()
    return eight


def test_one_key_whose_history_the_store_never_shows_costs_itself_alone(eight: World) -> None:
    deliver(hiding(eight, KEYS[2])[0])
    assert len(ledger(eight)) == 7
    assert set(versions_waiting(eight).values()) == {"transient"}
    assert {one[0] for one in there(eight)} == set(KEYS)


@pytest.mark.parametrize(
    ("code", "num_asked"), [("InternalError", 3), ("SlowDown", 1), ("InvalidAccessKeyId", 1)]
)
def test_a_store_that_shows_no_history_is_not_asked_for_each_key_and_stops_the_batch(
    eight: World, code: str, num_asked: int
) -> None:
    status = {"InternalError": 500, "SlowDown": 503}.get(code, 403)
    hidden, asked = hiding(eight, *KEYS, code=code, status=status)
    with pytest.raises(BatchStoppedError):
        deliver(hidden)
    assert len(set(asked)) == num_asked
    assert (ledger(eight), versions_waiting(eight)) == ({}, {})
    eight.clean("run-2")
    assert set(ledger(eight).values()) == {"deleted"}
