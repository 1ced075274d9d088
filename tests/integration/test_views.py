"""What an auditor reads by SQL alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.core.lever import LiftHold, PlaceHold, ResumeDeletes, Scope, StopDeletes
from s3_retention.core.redrive import Selection
from s3_retention.core.restore import RestoreForm
from s3_retention.steps import hold, redrive, restore
from tests.factories import REDRIVE
from tests.integration.versioned import set_versioning

if TYPE_CHECKING:
    from s3_retention.core.lever import Lever
    from tests.factories import World

A, B = "exports/2020-01/a.json", "exports/2020-01/b.json"


def acts(world: World) -> list[tuple[Any, ...]]:
    rows = world.rows(
        "SELECT act, subject, acted_by, reason, num_objects FROM s3_retention.acts ORDER BY acted_at, act"
    )
    return [tuple(row.values()) for row in rows]


def test_a_deleted_object_is_shown_with_its_policy_its_run_and_how_late_it_was(world: World) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [B])
    world.clean()
    (row,) = world.rows("SELECT * FROM s3_retention.deleted_objects")
    assert (row["bucket"], row["key"], row["policy"]) == (world.bucket, A, world.policy.name)
    assert (row["policy_version"], row["run_id"]) == (world.policy.version, "run-1")
    assert row["late_by"] == row["deleted_at"] - row["due_at"]
    assert (row["marker_version_id"], row["restored_at"]) == (None, None)


def test_an_object_that_came_back_is_shown_as_deleted_and_restored_by_whom(world: World) -> None:
    set_versioning(world, "Enabled")
    world.put(A)
    world.clean()
    form = RestoreForm(bucket=world.bucket, is_dry_run=False, note="was too much")
    restore.run(world.conn, world.gateway, form, Holder("d", "restore-1", "restore"), acted_by="ann")
    (row,) = world.rows(
        "SELECT restored_by, restored_at, marker_version_id FROM s3_retention.deleted_objects"
    )
    assert (row["restored_by"], row["restored_at"] is None, row["marker_version_id"] is None) == (
        "ann",
        False,
        False,
    )
    assert acts(world) == [("restored objects", f"s3://{world.bucket}", "ann", "was too much", 1)]


def test_every_hand_on_a_lever_is_one_act_with_who_and_why(world: World) -> None:
    pulled: tuple[Lever, ...] = (
        PlaceHold(world.bucket, Scope.PREFIX, "held/", "a court order", None),
        LiftHold(1, "the case is closed"),
        StopDeletes(None, "something is wrong"),
        ResumeDeletes(None, "it was nothing"),
    )
    for number, lever in enumerate(pulled):
        hold.run(
            world.conn, lever, Holder("s3_retention_hold", f"act-{number}", "pull_lever"), acted_by="ann"
        )
    where = f"prefix s3://{world.bucket}/held/"
    assert acts(world) == [
        ("placed a hold", where, "ann", "a court order", None),
        ("lifted a hold", where, "ann", "the case is closed", None),
        ("stopped deletes", "every policy", "ann", "something is wrong", None),
        ("resumed deletes", "every policy", "ann", "it was nothing", None),
    ]


def test_a_waiver_is_one_act_however_many_commands_it_closed(world: World) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [A, B])
    world.clean()
    redrive.waive(
        world.conn, Selection(), Holder(REDRIVE, "waive-1", "select"), acted_by="ann", note="kept for good"
    )
    assert acts(world) == [("waived commands", world.policy.name, "ann", "kept for good", 2)]


@pytest.mark.parametrize("view", ["acts", "command_outcomes", "deleted_objects", "balance", "active_holds"])
def test_every_view_says_what_it_is(world: World, view: str) -> None:
    assert world.value("SELECT obj_description(%(view)s::regclass)", view=f"s3_retention.{view}")
