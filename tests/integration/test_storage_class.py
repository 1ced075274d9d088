"""A policy for some storage classes takes objects of these, in a plan, a redrive and a verdict from a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from s3_retention.core.objects import ObjectRef
from s3_retention.shell.verdicts import list_verdicts
from tests.fakes import faulty_gateway

if TYPE_CHECKING:
    from typing import Any

    from mypy_boto3_s3.literals import StorageClassType

    from tests.factories import World

COLD, WARM, UNSAID = (f"exports/2020-01/{name}.json" for name in ("cold", "warm", "unsaid"))
CLASSES: dict[str, StorageClassType] = {COLD: "GLACIER_IR", WARM: "STANDARD_IA"}


@pytest.fixture
def stored(world: World) -> World:
    """Three objects that are due: two of other classes, and one of which the store tells none."""
    for key, storage_class in CLASSES.items():
        world.admin.put_object(Bucket=world.bucket, Key=key, Body=b"x", StorageClass=storage_class)
    world.put(UNSAID)
    return world


def of_classes(world: World, *classes: str) -> World:
    select = world.policy.select.model_dump(exclude_none=True, exclude={"include", "exclude"})
    return world.under(select=select | {"storage_class": classes})


def parked(world: World, *classes: str) -> World:
    """The same world, in which nothing of these classes could be deleted."""
    world = of_classes(world, *classes)
    keys = [COLD, WARM, UNSAID]
    world.s3.deny(world.bucket, keys)
    world.clean()
    world.s3.allow(world.bucket, keys)
    return world


@pytest.mark.parametrize(
    ("classes", "left"),
    [
        (("GLACIER_IR",), {WARM, UNSAID}),
        (("STANDARD",), {COLD, WARM}),
        (("STANDARD_IA", "STANDARD"), {COLD}),
        (("DEEP_ARCHIVE",), {COLD, WARM, UNSAID}),
    ],
)
def test_a_cleanup_takes_the_classes_that_are_named(
    stored: World, classes: tuple[str, ...], left: set[str]
) -> None:
    stored = of_classes(stored, *classes)
    planned = stored.planned()
    assert planned.num_kept_by_reason == {"other_storage_class": len(left)}
    for batch in planned.batches:
        stored.delete(batch)
    assert stored.keys() == left


@pytest.mark.parametrize(("storage_class", "key"), [("GLACIER_IR", COLD), ("STANDARD", UNSAID)])
def test_a_redrive_knows_the_class_that_the_ledger_does_not_tell(
    stored: World, storage_class: str, key: str
) -> None:
    world = parked(stored, storage_class)
    assert world.waiting() == {key: "permission"}
    assert world.redrive().num_by_outcome == {"deleted": 1}
    assert world.keys() == {COLD, WARM, UNSAID} - {key}


def test_what_has_moved_to_another_class_is_kept_by_its_redrive(stored: World) -> None:
    world = parked(stored, "STANDARD")
    real = world.gateway.client.head_object
    # As a lifecycle rule moves an object: its ETag and its time stay.
    moved = faulty_gateway(world.gateway, head_object=lambda **a: real(**a) | {"StorageClass": "GLACIER"})
    report = world.through(moved).redrive()
    assert (report.num_by_outcome, report.num_by_detail) == ({"kept": 1}, {"kept:other_storage_class": 1})
    assert world.keys() == {COLD, WARM, UNSAID}


def test_a_redrive_on_a_store_whose_looks_tell_no_class_keeps_rather_than_guesses(stored: World) -> None:
    world = parked(stored, "GLACIER_IR")
    real = world.gateway.client.head_object

    def silent(**arguments: Any) -> Any:
        return {name: value for name, value in real(**arguments).items() if name != "StorageClass"}

    report = world.through(faulty_gateway(world.gateway, head_object=silent)).redrive()
    assert report.num_by_detail == {"kept:other_storage_class": 1}
    # The listing tells it, and the next interval takes it.
    assert world.clean("run-2").num_by_outcome == {"deleted": 1}
    assert world.keys() == {WARM, UNSAID}


def test_a_verdict_from_a_shell_is_by_the_class_that_the_store_tells(stored: World) -> None:
    world = of_classes(stored, "GLACIER_IR")
    said = {}
    for key in (COLD, WARM, UNSAID):
        (row,) = list_verdicts(world.conn, world.gateway, [world.policy], ObjectRef(world.bucket, key))
        said[key] = row["detail"]
    assert said[COLD].startswith("expire: due since 2020-03-02")
    assert said[WARM] == said[UNSAID] == "keep: other_storage_class"
