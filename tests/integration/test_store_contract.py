"""One contract over every store: each promise of AWS, or the one deviation from it that is listed."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.config import Config
from hypothesis import given, settings
from hypothesis import strategies as st

from s3_retention.core.command import DeleteCommand, command_id
from s3_retention.core.condition import EtagCondition, Guard
from s3_retention.s3.gateway import MAX_CHUNK
from s3_retention.s3.keys import is_sendable
from s3_retention.steps import probe
from sandbox.moto import moto_server
from tests.factories import NO_WAIT, facts
from tests.memory_store import MemoryStore
from tests.store_checks import CHECKS, Store
from tests.store_contract import DEVIATIONS, MEMORY, MOTO, PROMISES, SEAWEEDFS, STORES, Promise, seen_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.s3 import S3Server
    from tests.factories import World

PAGE = 1000
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def stores(s3: S3Server, admin: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    with moto_server(tmp_path_factory.mktemp("moto")) as moto:
        memory, client = MemoryStore(), moto.client()

        def deny_in_moto(bucket: str, keys: Iterable[str]) -> None:
            statement = {
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:DeleteObject",
                "Resource": [f"arn:aws:s3:::{bucket}/{key}" for key in keys],
            }
            policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
            client.put_bucket_policy(Bucket=bucket, Policy=policy)

        yield {
            SEAWEEDFS: Store(SEAWEEDFS, s3.worker_client(Config()), admin, s3.deny),
            MOTO: Store(MOTO, client, client, deny_in_moto),
            MEMORY: Store(
                MEMORY, memory.client, memory, lambda bucket, keys: memory.buckets[bucket].denied.update(keys)
            ),
        }


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, stores: dict[str, Store]) -> Iterator[Store]:
    """Each store in turn, with an empty bucket."""
    of_bucket = replace(stores[request.param], bucket=f"t-contract-{next(_numbers):04d}")
    of_bucket.admin.create_bucket(Bucket=of_bucket.bucket)
    yield of_bucket
    if of_bucket.name == SEAWEEDFS:  # it has few volumes, and each bucket takes some
        is_full = True
        while is_full:
            versions = of_bucket.versions()
            is_full = len(versions) == PAGE
            for _, key, version_id in versions:
                of_bucket.admin.delete_object(Bucket=of_bucket.bucket, Key=key, VersionId=version_id)
        of_bucket.admin.delete_bucket(Bucket=of_bucket.bucket)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
def test_a_store_does_what_aws_documents_or_deviates_as_listed(store: Store, promise: Promise) -> None:
    assert CHECKS[promise.name](store) == seen_on(store.name, promise)


def test_each_deviation_is_one_row_and_is_none_of_what_aws_documents() -> None:
    rows = [(one.store, one.promise) for one in DEVIATIONS]
    assert len(set(rows)) == len(rows)
    promised = {promise.name: promise.aws for promise in PROMISES}
    assert all(one.seen != promised[one.promise] and one.store in STORES for one in DEVIATIONS)
    assert set(CHECKS) == set(promised)


# What the product makes of it -----------------------------------------------------------------------------
def deviates(store: Store, promise: str) -> bool:
    return (store.name, promise) in {(one.store, one.promise) for one in DEVIATIONS}


def condition_of(store: Store) -> EtagCondition:
    return EtagCondition.IGNORED if deviates(store, "etag_bulk") else EtagCondition.HONOURED


def test_outcomes_come_in_the_order_of_the_request_whatever_each_of_them_is(store: Store) -> None:
    store.put("a", "b", "c", "d", "e", "\x01", "\x02")
    found = {one.ref.key: one for one in store.listed()}
    store.deny(store.bucket, ["b"])
    store.admin.delete_object(Bucket=store.bucket, Key="c")
    store.admin.delete_object(Bucket=store.bucket, Key="\x02")
    store.put("d", body=b"new")
    outcomes = store.gateway.delete_chunk(
        [found[key] for key in ("e", "\x02", "d", "\x01", "c", "b", "a")], guard=Guard.of(condition_of(store))
    )
    assert [one.kind.value for one in outcomes] == [
        "deleted",
        "already_absent",
        "changed",
        "deleted",
        "already_absent",
        "permission",
        "deleted",
    ]
    assert set(store.keys()) == {"b", "d"}


def test_the_probe_finds_out_what_each_store_does_with_a_condition_at_the_price_of_one_due_object(
    store: Store,
) -> None:
    store.put("a", "b")
    commands = [
        DeleteCommand(command_id(one, "v1") + b"o" * 32, one, one.last_modified_at, 1, 0, "v1")
        for one in store.listed()
    ]
    found = probe.run(store.gateway, commands, NO_WAIT)
    assert found.condition is condition_of(store)
    is_gone = found.condition is EtagCondition.IGNORED
    assert found.command == (commands[0] if is_gone else None)
    assert store.keys() == (["b"] if is_gone else ["a", "b"])


def test_more_than_1000_keys_never_reach_a_store(store: Store) -> None:
    store.put("a")
    (one,) = store.listed()
    with pytest.raises(ValueError, match="1001 keys: a request takes 1000"):
        store.gateway.delete_chunk([one] * (MAX_CHUNK + 1))
    assert store.keys() == ["a"]


CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), st.characters(categories=["Cs"])
)
"""All of Unicode, lone surrogates as often as all else, but for NUL, which the ledger cannot hold, and the slash."""


def holds(store: Store, key: str) -> bool:
    """Whether a store keeps a key as it is, by its deviations."""
    return not (
        ("\n" in key and deviates(store, "line_feed")) or ("\\" in key and deviates(store, "backslash"))
    )


@settings(max_examples=settings().max_examples // 4)
@given(names=st.lists(st.text(CHARACTERS, max_size=20), min_size=1, max_size=8))
def test_whatever_unicode_a_key_is_made_of_it_is_deleted_under_its_name_or_refused_alone(
    store: Store, names: list[str]
) -> None:
    # In a folder of its own, so that no name is a dot or a double slash.
    keys = {f"{next(_numbers)}-{name}~" for name in names}
    sent = {key for key in keys if is_sendable(key) and holds(store, key)}
    odd = [facts(key, bucket=store.bucket) for key in keys if not is_sendable(key)]
    if sent:
        store.put(*sent)
    listed = store.listed()
    assert {one.ref.key for one in listed} == sent
    outcomes = store.gateway.delete_chunk([*odd, *listed])
    assert [one.kind.value for one in outcomes] == ["malformed"] * len(odd) + ["deleted"] * len(sent)
    assert store.keys() == []


@settings(max_examples=settings().max_examples // 4)
@given(names=st.lists(st.text(CHARACTERS, max_size=20).filter(is_sendable), min_size=1, max_size=8))
def test_whatever_unicode_a_key_is_made_of_it_comes_through_plan_and_ledger_as_it_was(
    world: World, names: list[str]
) -> None:
    numbers = [next(_numbers) for _ in names]
    keys = {
        f"exports/2020-01/{number}-{name.replace(chr(92), '')}.json"
        for number, name in zip(numbers, names, strict=True)
    }
    world.put(*keys)
    world.clean(f"run-{numbers[0]}")
    assert {key for key in world.outcomes() if int(key.split("/")[2].split("-")[0]) in numbers} == keys
    assert world.keys() == set()
