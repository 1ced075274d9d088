"""Policies that name versions, on real buckets with versions of two servers: what goes, what stays, and why."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.outcome import Final
from s3_retention.errors import BatchStoppedError, ListingRefusedError, PlanRefusedError
from s3_retention.steps import delete, simulate
from tests.factories import BY_KEY_DATE, NO_WAIT, ODD_KEYS, Timeless, holder
from tests.fakes import faulty_gateway, one_after_another, refusal
from tests.integration.versioned import (
    KEY,
    OTHER,
    deliver,
    kept_by_reason,
    ledger,
    mark,
    put,
    remove,
    set_versioning,
    there,
    versions_waiting,
)

if TYPE_CHECKING:
    from tests.factories import World


def test_versions_that_are_not_the_latest_go_by_their_id_and_the_latest_stays(versioned: World) -> None:
    *older, latest = put(versioned, KEY, "1", "2", "3")
    put(versioned, "other/a", "1", "2")
    before = {one for one in there(versioned) if one[0] == "other/a"}
    versioned.clean()
    assert there(versioned) == {(KEY, latest), *before}
    assert ledger(versioned) == dict.fromkeys(older, "deleted")
    assert kept_by_reason(versioned) == {"current_version": 1}
    assert (
        versioned.rows("SELECT 1 FROM s3_retention.ledger_entries WHERE marker_version_id IS NOT NULL") == []
    )


def test_a_version_ages_from_when_it_was_replaced_and_not_from_when_it_was_written(versioned: World) -> None:
    put(versioned, KEY, "1", "2")
    versioned.set_clock("clock_timestamp() + interval '29 days'")
    before = there(versioned)
    assert versioned.clean().num_discovered == 0
    assert there(versioned) == before
    assert kept_by_reason(versioned) == {"current_version": 1, "not_due": 1}


def test_under_a_marker_every_version_goes_and_the_marker_goes_with_the_next_run(versioned: World) -> None:
    put(versioned, KEY, "1", "2")
    marker = mark(versioned, KEY)
    versioned.clean()
    assert there(versioned) == {(KEY, marker)}
    assert kept_by_reason(versioned) == {"marker_over_versions": 1}
    versioned.clean("run-2")
    assert there(versioned) == set()
    assert ledger(versioned)[marker] == "deleted"


def test_a_marker_stays_while_a_version_lies_beneath_it(versioned: World) -> None:
    newest_kept = versioned.under(keep_newest_noncurrent=1)
    first, second = put(newest_kept, KEY, "1", "2")
    marker = mark(newest_kept, KEY)
    for run in ("run-1", "run-2"):
        newest_kept.clean(run)
        assert there(newest_kept) == {(KEY, second), (KEY, marker)}
    assert ledger(newest_kept) == {first: "deleted"}


def test_the_newest_noncurrent_versions_stay_over_the_borders_of_pages(versioned: World) -> None:
    keys = [f"exports/2020-01/{number}.json" for number in range(5)]
    ids = {key: put(versioned, key, *"12345") for key in keys}
    marker = mark(versioned, keys[2])
    real = versioned.gateway

    def in_pages_of_two(**arguments: Any) -> Any:
        return real.client.list_object_versions(**arguments, MaxKeys=2)

    small = versioned.through(faulty_gateway(real, list_object_versions=in_pages_of_two))
    small.under(keep_newest_noncurrent=2).clean()
    stays = {(key, one) for key in keys for one in ids[key][-3:]} - {(keys[2], ids[keys[2]][2])}
    assert there(versioned) == stays | {(keys[2], marker)}


def test_all_takes_the_whole_history_of_a_key_and_never_brings_an_older_version_back(
    versioned: World,
) -> None:
    every = versioned.under(versions="all")
    ids = put(every, KEY, "1", "2", "3")
    real, seen = every.gateway.client, []

    def delete_objects(**arguments: Any) -> Any:
        answer = real.delete_objects(**arguments)
        seen.append(
            {
                entry["VersionId"]
                for entry in real.list_object_versions(Bucket=every.bucket).get("Versions", [])
            }
        )
        return answer

    every.through(faulty_gateway(every.gateway, delete_objects=delete_objects)).clean()
    assert seen == [{ids[2]}, set()]
    assert ledger(every) == dict.fromkeys(ids, "deleted")


def test_all_leaves_the_latest_over_a_version_that_could_not_be_deleted(versioned: World) -> None:
    every = versioned.under(versions="all")
    older, latest = put(every, KEY, "1", "2")
    real = every.gateway.client

    def delete_objects(**arguments: Any) -> Any:
        names = [one["VersionId"] for one in arguments["Delete"]["Objects"]]
        assert latest not in names
        errors = [{"Key": KEY, "VersionId": one, "Code": "AccessDenied", "Message": "no"} for one in names]
        return {"Errors": errors, "ResponseMetadata": {"HTTPStatusCode": 200}}

    every.through(faulty_gateway(every.gateway, delete_objects=delete_objects)).clean()
    assert there(every) == {(KEY, older), (KEY, latest)}
    assert ledger(every) == {latest: "kept:over_kept_versions"}
    assert versions_waiting(every) == {older: "permission"}
    assert real.head_object(Bucket=every.bucket, Key=KEY)["VersionId"] == latest
    # The row was redriven, and the next run takes what lay over it.
    every.redrive()
    every.clean("run-2")
    assert there(every) == set()
    assert every.balance(1) == (2, 1, 0, 0, 1, 0, 0)


def test_a_latest_version_over_what_was_not_sent_any_more_stays_pending_and_is_not_kept(
    versioned: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = versioned.under(versions="all")
    put(every, KEY, "1", "2")
    ending = threading.Event()
    monkeypatch.setattr(delete, "Event", lambda: ending)
    real = every.gateway.client

    def list_object_versions(**arguments: Any) -> Any:
        # Another delivery of the batch was stopped while this one decides.
        ending.set()
        return real.list_object_versions(**arguments)

    before = there(every)
    (batch,) = every.planned().batches
    deaf = faulty_gateway(every.gateway, list_object_versions=list_object_versions)
    assert every.through(deaf).delete(batch).num_by_outcome == {}
    assert there(every) == before
    assert ledger(every) == {}
    monkeypatch.undo()
    every.delete(batch, try_number=2)
    assert there(every) == set()


def test_a_history_that_is_spread_over_two_requests_keeps_its_latest_until_a_later_run(
    versioned: World,
) -> None:
    spread = versioned.under(versions="all", batch={"size": 10})  # 3 histories and a third to a request
    keys = [f"exports/2020-01/{number:02d}.json" for number in range(12)]
    latest = {key: put(spread, key, "1", "2", "3")[2] for key in keys}
    spread.clean()
    assert there(spread) <= set(latest.items())
    kept = {outcome for outcome in ledger(spread).values() if outcome != "deleted"}
    assert kept <= {"kept:over_kept_versions"}
    # Which of them are cut apart with the latest first depends on the ids that the server gives.
    left = len(there(spread))
    assert spread.clean("run-2").num_by_outcome["deleted"] == left
    assert there(spread) == set()


# Between plan and delete ----------------------------------------------------------------------------------
def test_a_version_that_became_the_latest_again_after_the_plan_is_kept(versioned: World) -> None:
    first, second, third = put(versioned, KEY, "1", "2", "3")
    versioned.planned()
    remove(versioned, KEY, third)
    deliver(versioned)
    assert there(versioned) == {(KEY, second)}
    assert ledger(versioned) == {first: "deleted", second: "kept:current_version"}


def test_a_version_from_which_a_marker_was_lifted_after_the_plan_is_kept(versioned: World) -> None:
    (only,) = put(versioned, KEY, "1")
    marker = mark(versioned, KEY)
    versioned.planned()
    remove(versioned, KEY, marker)
    deliver(versioned)
    assert there(versioned) == {(KEY, only)}
    assert ledger(versioned) == {only: "kept:current_version"}


def test_an_upload_over_a_lone_marker_after_the_plan_survives(versioned: World) -> None:
    (only,) = put(versioned, KEY, "1")
    mark(versioned, KEY)
    remove(versioned, KEY, only)
    versioned.planned()
    (new,) = put(versioned, KEY, "2")
    deliver(versioned)
    assert there(versioned) == {(KEY, new)}


def test_a_version_that_is_gone_at_its_delete_is_told_so(versioned: World) -> None:
    first, _ = put(versioned, KEY, "1", "2")
    versioned.planned()
    remove(versioned, KEY, first)
    deliver(versioned)
    assert ledger(versioned) == {first: "already_absent"}


def test_what_is_no_longer_due_when_it_is_delivered_is_kept(versioned: World) -> None:
    first, second = put(versioned, KEY, "1", "2")
    versioned.planned()
    versioned.set_clock("clock_timestamp() + interval '20 days'")
    deliver(versioned)
    assert there(versioned) == {(KEY, first), (KEY, second)}
    assert ledger(versioned) == {first: "kept:not_due"}


def test_many_versions_of_many_keys_are_looked_at_by_the_page_before_their_delete(versioned: World) -> None:
    keys = [f"exports/2020-01/{number:03d}.json" for number in range(60)]
    latest = {(key, put(versioned, key, "1", "2")[1]) for key in keys}
    versioned.planned()
    real, asked = versioned.gateway.client, []

    def list_object_versions(**arguments: Any) -> Any:
        asked.append(arguments)
        return real.list_object_versions(**arguments)

    deliver(versioned.through(faulty_gateway(versioned.gateway, list_object_versions=list_object_versions)))
    assert there(versioned) == latest
    assert len(asked) <= 2  # moto leaves out the first entry of a page, so that its key is looked at alone


def test_one_key_that_the_store_never_shows_costs_no_other(versioned: World) -> None:
    keys = [f"exports/2020-01/{number}.json" for number in range(5)]
    latest = {key: put(versioned, key, "1", "2")[1] for key in keys}
    versioned.planned()
    real, num_asked = versioned.gateway.client, Counter[str]()

    def list_object_versions(**arguments: Any) -> Any:
        num_asked[arguments["Prefix"]] += 1
        if arguments["Prefix"] == keys[1]:
            raise refusal("InternalError", 500)
        return real.list_object_versions(**arguments)

    deliver(versioned.through(faulty_gateway(versioned.gateway, list_object_versions=list_object_versions)))
    assert set(versions_waiting(versioned).values()) == {"transient"}
    assert there(versioned) - set(latest.items()) == {(keys[1], one) for one in versions_waiting(versioned)}
    assert num_asked[keys[1]] == NO_WAIT.max_attempts
    versioned.redrive()
    assert there(versioned) == set(latest.items())


def test_a_store_that_shows_no_key_at_all_stops_the_batch_and_is_not_asked_for_each(versioned: World) -> None:
    keys = [f"exports/2020-01/{number}.json" for number in range(9)]
    for key in keys:
        put(versioned, key, "1", "2")
    (batch,) = versioned.planned().batches
    asked = set()

    def list_object_versions(**arguments: Any) -> Any:
        asked.add(arguments["Prefix"])
        raise refusal("InternalError", 500)

    mute = versioned.through(faulty_gateway(versioned.gateway, list_object_versions=list_object_versions))
    assert mute.delete(batch).stopped_class == "transient"
    assert len(asked) == 3
    assert versioned.rows("SELECT 1 FROM s3_retention.ledger_entries") == []
    # With the store back, the next run goes on.
    versioned.sweep()
    with pytest.raises(BatchStoppedError):
        versioned.report()
    versioned.clean("run-2")
    assert set(ledger(versioned).values()) == {"deleted"}


def test_a_second_delivery_records_nothing_twice_and_adds_no_marker(versioned: World) -> None:
    first, second = put(versioned, KEY, "1", "2")
    (batch,) = versioned.planned().batches
    versioned.delete(batch)
    assert versioned.delete(batch, try_number=2).was_closed
    versioned.sweep()
    versioned.report()
    assert versioned.clean("run-2").num_discovered == 0
    assert there(versioned) == {(KEY, second)}
    assert ledger(versioned) == {first: "deleted"}


def test_an_answer_that_was_lost_is_settled_by_a_look_at_the_version_or_at_the_marker(
    versioned: World,
) -> None:
    (only,) = put(versioned, KEY, "1")
    marker = mark(versioned, KEY)
    remove(versioned, KEY, only)
    first, _ = put(versioned, OTHER, "1", "2")
    real = versioned.gateway.client

    def lost(**arguments: Any) -> Any:
        real.delete_objects(**arguments)
        return {"ResponseMetadata": {"HTTPStatusCode": 200}}

    versioned.through(faulty_gateway(versioned.gateway, delete_objects=lost)).clean()
    assert ledger(versioned) == {marker: "already_absent", first: "already_absent"}

    # The same of a marker that is there all the same.
    (only,) = put(versioned, KEY, "1")
    marker = mark(versioned, KEY)
    remove(versioned, KEY, only)
    nothing_done: dict[str, Any] = {"ResponseMetadata": {"HTTPStatusCode": 200}}
    versioned.through(faulty_gateway(versioned.gateway, delete_objects=lambda **_: nothing_done)).clean(
        "run-2"
    )
    assert versions_waiting(versioned) == {marker: "unknown"}
    versioned.redrive()
    assert ledger(versioned)[marker] == "deleted"


@pytest.mark.parametrize("versioned", ["weed"], indirect=True)
def test_a_null_version_that_was_written_again_after_the_plan_survives(versioned: World) -> None:
    set_versioning(versioned, "Suspended")
    put(versioned, KEY, "older")
    set_versioning(versioned, "Enabled")
    put(versioned, KEY, "on top")
    versioned.planned()
    set_versioning(versioned, "Suspended")
    put(versioned, KEY, "written again")
    deliver(versioned)
    assert ledger(versioned) == {"null": "changed"}
    assert versioned.admin.get_object(Bucket=versioned.bucket, Key=KEY)["Body"].read() == b"written again"


# What cannot be named -------------------------------------------------------------------------------------
@pytest.mark.parametrize("versioned", ["weed"], indirect=True)
def test_odd_keys_lose_their_older_versions_unless_the_store_cannot_write_them(versioned: World) -> None:
    for body in ("1", "2"):
        versioned.put(*ODD_KEYS, body=body.encode())
    unwritable = {key for key in ODD_KEYS if any(char in key for char in "\x01\x1f\ufffe")}
    versioned.clean()
    assert versioned.keys() == set(ODD_KEYS)
    rows = versioned.rows("SELECT key, outcome FROM s3_retention.ledger_entries")
    assert {row["key"] for row in rows} == set(ODD_KEYS) - unwritable
    assert {row["outcome"] for row in rows} == {"deleted"}
    assert kept_by_reason(versioned)["key_not_recordable"] == 2 * len(unwritable)
    assert len(there(versioned)) == len(ODD_KEYS) + len(unwritable)


@pytest.mark.parametrize("versions", ["noncurrent", "all"])
def test_a_bucket_without_versions_is_refused_with_field_value_and_fix(world: World, versions: str) -> None:
    world.put(KEY)
    named = world.under(versions=versions)
    with pytest.raises(PlanRefusedError) as refused:
        named.planned()
    assert str(refused.value) == (
        f"weekly_digests.yaml: versions = {versions}: bucket {world.bucket} has no versions; write versions: current, "
        "or switch versioning on in the bucket; nothing was planned"
    )
    with pytest.raises(PlanRefusedError):
        simulate.run(
            world.conn, Timeless(world.gateway, world.bucket, "exports/"), named.policy, holder("plan")
        )
    assert world.keys() == {KEY}


def test_a_store_that_does_not_say_whether_it_has_versions_plans_nothing(world: World) -> None:
    def denied(**_: Any) -> Any:
        raise refusal("AccessDenied", 403)

    mute = world.under(versions="all").through(faulty_gateway(world.gateway, get_bucket_versioning=denied))
    with pytest.raises(ListingRefusedError, match="it takes s3:GetBucketVersioning"):
        mute.planned()


def test_an_empty_answer_about_versioning_is_no_bucket_without_versions(world: World) -> None:
    answers: list[dict[str, Any]] = [
        {"ResponseMetadata": {"HTTPHeaders": {"content-length": "0"}}},
        {"ResponseMetadata": {"HTTPHeaders": {"content-length": "120"}}, "Status": "Enabled"},
    ]
    odd = faulty_gateway(world.gateway, get_bucket_versioning=one_after_another(*answers))
    assert odd.ask_versioning(world.bucket).status == "Enabled"


def test_a_simulation_counts_the_versions_that_would_go_and_touches_none(versioned: World) -> None:
    put(versioned, KEY, "1", "2", "3")
    before = there(versioned)
    simulated = versioned.under(mode="simulate")
    source = Timeless(simulated.gateway, simulated.bucket, "exports/")
    result = simulate.run(simulated.conn, source, simulated.policy, holder("plan"))[0]
    assert (result.num_scanned, result.num_discovered) == (3, 2)
    assert there(versioned) == before
    assert versioned.rows("SELECT 1 FROM s3_retention.chunks") == []


def test_a_listing_that_breaks_off_plans_nothing(versioned: World) -> None:
    put(versioned, KEY, "1", "2", "3")
    real = versioned.gateway.client

    def list_object_versions(**arguments: Any) -> Any:
        if "KeyMarker" in arguments:
            raise refusal("AccessDenied", 403)
        return real.list_object_versions(**arguments, MaxKeys=1)

    broken = versioned.through(faulty_gateway(versioned.gateway, list_object_versions=list_object_versions))
    with pytest.raises(ListingRefusedError, match=r"listing the versions of .* broke off with AccessDenied"):
        broken.planned()
    assert versioned.rows("SELECT 1 FROM s3_retention.chunks") == []


def test_outcomes_of_named_versions_carry_no_marker(versioned: World) -> None:
    first, _ = put(versioned, KEY, "1", "2")
    histories = [
        one for page in versioned.gateway.list_histories(versioned.bucket, "exports/") for one in page
    ]
    ((older,),) = [
        [one.facts for one in history if one.facts.ref.version_id == first] for history in histories
    ]
    (outcome,) = versioned.gateway.delete_chunk([older])
    assert (outcome.kind, outcome.marker_version_id) == (Final.DELETED, None)


# With a keep rule -----------------------------------------------------------------------------------------
BY_MONTH = {"keep": {"latest": 1, "group_by": ["customer"]}}


def key(month: str, customer: str) -> str:
    return f"exports/{month}/{customer}.json"


def keeping(world: World, **changes: Any) -> World:
    """The newest month of each customer is kept, with all of its history."""
    return world.under(**BY_MONTH, **{"age": BY_KEY_DATE} | changes)


@pytest.mark.parametrize("versions", ["noncurrent", "all"])
def test_a_keep_rule_spares_the_newest_key_of_each_group_with_its_whole_history(
    versioned: World, versions: str
) -> None:
    world = keeping(versioned, versions=versions)
    older, newer, single = key("2020-01", "ann"), key("2020-02", "ann"), key("2020-01", "bob")
    ids = {one: put(world, one, "1", "2") for one in (older, newer, single)}
    world.clean()
    stays = {(one, version) for one in (newer, single) for version in ids[one]}
    stays |= {(older, ids[older][1])} if versions == "noncurrent" else set()
    assert there(world) == stays
    assert kept_by_reason(world)["kept_latest"] == (2 if versions == "noncurrent" else 4)


def test_a_key_whose_newest_is_a_marker_is_not_the_newest_of_its_group(versioned: World) -> None:
    world = keeping(versioned)
    older, newer = key("2020-01", "ann"), key("2020-02", "ann")
    ids = {one: put(world, one, "1", "2") for one in (older, newer)}
    marker = mark(world, newer)
    world.clean()
    assert there(world) == {(newer, marker), *((older, one) for one in ids[older])}


def test_a_group_without_a_current_object_keeps_nothing_back(versioned: World) -> None:
    world = keeping(versioned)
    put(world, key("2020-01", "ann"), "1")
    marker = mark(world, key("2020-01", "ann"))
    world.clean()
    assert there(world) == {(key("2020-01", "ann"), marker)}
    assert set(ledger(world).values()) == {"deleted"}


def test_a_keeper_that_is_gone_before_the_delete_keeps_the_versions_of_its_group(versioned: World) -> None:
    world = keeping(versioned)
    older, newer = key("2020-01", "ann"), key("2020-02", "ann")
    first, _ = put(world, older, "1", "2")
    put(world, newer, "1")
    world.planned()
    mark(world, newer)
    deliver(world)
    assert ledger(world) == {first: "kept:keeper_gone"}
