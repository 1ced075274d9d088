"""Whether a store holds a delete to its ETag is found out with one due object, and never assumed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.condition import EtagCondition
from s3_retention.core.outcome import Final
from s3_retention.steps import probe
from s3_retention.steps.target_store import TargetStore
from s3_retention.store import store_probes
from tests.fakes import NO_WAIT, asked, deleted, faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from s3_retention.core.command import DeleteCommand
    from s3_retention.s3.gateway import S3Gateway
    from tests.factories import World

KEYS = [f"exports/2020-01/{number:02d}.json" for number in range(6)]


@pytest.fixture
def unknown(world: World) -> World:
    """A world in which nothing is known of the store."""
    world.put(*KEYS)
    return replace(world, knows_store=False)


def ignoring(real: S3Gateway, seen: list[dict[str, Any]] | None = None) -> S3Gateway:
    """A store that carries a delete out whatever its ETag is, as Ceph RGW 16 and moto do."""
    delete_objects: Callable[..., Any] = real.client.delete_objects

    def delete(**arguments: Any) -> Any:
        if seen is not None:
            seen.append(arguments)
        bare = [{"Key": one["Key"]} for one in arguments["Delete"]["Objects"]]
        return delete_objects(**arguments | {"Delete": {"Objects": bare, "Quiet": False}})

    return faulty_gateway(real, delete_objects=delete)


def refusing(real: S3Gateway, seen: list[dict[str, Any]] | None = None) -> S3Gateway:
    """A store that takes a request with an ETag for no XML of its own."""
    delete_objects: Callable[..., Any] = real.client.delete_objects

    def delete(**arguments: Any) -> Any:
        if seen is not None:
            seen.append(arguments)
        if any("ETag" in one for one in arguments["Delete"]["Objects"]):
            raise refusal("MalformedXML")
        return delete_objects(**arguments)

    return faulty_gateway(real, delete_objects=delete)


def known(world: World) -> list[tuple[str, str]]:
    """What the ledger knows of the bucket."""
    rows = world.rows("SELECT bucket, etag_condition FROM s3_retention.store_probes")
    return [(row["bucket"], row["etag_condition"]) for row in rows]


def test_a_store_that_honours_the_condition_is_known_as_such_and_loses_nothing_to_the_probe(
    unknown: World,
) -> None:
    assert unknown.clean().num_by_outcome == {"deleted": 6}
    assert known(unknown) == [(unknown.bucket, "honoured")]


def test_a_store_that_ignores_the_condition_is_known_as_such_and_its_deletes_are_recorded_once(
    unknown: World,
) -> None:
    seen: list[dict[str, Any]] = []
    there = unknown.through(ignoring(unknown.gateway, seen))
    assert there.clean().num_by_outcome == {"deleted": 6}
    assert known(unknown) == [(unknown.bucket, "ignored")]
    assert unknown.keys() == set()
    assert [len(asked(one)) for one in seen] == [1, 5]
    rows = unknown.rows("SELECT key, num_attempts FROM s3_retention.ledger_entries ORDER BY key")
    assert [tuple(row.values()) for row in rows] == [(key, 1) for key in KEYS]


def test_a_store_that_refuses_the_condition_is_known_as_such_and_gets_no_etag(unknown: World) -> None:
    seen: list[dict[str, Any]] = []
    there = unknown.through(refusing(unknown.gateway, seen))
    assert there.clean().num_by_outcome == {"deleted": 6}
    assert known(unknown) == [(unknown.bucket, "refused")]
    assert [any("ETag" in one for one in request["Delete"]["Objects"]) for request in seen] == [True, False]


def test_what_is_known_is_not_asked_again_for_a_day(unknown: World) -> None:
    seen: list[dict[str, Any]] = []
    there = unknown.through(ignoring(unknown.gateway, seen))
    there.clean()
    unknown.put(*KEYS)
    seen.clear()
    there.clean("run-2")
    assert [len(asked(one)) for one in seen] == [6]
    assert timedelta(days=1) == probe.VALID_FOR
    assert unknown.value(
        "SELECT valid_until - probed_at BETWEEN interval '23:59' AND interval '24:01' FROM s3_retention.store_probes"
    )


def test_a_batch_after_that_day_asks_again_and_believes_the_new_answer(unknown: World) -> None:
    unknown.through(ignoring(unknown.gateway)).clean()
    unknown.root.execute(
        "UPDATE s3_retention.store_probes SET probed_at = '2020-01-01', valid_until = '2020-01-02'"
    )
    unknown.put(*KEYS)
    assert unknown.clean("run-2").num_by_outcome == {"deleted": 6}
    assert known(unknown) == [(unknown.bucket, "honoured")]
    assert unknown.value("SELECT valid_until > s3_retention.clock() FROM s3_retention.store_probes")


@pytest.mark.parametrize("store", [ignoring, refusing], ids=["ignored", "refused"])
def test_an_object_that_is_overwritten_after_the_plan_survives_on_a_store_without_conditional_deletes(
    unknown: World, store: Callable[[S3Gateway], S3Gateway]
) -> None:
    there = unknown.through(store(unknown.gateway))
    (batch,) = there.planned().batches
    unknown.put(*KEYS[:2], KEYS[5], body=b"new")
    assert there.delete(batch).num_by_outcome == {"changed": 3, "deleted": 3}
    assert unknown.keys() == {*KEYS[:2], KEYS[5]}


def test_where_nothing_can_be_found_out_every_object_is_looked_at_and_nothing_is_remembered(
    unknown: World,
) -> None:
    real = unknown.gateway.client.delete_objects
    probes: list[list[str]] = []

    def denies_probes(**arguments: Any) -> Any:
        objects = arguments["Delete"]["Objects"]
        if objects[0].get("ETag") == f'"{"0" * 32}"':
            probes.append(asked(arguments))
            return deleted(errors=[(objects[0]["Key"], "AccessDenied")])
        return real(**arguments)

    there = unknown.through(faulty_gateway(unknown.gateway, delete_objects=denies_probes))
    (batch,) = there.planned().batches
    unknown.put(KEYS[5], body=b"new")
    assert there.delete(batch).num_by_outcome == {"changed": 1, "deleted": 5}
    assert probes == [[key] for key in KEYS[: probe.MAX_PROBED]]
    assert known(unknown) == []


def commands_of(world: World) -> list[DeleteCommand]:
    """The commands of a plan, as the first delivery has them."""
    from s3_retention.store import chunks

    (batch,) = world.planned().batches
    (chunk_id,) = chunks.list_open(world.conn, batch_id=batch.batch_id)
    return list(chunks.list_unfinished(world.conn, chunk_id=chunk_id, fence=1))


@pytest.mark.parametrize(
    "answer",
    [
        deleted(),
        deleted(errors=[(KEYS[0], "SlowDown")]),
        deleted(errors=[(KEYS[0], "InternalError")]),
        refusal("SlowDown", 503),
        refusal("AccessDenied", 403),
    ],
    ids=["empty", "throttled", "transient", "all throttled", "all denied"],
)
def test_an_object_that_is_still_there_after_no_refusal_of_the_condition_proves_nothing(
    unknown: World, answer: Any
) -> None:
    commands = commands_of(unknown)[:1]
    gateway = faulty_gateway(unknown.gateway, delete_objects=one_after_another(answer))
    assert probe.run(gateway, commands, NO_WAIT) == probe.Probe()
    assert len(unknown.keys()) == 6


def test_a_store_that_says_deleted_and_leaves_the_object_proves_nothing(unknown: World) -> None:
    commands = commands_of(unknown)[:1]
    gateway = faulty_gateway(unknown.gateway, delete_objects=lambda **_: deleted(KEYS[0]))
    assert probe.run(gateway, commands, NO_WAIT) == probe.Probe()


def test_an_object_that_changed_since_the_plan_is_no_probe_and_the_next_one_is(unknown: World) -> None:
    commands = commands_of(unknown)
    unknown.put(KEYS[0], body=b"new")
    seen: list[dict[str, Any]] = []
    found = probe.run(ignoring(unknown.gateway, seen), commands, NO_WAIT)
    assert (found.condition, found.command) == (EtagCondition.IGNORED, commands[1])
    assert found.outcome is not None
    assert found.outcome.kind is Final.DELETED
    assert [asked(one) for one in seen] == [[KEYS[1]]]
    assert unknown.keys() == {KEYS[0], *KEYS[2:]}


def test_keys_that_go_alone_and_objects_without_an_etag_are_no_probes(unknown: World) -> None:
    commands = commands_of(unknown)[:2]
    odd = replace(commands[0], facts=replace(commands[0].facts, ref=replace(commands[0].ref, key="a\x01")))
    bare = replace(commands[1], facts=replace(commands[1].facts, etag=None))
    named = replace(
        commands[1], facts=replace(commands[1].facts, ref=replace(commands[1].ref, version_id="v"))
    )
    seen: list[dict[str, Any]] = []
    empty, anything = (
        replace(commands[1], facts=replace(commands[1].facts, etag=etag)) for etag in ("", "*")
    )
    given = [odd, bare, named, empty, anything]
    assert probe.run(ignoring(unknown.gateway, seen), given, NO_WAIT) == probe.Probe()
    assert seen == []


def test_a_bucket_whose_versioning_changes_is_probed_anew(unknown: World) -> None:
    unknown.clean()
    unknown.admin.put_bucket_versioning(
        Bucket=unknown.bucket, VersioningConfiguration={"Status": "Suspended"}
    )
    unknown.put(*KEYS)
    unknown.clean("run-2")
    rows = unknown.rows("SELECT versioning FROM s3_retention.store_probes ORDER BY 1")
    assert [row["versioning"] for row in rows] == ["Never", "Suspended"]


def test_a_store_that_says_nothing_of_versions_is_probed_all_the_same(unknown: World) -> None:
    mute = faulty_gateway(
        unknown.gateway, get_bucket_versioning=one_after_another(refusal("AccessDenied", 403))
    )
    assert unknown.through(mute).clean().num_by_outcome == {"deleted": 6}
    rows = unknown.rows("SELECT versioning, etag_condition FROM s3_retention.store_probes")
    assert [tuple(row.values()) for row in rows] == [("", "honoured")]


def test_while_nothing_is_known_one_delivery_at_a_time_finds_it_out(unknown: World) -> None:
    seen: list[dict[str, Any]] = []
    there = unknown.through(ignoring(unknown.gateway, seen))
    (batch,) = there.planned().batches
    there.cut_chunks(2)
    assert there.delete(batch).num_by_outcome == {"deleted": 6}
    assert [len(asked(one)) for one in seen] == [1, 1, 2, 2]
    assert unknown.value("SELECT count(*) FROM s3_retention.store_probes") == 1


@pytest.mark.parametrize("code", ["PreconditionFailed", "412"])
def test_a_request_that_is_refused_whole_says_nothing_of_the_condition_of_a_key(
    unknown: World, code: str
) -> None:
    commands = commands_of(unknown)[:1]
    gateway = faulty_gateway(unknown.gateway, delete_objects=one_after_another(refusal(code, 412)))
    assert probe.run(gateway, commands, NO_WAIT) == probe.Probe()


def test_an_object_that_was_overwritten_survives_where_something_before_the_store_refused_the_probe(
    unknown: World,
) -> None:
    once = iter([refusal("PreconditionFailed", 412)])
    real = ignoring(unknown.gateway).client.delete_objects

    def proxied(**arguments: Any) -> Any:
        for error in once:
            raise error
        return real(**arguments)

    there = unknown.through(faulty_gateway(unknown.gateway, delete_objects=proxied))
    (batch,) = there.planned().batches
    unknown.put(KEYS[5], body=b"new")
    assert there.delete(batch).num_by_outcome == {"changed": 1, "deleted": 5}
    assert unknown.keys() == {KEYS[5]}
    assert known(unknown) == [(unknown.bucket, "ignored")]


def test_a_probe_of_the_future_is_not_believed(unknown: World) -> None:
    unknown.set_clock("timestamptz '2046-06-01 00:00:00+00'")
    unknown.know_store()
    unknown.set_clock("timestamptz '2036-06-01 00:00:00+00'")
    found = store_probes.find(
        unknown.conn, TargetStore.open(unknown.conn, unknown.gateway, unknown.policy).probed
    )
    assert found is None
