"""Versions under Object Lock wait in quarantine until their lock ends, and are planned anew after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.condition import Guard
from s3_retention.core.outcome import FailureClass, Final
from s3_retention.errors import PlanRefusedError
from s3_retention.s3.gateway import S3Gateway
from s3_retention.steps import simulate
from tests.factories import NO_WAIT, Timeless, holder
from tests.fakes import faulty_gateway, refusal
from tests.integration.versioned import (
    KEY,
    OTHER,
    deliver,
    ledger,
    put,
    there,
    versioned_world,
    versions_waiting,
)

if TYPE_CHECKING:
    from sandbox.moto import MotoServer
    from tests.factories import World

UTC = timezone.utc
# Far beyond the clock of the ledger, which is 40 days ahead of the store's.
UNTIL = datetime.now(UTC).replace(microsecond=0) + timedelta(days=100)
AFTER = "clock_timestamp() + interval '101 days'"


@pytest.fixture(params=["weed", "moto"])
def locking(request: pytest.FixtureRequest, world: World, moto: MotoServer) -> World:
    return versioned_world(world, moto if request.param == "moto" else None, is_locked=True)


def retain(
    world: World, key: str, version_id: str, mode: Any = "GOVERNANCE", until: datetime = UNTIL
) -> None:
    world.admin.put_object_retention(
        Bucket=world.bucket,
        Key=key,
        VersionId=version_id,
        Retention={"Mode": mode, "RetainUntilDate": until},
        BypassGovernanceRetention=True,
    )


def unlock(world: World, version_id: str) -> None:
    """Let the end of a retention have come by the store's clock, too."""
    retain(world, KEY, version_id, until=datetime.now(UTC) + timedelta(seconds=1))
    name: Any = {"Bucket": world.bucket, "Key": KEY, "VersionId": version_id}
    while world.admin.head_object(**name)["ObjectLockRetainUntilDate"] >= datetime.now(UTC):
        pass


def hold(world: World, key: str, version_id: str, status: Any = "ON") -> None:
    world.admin.put_object_legal_hold(
        Bucket=world.bucket, Key=key, VersionId=version_id, LegalHold={"Status": status}
    )


def parked(world: World) -> dict[str, dict[str, Any]]:
    """The open rows of quarantine by version."""
    rows = world.rows("SELECT * FROM s3_retention.quarantine WHERE resolved_at IS NULL")
    found = {row["version_id"]: row for row in rows}
    assert len(found) == len(rows), "a version waits twice"
    return found


def count_deletes(world: World) -> tuple[World, list[list[str]]]:
    """The same world, and the version ids of each DeleteObjects request."""
    real, seen = world.gateway.client, []

    def delete_objects(**arguments: Any) -> Any:
        seen.append([one["VersionId"] for one in arguments["Delete"]["Objects"]])
        return real.delete_objects(**arguments)

    return world.through(faulty_gateway(world.gateway, delete_objects=delete_objects)), seen


def test_a_version_under_a_retention_waits_until_it_ends_and_costs_no_other(locking: World) -> None:
    first, second, _ = put(locking, KEY, "1", "2", "3")
    retain(locking, KEY, first)
    world, _ = count_deletes(locking)
    report = world.clean()
    assert report.is_balanced
    assert ledger(locking) == {second: "deleted"}
    row = parked(locking)[first]
    assert (row["failure_class"], row["not_before"].replace(microsecond=0)) == ("locked", UNTIL)
    assert row["message"].startswith("the version is under a retention in mode GOVERNANCE until ")


def test_a_locked_version_is_tried_once_where_the_answer_names_it(locking: World) -> None:
    first, _ = put(locking, KEY, "1", "2")
    retain(locking, KEY, first)
    world, seen = count_deletes(locking)
    world.clean()
    assert seen == [[first]]
    assert parked(locking)[first]["num_attempts"] == 1


def test_before_its_time_no_plan_and_no_redrive_takes_a_locked_version(locking: World) -> None:
    first, _ = put(locking, KEY, "1", "2")
    retain(locking, KEY, first)
    locking.clean()
    assert locking.clean("run-2").num_discovered == 0
    assert locking.select().num_selected == 0
    assert versions_waiting(locking) == {first: "locked"}
    assert locking.rows("SELECT 1 FROM s3_retention.quarantine_events WHERE event <> 'quarantined'") == []


@pytest.mark.parametrize("locking", ["weed"], indirect=True)
def test_a_lock_that_is_made_longer_changes_the_time_of_a_version_and_makes_no_other_of_it(
    locking: World,
) -> None:
    first, _ = put(locking, KEY, "1", "2")
    retain(locking, KEY, first)
    locking.clean()
    before = parked(locking)[first]["last_modified_at"]
    while last_modified_at(locking, first) == before:
        retain(locking, KEY, first, until=UNTIL + timedelta(days=50))
    assert locking.clean("run-2").num_discovered == 0
    assert list(parked(locking)) == [first]


def last_modified_at(world: World, version_id: str) -> datetime:
    histories = world.gateway.list_histories(world.bucket, "exports/")
    entries = [one.facts for page in histories for history in page for one in history]
    return next(one.last_modified_at for one in entries if one.ref.version_id == version_id)


def test_the_plan_after_its_time_takes_a_version_over_and_both_intervals_balance(locking: World) -> None:
    first, second = put(locking, KEY, "1", "2")
    retain(locking, KEY, first)
    locking.clean()
    locking.set_clock(AFTER)
    unlock(locking, first)
    locking.clean("run-2")
    assert there(locking) == {(KEY, second)}
    rows = locking.rows("SELECT interval_id, outcome, reason FROM s3_retention.ledger_entries ORDER BY 1")
    assert [tuple(row.values()) for row in rows] == [(1, "kept", "planned_anew"), (2, "deleted", None)]
    assert locking.balance(1) == (1, 0, 0, 0, 1, 0, 0)
    assert locking.balance(2) == (1, 1, 0, 0, 0, 0, 0)
    assert parked(locking) == {}
    events = locking.rows("SELECT event, detail FROM s3_retention.quarantine_events ORDER BY event_id")
    anew = locking.value(
        "SELECT encode(command_id, 'hex') FROM s3_retention.ledger_entries WHERE outcome = 'deleted'"
    )
    assert [tuple(row.values()) for row in events] == [("quarantined", "locked"), ("superseded", anew)]
    assert locking.value("SELECT encode(superseded_by, 'hex') FROM s3_retention.quarantine") == anew
    # The entry names the batch that parked it.
    assert locking.value("SELECT batch_id FROM s3_retention.ledger_entries WHERE outcome = 'kept'") == 1


def test_a_run_reports_again_in_balance_when_a_later_plan_has_taken_its_row_over(locking: World) -> None:
    first, _ = put(locking, KEY, "1", "2")
    retain(locking, KEY, first)
    locking.clean()
    locking.set_clock(AFTER)
    # Once more by hand, for nothing: the row is that of a redrive now.
    assert locking.redrive().is_balanced
    locking.set_clock("clock_timestamp() + interval '300 days'")
    locking.clean("run-2")
    assert parked(locking)[first]["interval_id"] == 2
    again = locking.report("run-1", interval_id=1)
    assert (again.is_balanced, again.num_by_detail) == (True, {"kept:planned_anew": 1})
    assert locking.report_redrive().is_balanced


def test_a_version_that_is_still_locked_waits_once_in_the_newer_interval(locking: World) -> None:
    first, _ = put(locking, KEY, "1", "2")
    retain(locking, KEY, first)
    locking.clean()
    locking.set_clock(AFTER)
    later = UNTIL + timedelta(days=50)
    retain(locking, KEY, first, until=later)
    locking.clean("run-2")
    row = parked(locking)[first]
    assert (row["interval_id"], row["not_before"].replace(microsecond=0)) == (2, later)
    assert locking.balance(1)[4:] == (1, 0, 0)
    assert locking.balance(2)[4:] == (0, 1, 0)
    assert locking.clean("run-3").num_discovered == 0


def test_a_redrive_that_holds_the_row_is_not_overtaken_by_a_plan(locking: World) -> None:
    first, _ = put(locking, KEY, "1", "2")
    retain(locking, KEY, first)
    locking.clean()
    locking.set_clock(AFTER)
    (batch,) = locking.select().batches
    assert locking.planned("run-2").num_discovered == 0
    locking.delete(batch, "redrive-1", dag="s3_retention_redrive")
    locking.sweep("redrive-1", dag="s3_retention_redrive")
    row = parked(locking)[first]
    assert (row["interval_id"], row["failure_class"], row["num_redrives"]) == (1, "locked", 1)
    assert row["not_before"].replace(microsecond=0) == UNTIL


def test_a_simulation_leaves_a_row_whose_lock_has_ended_as_it_was(locking: World) -> None:
    first, _ = put(locking, KEY, "1", "2")
    retain(locking, KEY, first)
    locking.clean()
    locking.set_clock(AFTER)
    source = Timeless(locking.gateway, locking.bucket, "exports/")
    assert simulate.run(locking.conn, source, locking.policy, holder("plan"))[0].num_discovered == 1
    assert versions_waiting(locking) == {first: "locked"}
    assert locking.rows("SELECT 1 FROM s3_retention.ledger_entries") == []


def test_a_legal_hold_has_no_end_and_is_looked_at_again_after_a_day(locking: World) -> None:
    first, second = put(locking, KEY, "1", "2")
    hold(locking, KEY, first)
    locking.clean()
    row = parked(locking)[first]
    assert row["message"] == "the version is under a legal hold, which has no end"
    assert row["not_before"] - row["last_failed_at"] >= timedelta(days=1)
    locking.set_clock("clock_timestamp() + interval '41 days 1 hour'")
    locking.clean("run-2")
    assert parked(locking)[first]["interval_id"] == 2
    hold(locking, KEY, first, "OFF")
    locking.set_clock("clock_timestamp() + interval '43 days'")
    locking.clean("run-3")
    assert parked(locking) == {}
    assert there(locking) == {(KEY, second)}


def test_a_lock_that_was_put_on_after_the_plan_holds(locking: World) -> None:
    first, second = put(locking, KEY, "1", "2")
    locking.planned()
    hold(locking, KEY, first)
    deliver(locking)
    assert versions_waiting(locking) == {first: "locked"}
    assert there(locking) == {(KEY, first), (KEY, second)}


def test_all_keeps_the_latest_over_a_locked_version(locking: World) -> None:
    first, second = put(locking, KEY, "1", "2")
    hold(locking, KEY, first)
    locking.under(versions="all").clean()
    assert there(locking) == {(KEY, first), (KEY, second)}
    assert ledger(locking) == {second: "kept:over_kept_versions"}
    assert versions_waiting(locking) == {first: "locked"}


def test_governance_is_gone_past_only_where_the_policy_says_so_and_compliance_never(locking: World) -> None:
    # The worker has no right to it on this server.
    world = locking.through(S3Gateway(locking.admin, NO_WAIT))
    governed, _ = put(world, KEY, "1", "2")
    complied, _ = put(world, OTHER, "1", "2")
    retain(world, KEY, governed)
    retain(world, OTHER, complied, "COMPLIANCE", until=datetime.now(UTC) + timedelta(days=50))
    world.clean()
    assert versions_waiting(world) == dict.fromkeys((governed, complied), "locked")
    allowed = world.under(bypass_governance=True, version="v2")
    allowed.set_clock(AFTER)
    allowed.clean("run-2")
    assert versions_waiting(world) == {complied: "locked"}
    assert (KEY, governed) not in there(world)
    assert (OTHER, complied) in there(world)


@pytest.mark.parametrize("locking", ["weed"], indirect=True)
def test_a_version_that_is_denied_without_a_lock_is_a_matter_of_permission(locking: World) -> None:
    first, _ = put(locking, KEY, "1", "2")
    (facts,) = [
        one.facts
        for page in locking.gateway.list_histories(locking.bucket, "exports/")
        for history in page
        for one in history
        if one.facts.ref.version_id == first
    ]
    asked: list[str] = []

    def refuse(name: str) -> Any:
        def call(**_: Any) -> Any:
            asked.append(name)
            raise refusal("AccessDenied", 403)

        return call

    def delete_objects(**arguments: Any) -> Any:
        errors = [one | {"Code": "AccessDenied"} for one in arguments["Delete"]["Objects"]]
        return {"Errors": errors, "ResponseMetadata": {"HTTPStatusCode": 200}}

    denied = faulty_gateway(
        locking.gateway,
        delete_objects=delete_objects,
        get_object_retention=refuse("retention"),
        get_object_legal_hold=refuse("hold"),
    )
    outcomes = denied.delete_chunk([facts, facts, facts])
    assert {one.kind for one in outcomes} == {FailureClass.PERMISSION}
    # What the identity may not read is asked for once.
    assert asked == ["retention", "hold"]

    until = {"Retention": {"Mode": "COMPLIANCE", "RetainUntilDate": UNTIL}}
    told = faulty_gateway(
        locking.gateway, delete_objects=delete_objects, get_object_retention=lambda **_: until
    )
    told = replace(told, client=with_hold(told.client))
    (outcome,) = told.delete_chunk([facts])
    assert (outcome.kind, outcome.not_before) == (FailureClass.LOCKED, UNTIL)


def with_hold(client: Any) -> Any:
    return replace(client, get_object_legal_hold=lambda **_: {"LegalHold": {}})


def test_a_bypass_is_asked_for_only_where_a_version_is_named(world: World) -> None:
    world.put(KEY)
    (facts,) = [one for page in world.gateway.list_pages(world.bucket, "exports/") for one in page]
    asked = []

    def delete_objects(**arguments: Any) -> Any:
        asked.append("BypassGovernanceRetention" in arguments)
        return world.gateway.client.delete_objects(**arguments)

    gateway = faulty_gateway(world.gateway, delete_objects=delete_objects)
    (outcome,) = gateway.delete_chunk([facts], guard=Guard(bypasses_governance=True))
    assert (outcome.kind, asked) == (Final.DELETED, [False])


def test_mfa_delete_is_found_at_the_plan_and_explained(locking: World) -> None:
    put(locking, KEY, "1", "2")
    status = {"Status": "Enabled", "MFADelete": "Enabled"}
    mfa = locking.through(faulty_gateway(locking.gateway, get_bucket_versioning=lambda **_: status))
    with pytest.raises(PlanRefusedError) as refused:
        mfa.planned()
    assert str(refused.value) == (
        f"weekly_digests.yaml: versions = noncurrent: bucket {locking.bucket} has MFA delete: each delete that names a "
        "version takes a code from the device of the bucket's owner, which no schedule can give; write versions: "
        "current, or have the owner switch MFA delete off; nothing was planned"
    )
    # A marker takes no code.
    current = mfa.under(versions="current", version="v2")
    current.clean()
    assert current.keys() == set()
