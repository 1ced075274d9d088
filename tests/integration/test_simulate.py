"""A simulation decides as an enforced run does, writes nothing that acts, and says what would go and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.core.lever import PlaceHold, Scope
from s3_retention.steps import hold, simulate
from tests.factories import CLEANUP, KEEP_LATEST, ODD_KEYS, Timeless

if TYPE_CHECKING:
    from mypy_boto3_s3.literals import StorageClassType

    from s3_retention.core.simulation import Simulation
    from tests.factories import World

TABLES = (
    "intervals", "watermarks", "batches", "chunks", "claims", "keepers", "ledger_entries", "quarantine",
    "quarantine_events", "failures", "policy_versions", "run_reports", "approvals", "store_probes", "request_rates",
)  # fmt: skip


def simulated(world: World, run: str = "sim-1") -> Simulation:
    source = Timeless(world.gateway, world.bucket, "exports/")
    return simulate.run(world.conn, source, world.policy, Holder(CLEANUP, run, "plan_commands"))[1]


def written(world: World) -> dict[str, list[dict[str, Any]]]:
    return {table: world.rows(f"SELECT * FROM s3_retention.{table}") for table in TABLES}  # noqa: S608


def reasons(simulation: Simulation) -> dict[str, int]:
    return {one.reason: one.num_objects for one in simulation.reasons}


def test_a_simulation_writes_nothing_but_itself(world: World) -> None:
    world.put("exports/2020-01/a.json", "exports/2020-02/a.json", "exports/2020-01/x.txt")
    before = (written(world), world.keys())
    simulated(world)
    assert (written(world), world.keys()) == before
    assert world.value("SELECT count(*) FROM s3_retention.simulations") == 1


def test_a_simulation_and_the_enforced_run_after_it_agree_object_for_object(world: World) -> None:
    world = world.under(keep=KEEP_LATEST)
    world.put(*ODD_KEYS, *(f"exports/2020-0{month}/a.json" for month in (1, 2, 3)))
    shown = simulated(world)
    planned = world.planned()
    interval_id = world.interval_id()
    assert world.value("SELECT s3_retention.plan_hash(%(id)s, 0)", id=interval_id) == shown.plan_hash
    assert (planned.num_scanned, planned.num_discovered, planned.num_bytes) == (
        shown.num_scanned,
        shown.num_due,
        shown.num_bytes,
    )
    keys = {row["key"] for row in world.rows("SELECT key FROM s3_retention.commands")}
    assert set(shown.sample) <= keys
    assert reasons(shown) == {"due": planned.num_discovered} | planned.num_kept_by_reason


@pytest.mark.parametrize("num_objects", [1, 2, 5])
def test_the_canary_of_a_new_version_is_in_the_plan_of_a_simulation_too(
    world: World, num_objects: int
) -> None:
    world = world.under(limits={"canary": 2, "allow_expire_everything": True})
    world.put(*(f"exports/2020-01/{number}.json" for number in range(num_objects)))
    shown = simulated(world)
    world.planned()
    plan_hash = "SELECT s3_retention.plan_hash(%(id)s, 0)"
    assert world.value(plan_hash, id=world.interval_id()) == shown.plan_hash


def test_another_object_makes_another_plan(world: World) -> None:
    world.put("exports/2020-01/a.json")
    first = simulated(world).plan_hash
    assert simulated(world, "sim-2").plan_hash == first
    world.put("exports/2020-01/b.json")
    assert simulated(world, "sim-3").plan_hash != first


def test_it_says_what_goes_and_what_stays_with_reasons_bytes_and_places(world: World) -> None:
    world = world.under(keep=KEEP_LATEST, limits={"max_objects": 1})
    world.put("exports/2020-01/a.json", "exports/2020-02/a.json", body=b"12345")
    world.put("exports/2020-03/a.json", "exports/2020-01/only.json", "exports/2020-01/held.json")
    world.put("exports/2020-02/held.json", "exports/2020-01/x.txt")
    lever = PlaceHold(world.bucket, Scope.KEY, "exports/2020-01/held.json", "a court order", None)
    hold.run(world.conn, lever, Holder("s3_retention_hold", "act-1", "pull_lever"), acted_by="ann")
    shown = simulated(world)
    assert reasons(shown) == {"due": 2, "kept_latest": 3, "held": 1, "not_selected": 1}
    assert (shown.num_scanned, shown.num_due, shown.num_bytes, shown.num_lonely_groups) == (7, 2, 10, 1)
    assert [(one.prefix, one.num_objects, one.num_bytes) for one in shown.prefixes] == [
        ("exports/2020-01/", 1, 5),
        ("exports/2020-02/", 1, 5),
    ]
    said = str(shown)
    for words in (
        "of 7 objects, 2 (10 bytes) would be deleted now; nothing was",
        "would go: 'exports/2020-01/a.json'",
        "1 groups of the keep rule hold one object each",
        "an enforced run would wait for approval: 2 objects, over limits.max_objects = 1",
        shown.plan_hash.hex(),
    ):
        assert words in said
    (row,) = world.rows("SELECT num_due, run_id, detail FROM s3_retention.simulations")
    assert (row["num_due"], row["run_id"], row["detail"]) == (2, "sim-1", shown.detail())


def test_what_a_storage_class_bills_all_the_same_is_told_before_anything_goes(world: World) -> None:
    big = b"x" * (1 << 20)
    stored: tuple[tuple[str, StorageClassType], ...] = (
        ("a", "STANDARD_IA"),
        ("b", "DEEP_ARCHIVE"),
        ("c", "INTELLIGENT_TIERING"),
    )
    for name, storage_class in stored:
        world.admin.put_object(
            Bucket=world.bucket, Key=f"exports/2020-01/{name}.json", Body=big, StorageClass=storage_class
        )
    # Of these classes, an object of one byte is billed as one of 128 KiB.
    world.admin.put_object(
        Bucket=world.bucket, Key="exports/2020-01/d.json", Body=b"x", StorageClass="STANDARD_IA"
    )
    world.put("exports/2020-01/e.json")
    world.set_clock("clock_timestamp() + interval '29 days'")
    shown = simulated(world)
    found = {one.storage_class: one for one in shown.storage_classes}
    counted = {name: (one.num_objects, one.num_bytes, one.num_early) for name, one in found.items()}
    assert counted == {
        "STANDARD_IA": (2, (1 << 20) + 1, 2),
        "DEEP_ARCHIVE": (1, 1 << 20, 1),
        "INTELLIGENT_TIERING": (1, 1 << 20, 0),
        "STANDARD": (1, 1, 0),
    }
    byte_days = {name: one.num_byte_days for name, one in found.items()}
    assert byte_days["STANDARD_IA"] == pytest.approx((1 << 20) + (1 << 17), rel=0.01)
    assert byte_days["DEEP_ARCHIVE"] == pytest.approx(151 * (1 << 20), rel=0.01)
    assert (byte_days["STANDARD"], byte_days["INTELLIGENT_TIERING"]) == (0, 0)
    (line,) = [one for one in str(shown).splitlines() if "DEEP_ARCHIVE" in one]
    assert line.endswith("1 sooner than billed: 0.15 GiB-days are paid all the same")


def test_what_has_lived_as_long_as_its_class_bills_costs_nothing_more(world: World) -> None:
    world.admin.put_object(
        Bucket=world.bucket, Key="exports/2020-01/a.json", Body=b"x", StorageClass="STANDARD_IA"
    )
    world.set_clock("clock_timestamp() + interval '31 days'")
    (only,) = simulated(world).storage_classes
    assert (only.storage_class, only.num_early, only.num_byte_days) == ("STANDARD_IA", 0, 0)


def test_an_empty_bucket_has_an_empty_plan(world: World) -> None:
    shown = simulated(world)
    assert (shown.num_scanned, shown.num_due, list(shown.reasons), list(shown.prefixes)) == (0, 0, [], [])
