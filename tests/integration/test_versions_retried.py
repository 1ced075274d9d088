"""While a delivery of named versions waits between its requests, their keys go on living: each attempt looks anew."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.condition import Guard
from s3_retention.s3.limits import RetryLimits
from s3_retention.steps import decide_versions
from s3_retention.steps.retry import delete_with_retries
from s3_retention.store import chunks
from tests.fakes import faulty_gateway, refusal
from tests.integration.versioned import (
    KEY,
    OTHER,
    ledger,
    put,
    remove,
    set_versioning,
    there,
    versions_waiting,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.factories import World


def busy_once(world: World, meanwhile: Callable[[], object]) -> tuple[World, list[set[str]]]:
    """A store that is busy at the first delete, while something happens; and the versions of each request."""
    real, seen = world.gateway.client, []

    def delete_objects(**arguments: Any) -> Any:
        seen.append({one["VersionId"] for one in arguments["Delete"]["Objects"]})
        if len(seen) == 1:
            meanwhile()
            raise refusal("SlowDown", 503)
        return real.delete_objects(**arguments)

    return world.through(faulty_gateway(world.gateway, delete_objects=delete_objects)), seen


def test_a_version_that_became_the_latest_between_two_attempts_is_kept(versioned: World) -> None:
    first, second, third = put(versioned, KEY, "1", "2", "3")
    older, newer = put(versioned, OTHER, "1", "2")
    busy, seen = busy_once(versioned, lambda: remove(versioned, KEY, third))
    busy.clean()
    assert there(versioned) == {(KEY, second), (OTHER, newer)}
    assert ledger(versioned) == {first: "deleted", second: "kept:current_version", older: "deleted"}
    assert seen == [{first, second, older}, {first, older}]


def test_a_version_that_went_between_two_attempts_is_told_so(versioned: World) -> None:
    first, second = put(versioned, KEY, "1", "2")
    busy, seen = busy_once(versioned, lambda: remove(versioned, KEY, first))
    busy.clean()
    assert there(versioned) == {(KEY, second)}
    assert ledger(versioned) == {first: "already_absent"}
    assert len(seen) == 1


@pytest.mark.parametrize("versioned", ["weed"], indirect=True)
def test_a_null_version_that_was_written_again_between_two_attempts_survives(versioned: World) -> None:
    set_versioning(versioned, "Suspended")
    put(versioned, KEY, "older")
    set_versioning(versioned, "Enabled")
    put(versioned, KEY, "on top")

    def write_again() -> None:
        set_versioning(versioned, "Suspended")
        put(versioned, KEY, "written again")

    busy, _ = busy_once(versioned, write_again)
    busy.clean()
    assert ledger(versioned) == {"null": "changed"}
    body = versioned.admin.get_object(Bucket=versioned.bucket, Key=KEY)["Body"].read()
    assert body == b"written again"


def test_a_store_that_does_not_show_a_version_again_leaves_it_with_its_cause(
    versioned: World,
) -> None:
    first, second = put(versioned, KEY, "1", "2")
    shown = [True]
    busy, seen = busy_once(versioned, shown.clear)
    real = busy.gateway.client

    def list_object_versions(**arguments: Any) -> Any:
        if not shown:
            raise refusal("AccessDenied", 403)
        return real.list_object_versions(**arguments)

    busy.through(faulty_gateway(busy.gateway, list_object_versions=list_object_versions)).clean()
    assert there(versioned) == {(KEY, first), (KEY, second)}
    assert (len(seen), versions_waiting(versioned)) == (1, {first: "permission"})
    assert versioned.value("SELECT num_attempts FROM s3_retention.quarantine") == 2


def test_a_delivery_that_is_to_end_while_it_waits_looks_at_nothing_again(versioned: World) -> None:
    put(versioned, KEY, "1", "2")
    (batch,) = versioned.planned().batches
    asked: list[str] = []
    ending = Event()

    def note(**_: Any) -> Any:
        asked.append("list")
        raise AssertionError

    def delete_objects(**_: Any) -> Any:
        asked.append("delete")
        ending.set()
        raise refusal("SlowDown", 503)

    (chunk_id,) = chunks.list_open(versioned.conn, batch_id=batch.batch_id)
    commands = chunks.list_unfinished(versioned.conn, chunk_id=chunk_id, fence=1)
    gateway = faulty_gateway(versioned.gateway, delete_objects=delete_objects, list_object_versions=note)
    anew = partial(decide_versions.run_alone, gateway, versioned.policy, now=datetime.now(timezone.utc))
    limits = RetryLimits(sleep=lambda _: None, ending=ending)
    done = delete_with_retries(gateway, commands, Guard(), limits, decide=anew)
    assert [outcome.kind.value for _, outcome, _ in done.attempted] == ["throttled"]
    assert (
        delete_with_retries(gateway, commands, Guard(), limits, decide=anew, is_decided=False).attempted == []
    )
    assert asked == ["delete"]


# The latest goes last -------------------------------------------------------------------------------------
def test_a_latest_on_which_a_newer_one_was_put_before_its_turn_stays_until_it_is_due(
    versioned: World,
) -> None:
    every = versioned.under(versions="all")
    older, latest = put(every, KEY, "1", "2")
    real = every.gateway.client
    new: list[str] = []

    def delete_objects(**arguments: Any) -> Any:
        answer = real.delete_objects(**arguments)
        new.extend(put(every, KEY, "3"))
        return answer

    def list_object_versions(**arguments: Any) -> Any:
        answer = real.list_object_versions(**arguments)
        for one in answer.get(
            "Versions", []
        ):  # written now by the clock of the ledger, which is 40 days ahead
            one["LastModified"] += timedelta(days=39 if one["VersionId"] in new else 0)
        return answer

    calls = {"delete_objects": delete_objects, "list_object_versions": list_object_versions}
    every.through(faulty_gateway(every.gateway, **calls)).clean()
    assert ledger(every) == {older: "deleted", latest: "kept:not_due"}
    assert there(every) == {(KEY, latest), (KEY, *new)}


def test_a_latest_stays_where_the_store_says_deleted_of_what_lies_beneath_and_leaves_it(
    versioned: World,
) -> None:
    every = versioned.under(versions="all")
    older, latest = put(every, KEY, "1", "2")

    def delete_objects(**arguments: Any) -> Any:
        return {"Deleted": arguments["Delete"]["Objects"], "ResponseMetadata": {"HTTPStatusCode": 200}}

    every.through(faulty_gateway(every.gateway, delete_objects=delete_objects)).clean()
    assert there(every) == {(KEY, older), (KEY, latest)}
    assert ledger(every)[latest] == "kept:over_kept_versions"


def test_with_all_a_version_that_became_the_latest_between_two_attempts_goes_after_those_beneath(
    versioned: World,
) -> None:
    every = versioned.under(versions="all")
    first, second, third = put(every, KEY, "1", "2", "3")
    busy, seen = busy_once(every, lambda: remove(every, KEY, third))
    busy.clean()
    assert ledger(every) == {
        first: "deleted",
        second: "kept:over_kept_versions",
        third: "kept:over_kept_versions",
    }
    assert there(every) == {(KEY, second)}
    assert seen == [{first, second}, {first}]
    every.clean("run-2")
    assert there(every) == set()
