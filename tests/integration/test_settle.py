"""Chunks loaded under a fence and settled by their places: what is appended, what is not, and what is closed."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.core.interval import BEGINNING
from s3_retention.core.outcome import FailureClass, Final, Outcome, kept
from s3_retention.errors import ClaimLostError, LedgerDuplicateError
from s3_retention.steps.feed import Feed
from s3_retention.store import batches, chunks, failures, ledger_entries, quarantine
from s3_retention.store.connection import transaction
from s3_retention.store.kill_switches import NOTHING_SET
from s3_retention.store.queries import query
from s3_retention.store.request_rates import PacedStore
from tests.factories import OLD, REDRIVE, World, facts, holder, source_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.store.batches import ClaimedBatch

LEASE = timedelta(minutes=10)
DELETED = Outcome(Final.DELETED, request_id="R")
SETTLED = """
SELECT key, outcome, reason, num_attempts, request_id, marker_version_id, version_id, etag, size, last_modified_at,
    due_at, encode(command_id, 'hex') AS command, encode(operation_id, 'hex') AS operation, batch_id, fence
FROM s3_retention.ledger_entries ORDER BY key COLLATE "C"
"""


def key(number: int) -> str:
    return f"exports/2020-01/{number:02d}.json"


@dataclass
class Desk:
    """A worker of one batch, at the ledger alone."""

    world: World
    batch: ClaimedBatch
    chunk_ids: list[int]

    def load(self, chunk: int = 0, *, fence: int | None = None) -> list[DeleteCommand]:
        fence = self.batch.fence if fence is None else fence
        return chunks.list_unfinished(self.world.conn, chunk_id=self.chunk_ids[chunk], fence=fence)

    def settle(self, settled: Any, *, chunk_id: int | None = None, **more: Any) -> int:
        with transaction(self.world.conn):
            return ledger_entries.settle(
                self.world.conn,
                self.batch,
                settled,
                chunk_id=chunk_id or self.chunk_ids[0],
                lease=LEASE,
                **more,
            )

    def settled(self) -> dict[str, dict[str, Any]]:
        rows = self.world.rows(SETTLED)
        found = {row["key"]: row for row in rows}
        assert len(found) == len(rows), "a key has two entries"
        return found

    def open_chunks(self) -> list[int]:
        return list(chunks.list_open(self.world.conn, batch_id=self.batch.batch_id))


def claim(world: World, batch_id: int, *, map_index: int = 0, try_number: int = 1) -> Desk:
    with transaction(world.conn):
        who = holder(map_index=map_index, try_number=try_number)
        batch = batches.claim(world.conn, batch_id, holder=who, lease=LEASE)
    assert batch is not None
    rows = world.rows(
        "SELECT chunk_id FROM s3_retention.chunks WHERE batch_id = %(id)s ORDER BY chunk_number", id=batch_id
    )
    return Desk(world, batch, [row["chunk_id"] for row in rows])


def planned_desks(world: World, num: int, *, cut: int = 5, batch_size: int = 5000) -> list[Desk]:
    """A plan of so many objects that no store has; its batches, each claimed."""
    world = world.under(batch={"size": batch_size})
    world.claim()
    objects = [
        facts(key(n), bucket=world.bucket, etag=f'"e{n}"' if n % 3 else None, size=n) for n in range(num)
    ]
    dealt = world.plan(source=source_of(*objects)).batches
    world.cut_chunks(cut)
    return [claim(world, one.batch_id, map_index=one.map_index) for one in dealt]


@pytest.fixture
def desk(world: World) -> Desk:
    """10 commands in two chunks of 5, under the first fence."""
    (desk,) = planned_desks(world, 10)
    return desk


def each(commands: Sequence[DeleteCommand], outcome: Outcome = DELETED, num_attempts: int = 1) -> Any:
    return [(command, outcome, num_attempts) for command in commands]


# Loading --------------------------------------------------------------------------------------------------
def test_the_first_fence_loads_what_the_anti_join_loads(desk: Desk) -> None:
    first = [desk.load(chunk) for chunk in (0, 1)]
    assert [[command.place for command in one] for one in first] == [[1, 2, 3, 4, 5]] * 2
    assert [command.ref.key for one in first for command in one] == [key(n) for n in range(10)]
    assert first == [desk.load(chunk, fence=2) for chunk in (0, 1)]


def test_under_a_later_fence_what_is_settled_or_in_quarantine_is_not_loaded(desk: Desk) -> None:
    commands = desk.load()
    desk.settle(each(commands[1:3]))
    again = claim(desk.world, desk.batch.batch_id, try_number=2)
    assert again.batch.fence == 2
    assert [(command.place, command.ref.key) for command in again.load()] == [
        (1, key(0)),
        (4, key(3)),
        (5, key(4)),
    ]
    again.settle(each(again.load()), is_whole=True)
    assert again.load() == []
    desk.world.sweep()
    assert again.load(1) == []
    assert set(desk.world.waiting()) == {key(n) for n in range(5, 10)}


def test_a_worker_that_was_swept_under_its_first_fence_loads_nothing_more(desk: Desk) -> None:
    assert desk.batch.fence == 1
    desk.world.sweep()
    assert [desk.load(chunk) for chunk in (0, 1)] == [[], []]


def test_a_worker_whose_batch_has_a_newer_try_loads_nothing_that_is_settled(desk: Desk) -> None:
    newer = claim(desk.world, desk.batch.batch_id, try_number=2)
    newer.settle(each(newer.load()), is_whole=True)
    assert desk.load() == []
    assert len(desk.load(1)) == 5


def test_a_worker_that_stood_still_until_it_was_swept_deletes_nothing_that_waits_in_quarantine(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [key(n) for n in range(4)]
    world.put(*keys)
    (batch,) = world.planned().batches
    world.cut_chunks(2)
    load = chunks.list_unfinished
    loaded: list[int] = []

    def stand_still(*arguments: Any, **more: Any) -> Any:
        loaded.append(more["chunk_id"])
        if len(loaded) == 2:
            world.sweep()
        return load(*arguments, **more)

    monkeypatch.setattr(chunks, "list_unfinished", stand_still)
    with pytest.raises(ClaimLostError):
        world.delete(batch)
    assert set(world.waiting()) == set(keys)
    assert world.keys() == set(keys[2:])


def test_earlier_failures_are_counted_at_the_places_of_their_commands(desk: Desk) -> None:
    commands = desk.load()
    failed = [
        (commands[place], Outcome(FailureClass.PERMISSION), attempts) for place, attempts in ((3, 2), (0, 7))
    ]
    with transaction(desk.world.conn):
        failures.record(desk.world.conn, desk.batch.batch_id, failed)
    assert [command.num_attempts for command in desk.load(fence=2)] == [7, 0, 0, 2, 0]
    desk.settle(each(commands[:1]))
    assert [(one.place, one.num_attempts) for one in desk.load(fence=2)] == [(2, 0), (3, 0), (4, 2), (5, 0)]


# Settling -------------------------------------------------------------------------------------------------
def test_several_answers_in_one_chunk_each_end_at_their_own_place_in_whatever_order_they_come(
    desk: Desk,
) -> None:
    commands = desk.load()
    outcomes = [
        (Outcome(Final.DELETED, request_id="R1", marker_version_id="m0"), 1),
        (kept("not_due"), 0),
        (Outcome(Final.ALREADY_ABSENT), 3),
        (Outcome(Final.DELETED, request_id="R2", marker_version_id=None), 1),
        (Outcome(Final.DELETED, request_id="R1", marker_version_id="m4"), 1),
    ]
    settled = [(command, *answer) for command, answer in zip(commands, outcomes, strict=True)]
    assert desk.settle([settled[place] for place in (3, 0, 4, 2, 1)], is_whole=True) == 5
    found = desk.settled()
    assert [
        tuple(found[key(n)][name] for name in ("outcome", "reason", "num_attempts", "request_id", "marker_version_id"))
        for n in range(5)
    ] == [
        ("deleted", None, 1, "R1", "m0"),
        ("kept", "not_due", 0, None, None),
        ("already_absent", None, 3, None, None),
        ("deleted", None, 1, "R2", None),
        ("deleted", None, 1, "R1", "m4"),
    ]  # fmt: skip
    for command in commands:
        row, planned = found[command.ref.key], command.facts
        assert (row["etag"], row["size"], row["last_modified_at"]) == (
            planned.etag,
            planned.size,
            planned.last_modified_at,
        )
        assert (row["command"], row["operation"]) == (command.command_id.hex(), command.operation_id.hex())
        assert (row["due_at"], row["batch_id"], row["fence"]) == (command.due_at, desk.batch.batch_id, 1)


@pytest.mark.parametrize("places", [[4], [0], [2, 4], [1, 0]])
def test_only_the_places_that_are_named_are_settled(desk: Desk, places: list[int]) -> None:
    commands = desk.load()
    marked = [
        (commands[place], Outcome(Final.DELETED, marker_version_id=f"m{place}" if place == 4 else None), 1)
        for place in places
    ]
    assert desk.settle(marked) == len(places)
    found = desk.settled()
    assert found.keys() == {key(place) for place in places}
    assert {row["marker_version_id"] for name, row in found.items() if name == key(4)} <= {"m4"}
    assert {row["marker_version_id"] for name, row in found.items() if name != key(4)} <= {None}
    assert len(desk.open_chunks()) == 2


def test_a_second_delivery_appends_nothing_and_changes_nothing(desk: Desk) -> None:
    commands = desk.load()
    desk.settle(each(commands[:3]))
    before = desk.settled()
    again = claim(desk.world, desk.batch.batch_id, try_number=2)
    assert again.settle(each(commands[:3], Outcome(Final.ALREADY_ABSENT), 9)) == 0
    assert again.settled() == before
    # Part of it is new.
    assert again.settle(each(commands, Outcome(Final.ALREADY_ABSENT), 9), is_whole=True) == 2
    found = again.settled()
    assert {name: found[name] for name in before} == before
    assert [found[key(n)]["outcome"] for n in (3, 4)] == ["already_absent"] * 2


def test_what_is_there_already_under_the_first_fence_refuses_a_settle_unless_it_is_said(desk: Desk) -> None:
    commands = desk.load()
    desk.settle(each(commands[:1]))
    before = desk.settled()
    with pytest.raises(LedgerDuplicateError):
        desk.settle(each(commands, Outcome(Final.ALREADY_ABSENT)), is_whole=True)
    assert (desk.settled(), len(desk.open_chunks())) == (before, 2)
    assert desk.settle(each(commands, Outcome(Final.ALREADY_ABSENT)), is_whole=True, may_be_there=True) == 4
    assert desk.settled()[key(0)] == before[key(0)]
    assert len(desk.open_chunks()) == 1


def test_a_first_delivery_of_which_an_entry_is_there_already_loses_nothing_of_the_rest(
    world: World,
) -> None:
    keys = [key(number) for number in range(4)]
    world.put(*keys)
    (batch,) = world.planned().batches
    world.root.execute(
        "INSERT INTO s3_retention.ledger_entries (interval_id, generation, command_id, operation_id, batch_id, fence,"
        " bucket, key, etag, size, last_modified_at, due_at, outcome, reason, num_attempts)"
        " SELECT interval_id, generation, command_id, operation_id, 0, 1, bucket, key, etag, size, last_modified_at,"
        " due_at, 'kept', 'held', 0 FROM s3_retention.commands WHERE key = %s",
        [keys[0]],
    )
    assert world.delete(batch).num_by_outcome == {"deleted": 4}
    assert world.value("SELECT fence FROM s3_retention.batches") == 1
    assert world.outcomes() == {name: "kept:held" if name == keys[0] else "deleted" for name in keys}
    assert world.value("SELECT count(*) FROM s3_retention.chunks WHERE closed_at IS NULL") == 0


def test_a_later_fence_looks_for_entries_by_their_key_and_not_in_all_of_the_ledger(desk: Desk) -> None:
    again = claim(desk.world, desk.batch.batch_id, try_number=2)
    params = {
        "batch_id": again.batch.batch_id,
        "fence": 2,
        "lease": LEASE,
        "chunk_id": again.chunk_ids[0],
        "is_whole": True,
        "may_be_there": True,
        "ids": bytes(64),
        "answers": "{1}",
        "outcomes": ["deleted"],
        "reasons": [None],
        "attempts": [1],
        "request_ids": ["R"],
        "marker_version_ids": [],
    }
    plan = desk.world.conn.execute("EXPLAIN " + query("ledger_entries", "settle_outcomes"), params).fetchall()
    text = "\n".join(line for row in plan for line in row.values())
    assert "SubPlan" in text
    assert "hashed" not in text


def test_a_delivery_is_of_the_time_of_the_last_look_even_where_that_is_earlier(desk: Desk) -> None:
    feed = Feed(desk.world.conn, desk.batch, PacedStore("http://s", "b", ""), None, time.monotonic)
    first = feed.load()
    assert first is not None
    # By no time that is known nothing is due.
    assert first.now == BEGINNING
    assert feed.take() is first
    for at in (OLD + timedelta(hours=1), OLD):
        feed.heed(replace(NOTHING_SET, read_at=at))
    second = feed.load()
    assert second is not None
    assert second.now == OLD


def test_a_settle_of_nothing_renews_the_lease_and_appends_nothing(desk: Desk) -> None:
    desk.world.root.execute(
        "UPDATE s3_retention.batches SET claimed_until = s3_retention.clock() - interval '1 day'"
    )
    assert desk.settle([]) == 0
    assert desk.settled() == {}
    assert desk.world.value("SELECT claimed_until > s3_retention.clock() FROM s3_retention.batches")
    assert len(desk.open_chunks()) == 2


def test_a_chunk_of_another_batch_gets_no_entry_and_is_not_closed(world: World) -> None:
    mine, other = planned_desks(world, 10, batch_size=5)
    commands = mine.load()
    assert mine.settle(each(commands), chunk_id=other.chunk_ids[0], is_whole=True) == 0
    assert mine.settled() == {}
    assert (mine.open_chunks(), other.open_chunks()) == (mine.chunk_ids, other.chunk_ids)


def test_a_chunk_is_closed_when_it_is_whole_and_only_then_and_no_other_with_it(desk: Desk) -> None:
    commands = desk.load()
    desk.settle(each(commands[:2]))
    assert desk.open_chunks() == desk.chunk_ids
    desk.settle(each(commands[2:]), is_whole=True)
    assert desk.open_chunks() == desk.chunk_ids[1:]
    closed_at = desk.world.value("SELECT closed_at FROM s3_retention.chunks WHERE closed_at IS NOT NULL")
    claim(desk.world, desk.batch.batch_id, try_number=2).settle(each(commands), is_whole=True)
    assert (
        desk.world.value("SELECT closed_at FROM s3_retention.chunks WHERE closed_at IS NOT NULL") == closed_at
    )


@pytest.mark.parametrize("how", ["newer try", "swept", "closed", "wrong fence"])
def test_a_worker_without_the_claim_appends_nothing_and_closes_nothing(desk: Desk, how: str) -> None:
    commands = [desk.load(chunk) for chunk in (0, 1)]
    if how == "newer try":
        claim(desk.world, desk.batch.batch_id, try_number=2)
    elif how == "swept":
        desk.world.sweep()
    elif how == "closed":
        for chunk in (0, 1):
            desk.settle(each(commands[chunk]), chunk_id=desk.chunk_ids[chunk], is_whole=True)
        with transaction(desk.world.conn):
            assert batches.close(desk.world.conn, desk.batch.batch_id, fence=1)
    else:
        desk.batch = replace(desk.batch, fence=7)
    before, were_open = desk.settled(), desk.open_chunks()
    with pytest.raises(ClaimLostError):
        desk.settle(each(commands[0], Outcome(Final.CHANGED)), is_whole=True)
    assert (desk.settled(), desk.open_chunks()) == (before, were_open)


# A redrive ------------------------------------------------------------------------------------------------
@pytest.fixture
def redrives(world: World) -> list[Desk]:
    """4 rows in quarantine, in two redrives of two rows each."""
    planned_desks(world, 4)
    world.sweep()
    desks = []
    for run in ("redrive-1", "redrive-2"):
        (dealt,) = world.select(run, max_commands=2).batches
        with transaction(world.conn):
            who = Holder(REDRIVE, run, "delete", 0, 1)
            batch = batches.claim(world.conn, dealt.batch_id, holder=who, lease=LEASE)
        assert batch is not None
        desks.append(Desk(world, batch, []))
    return desks


def rows_of(desk: Desk) -> list[DeleteCommand]:
    return quarantine.list_redriven(desk.world.conn, batch_id=desk.batch.batch_id, after_id=0)


def settle_rows(desk: Desk, settled: Any) -> int:
    with transaction(desk.world.conn):
        return ledger_entries.settle(desk.world.conn, desk.batch, settled, chunk_id=None, lease=LEASE)


def test_rows_of_a_redrive_are_settled_under_their_own_intervals_in_whatever_order(
    redrives: list[Desk],
) -> None:
    mine, _ = redrives
    first, second = rows_of(mine)
    settled = [(second, kept("not_due"), 4), (first, Outcome(Final.DELETED, marker_version_id="m"), 2)]
    assert settle_rows(mine, settled) == 2
    found = mine.settled()
    columns = ("outcome", "reason", "num_attempts", "marker_version_id", "batch_id", "command")
    batch_id = mine.batch.batch_id
    assert [tuple(found[one.ref.key][name] for name in columns) for one in (first, second)] == [
        ("deleted", None, 2, "m", batch_id, first.command_id.hex()),
        ("kept", "not_due", 4, None, batch_id, second.command_id.hex()),
    ]
    assert settle_rows(mine, each([first, second], Outcome(Final.CHANGED))) == 0
    assert mine.settled() == found


def test_rows_of_another_redrive_get_no_entry(redrives: list[Desk]) -> None:
    mine, other = redrives
    assert settle_rows(mine, each(rows_of(other))) == 0
    assert settle_rows(mine, each([*rows_of(other), *rows_of(mine)])) == 2
    assert set(mine.settled()) == {one.ref.key for one in rows_of(mine)}


def test_rows_that_are_resolved_get_no_other_entry(redrives: list[Desk]) -> None:
    mine, _ = redrives
    rows = rows_of(mine)
    mine.world.root.execute(
        "UPDATE s3_retention.quarantine SET resolution = 'kept', resolved_at = s3_retention.clock() "
        "WHERE quarantine_id = %s",
        [rows[0].quarantine_id],
    )
    assert settle_rows(mine, each(rows)) == 1
    assert set(mine.settled()) == {rows[1].ref.key}


def test_rows_that_went_back_to_wait_get_no_entry_by_the_redrive_that_lost_them(redrives: list[Desk]) -> None:
    mine, _ = redrives
    rows = rows_of(mine)
    mine.world.sweep("redrive-1", dag=REDRIVE)
    with pytest.raises(ClaimLostError):
        settle_rows(mine, each(rows))
    assert mine.settled() == {}
    assert len(mine.world.waiting()) == 4
