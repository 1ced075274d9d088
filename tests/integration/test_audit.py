"""Rows and objects held against each other, on a real table and a real store: each difference, and none else."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.audit import MAX_KEPT, Audit, Kind, State
from s3_retention.core.holder import Holder
from s3_retention.core.lever import PlaceHold, Scope
from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.core.orphans import OrphanRow
from s3_retention.core.outcome import FailureClass, Outcome
from s3_retention.errors import AuditRefusedError, ListingError, RowsError, RowsUnavailableError
from s3_retention.steps import audit, hold
from tests.app_database import AppDatabase, orphans_of
from tests.factories import BY_LAST_MODIFIED, KEEP_LATEST, ODD_KEYS, Pages, Timeless, facts, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.postgres import Postgres
    from tests.factories import World

UTC = timezone.utc
_numbers = itertools.count(1)
AUDIT = "s3_retention_audit"
RULES: dict[str, Any] = {
    "select": {"regex": r"(?s)sfs/.+", "exclude": ["sfs/tmp/**"]},
    "age": {"from": "detached_at", "retain": "7d"},
    "limits": {"allow_expire_everything": True},
}
LATER = "clock_timestamp() + interval '1 hour'"


@pytest.fixture
def app(postgres_server: Postgres) -> Iterator[AppDatabase]:
    made = AppDatabase.create(postgres_server, f"audited_{next(_numbers)}")
    yield made
    made.drop()


def under(world: World, app: AppDatabase, **changes: Any) -> World:
    """The world under a policy of the application's rows, an hour after all that was put into it."""
    world.set_clock(LATER)
    rows = world.under(**RULES, source=orphans_of(world.bucket, **changes))
    return replace(rows, orphans=app.rows(rows.policy))


def sides_of(world: World) -> audit.Sides:
    listing = Timeless(world.gateway, world.bucket, world.policy.source.prefix)
    return audit.Sides(listing, world.gateway, world.orphans, world.orphans)


def audited(world: World, sides: audit.Sides | None = None, **given: Any) -> Audit:
    who = Holder(AUDIT, "audit-1", "audit_policy")
    return audit.run(world.conn, sides or sides_of(world), world.policy, who, **given)


def keys(found: Audit, kind: Kind) -> list[str | None]:
    return [one.key for one in found.findings if one.kind is kind]


def numbers(found: Audit) -> dict[str, int]:
    return {kind.value: one.num_found for kind, one in found.counts.items() if one.num_found}


def written(world: World) -> int:
    return int(world.value("SELECT count(*) FROM s3_retention.audits"))


# Rows and objects -----------------------------------------------------------------------------------------
def test_planted_differences_are_found_exactly_among_thousands(world: World, app: AppDatabase) -> None:
    both = [f"sfs/{number:04}" for number in range(2900)]
    alone = [f"sfs/alone/{number}" for number in range(100)]
    missing = [f"sfs/missing/{number}" for number in range(90)]
    world.put(*both, *alone, "sfs/tmp/spared", "elsewhere/a")
    app.add(*both[:1500], *missing[:50], age=None)
    app.add(*both[1500:1600])
    app.add(*both[1600:], *missing[50:], age=timedelta(days=1))
    world = under(world, app)
    found = audited(world)
    assert numbers(found) == {"object_without_row": 100, "row_without_object": 90, "overdue": 100}
    assert keys(found, Kind.OBJECT_WITHOUT_ROW) == sorted(alone)
    assert keys(found, Kind.ROW_WITHOUT_OBJECT) == sorted(missing)
    assert keys(found, Kind.OVERDUE) == both[1500:1600]
    assert {one.state for one in found.findings} == {State.CONFIRMED}
    assert (found.num_rows, found.num_objects) == (2990, 3001)


def test_an_audit_deletes_and_parks_nothing_and_writes_itself_down_alone(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a", "sfs/b")
    app.add("sfs/a", "sfs/gone")
    world = under(world, app)
    before = (world.keys(), app.left())
    audited(world, acted_by="ann", note="Why not.")
    assert (world.keys(), app.left()) == before
    (row,) = world.rows("SELECT * FROM s3_retention.audits")
    assert (row["policy"], row["acted_by"], row["note"], row["num_objects"]) == (
        world.policy.name,
        "ann",
        "Why not.",
        2,
    )
    assert row["counts"]["object_without_row"] == {
        "num_found": 1,
        "num_confirmed": 1,
        "num_refuted": 0,
        "num_unknown": 0,
    }
    kept = world.rows("SELECT kind, key FROM s3_retention.audit_findings ORDER BY kind")
    assert [(one["kind"], one["key"]) for one in kept] == [
        ("object_without_row", "sfs/b"),
        ("overdue", "sfs/a"),
        ("row_without_object", "sfs/gone"),
    ]
    for table in ("quarantine", "intervals", "watermarks", "orphan_sightings"):
        assert world.value(f"SELECT count(*) FROM s3_retention.{table}") == 0  # noqa: S608


def test_odd_keys_are_compared_byte_for_byte(world: World, app: AppDatabase) -> None:
    odd = [key.replace("exports/2020-01/", "sfs/") for key in ODD_KEYS]
    world.put(*odd)
    app.add(*odd, age=None)
    assert numbers(audited(under(world, app))) == {}


def test_a_store_that_lists_in_another_order_is_sorted_in_the_ledger(world: World, app: AppDatabase) -> None:
    named = ["sfs/a/1", "sfs/a b", "sfs/a/2", "sfs/a-b", "sfs/a"]
    world.put("sfs/a/1", "sfs/a b", "sfs/a/2", "sfs/a-b", "sfs/b/3", "sfs/b 3")
    app.add(*named[:4], "sfs/a.b", age=None)
    found = audited(under(world, app))
    assert keys(found, Kind.OBJECT_WITHOUT_ROW) == ["sfs/b 3", "sfs/b/3"]
    assert keys(found, Kind.ROW_WITHOUT_OBJECT) == ["sfs/a.b"]


def test_rows_that_cannot_be_compared_are_told_apart(world: World, app: AppDatabase) -> None:
    other = f"s3://{world.bucket}/other/a"
    ids = app.add(
        None, "sfs/no-url", "s3://another-bucket/sfs/a", other, f"s3://{world.bucket}/sfs/a", age=None
    )
    world.put("sfs/a", "sfs/b")
    found = audited(under(world, app, key={"url": "sfs_key"}))
    assert numbers(found) == {
        "object_without_row": 1,
        "row_malformed": 1,
        "row_without_key": 1,
        "row_elsewhere": 2,
    }
    assert keys(found, Kind.OBJECT_WITHOUT_ROW) == ["sfs/b"]
    malformed = next(one for one in found.findings if one.kind is Kind.ROW_MALFORMED)
    assert (malformed.row_id, malformed.key, malformed.detail) == (
        str(ids[1]),
        "sfs/no-url",
        "is not s3://bucket/key",
    )


def test_an_orphan_is_overdue_only_where_a_delete_of_it_would_go_on(world: World, app: AppDatabase) -> None:
    names = [
        "sfs/due", "sfs/young", "sfs/attached", "sfs/twice", "sfs/named", "sfs/held/a", "sfs/tmp/a", "sfs/untimed",
    ]  # fmt: skip
    world.put(*names)
    app.add("sfs/due", "sfs/twice", "sfs/twice", "sfs/held/a", "sfs/tmp/a", "sfs/attached", "sfs/named")
    app.add("sfs/young", age=timedelta(days=7, minutes=-61))
    app.add("sfs/attached", age=None)
    (untimed,) = app.add("sfs/untimed")
    app.run("UPDATE mail.attachments SET orphaned_at = NULL WHERE id = %s", untimed)
    app.run("INSERT INTO mail.drafts (sfs_key) VALUES ('sfs/named')")
    world = under(world, app, references=[{"table": "mail.drafts", "column": "sfs_key"}])
    placed = PlaceHold(world.bucket, Scope.PREFIX, "sfs/held/", "a case", None)
    hold.run(world.conn, placed, Holder("s3_retention_hold", "h", "t"), acted_by="ann")
    assert keys(audited(world), Kind.OVERDUE) == ["sfs/due", "sfs/twice"]


def test_without_a_detach_time_nothing_is_said_of_deadlines(world: World, app: AppDatabase) -> None:
    world.put("sfs/a")
    app.add("sfs/a")
    found = audited(under(world, app, detached_at=None, soft_delete="deleting_at"))
    assert Kind.OVERDUE not in found.counts
    assert found.due_before is None
    assert "detached_at is not set" in str(found)


def test_an_overdue_file_in_quarantine_says_so(world: World, app: AppDatabase) -> None:
    world.put("sfs/a", "sfs/b")
    app.add("sfs/a")
    world = under(world, app)
    world.s3.deny(world.bucket, ["sfs/a"])
    # A plan refuses clocks that disagree.
    world.set_clock("clock_timestamp()")
    world.clean()
    world.set_clock(LATER)
    app.add("sfs/b")
    found = [(one.key, one.detail) for one in audited(world).findings]
    assert found == [("sfs/a", "in_quarantine"), ("sfs/b", None)]


def test_a_key_that_a_listing_names_twice_is_one_difference(world: World, app: AppDatabase) -> None:
    world = under(world, app)
    twice = [facts("sfs/a", bucket=world.bucket), facts("sfs/b", bucket=world.bucket)]
    app.add("sfs/b", "sfs/b", age=None)
    found = audited(world, replace(sides_of(world), listing=Pages([twice, twice]), store=Here()))
    assert (numbers(found), keys(found, Kind.OBJECT_WITHOUT_ROW)) == ({"object_without_row": 1}, ["sfs/a"])


# What changes while it reads ------------------------------------------------------------------------------
def test_an_object_that_is_younger_than_the_audit_is_not_reported(world: World, app: AppDatabase) -> None:
    world.put("sfs/new")
    world = under(world, app)
    world.set_clock("clock_timestamp()")
    assert numbers(audited(world)) == {}


@dataclass
class Meanwhile:
    """A listing that lets something happen after its last page."""

    listing: Any
    act: Callable[[], object]

    def pages(self) -> Iterator[list[ObjectFacts]]:
        yield from self.listing.pages()
        self.act()

    def read_clock(self) -> None:
        """Tell no time."""


def test_what_is_put_right_while_the_audit_reads_is_no_difference(world: World, app: AppDatabase) -> None:
    world.put("sfs/named-late", "sfs/deleted", "sfs/attached", "sfs/stays")
    late, dropped, attached = app.add("sfs/uploaded-late", "sfs/dropped", "sfs/attached")
    app.add("sfs/gone")
    world = under(world, app)

    def act() -> None:
        app.add("sfs/named-late", age=None)
        world.admin.delete_object(Bucket=world.bucket, Key="sfs/deleted")
        world.put("sfs/uploaded-late")
        app.run("DELETE FROM mail.attachments WHERE id = %s", dropped)
        app.attach(attached, late)

    sides = sides_of(world)
    found = audited(world, replace(sides, listing=Meanwhile(sides.listing, act)))
    assert numbers(found) == {"object_without_row": 1, "row_without_object": 1}
    assert keys(found, Kind.OBJECT_WITHOUT_ROW) == ["sfs/stays"]
    assert keys(found, Kind.ROW_WITHOUT_OBJECT) == ["sfs/gone"]
    assert found.counts[Kind.OBJECT_WITHOUT_ROW].num_refuted == 2
    assert found.counts[Kind.OVERDUE].num_refuted == 1


@dataclass
class Broken:
    """Rows that break off after their first page, as when their database goes away."""

    rows: Any
    error: Exception

    def pages(self, *, are_all: bool = False) -> Iterator[list[OrphanRow]]:
        yield next(self.rows.pages(are_all=are_all))
        if are_all:
            raise self.error


@pytest.mark.parametrize("error", [RowsUnavailableError(), RowsError()])
def test_rows_that_break_off_end_the_audit_and_leave_no_row(
    world: World, app: AppDatabase, error: Exception
) -> None:
    world.put("sfs/a")
    app.add("sfs/b")
    world = under(world, app)
    with pytest.raises(type(error)):
        audited(world, replace(sides_of(world), rows=Broken(world.orphans, error)))
    assert written(world) == 0


def test_a_database_that_goes_away_in_the_middle_is_no_empty_table(world: World, app: AppDatabase) -> None:
    world.put(*(f"sfs/{number}" for number in range(5)))
    app.add(*(f"sfs/{number}" for number in range(5)), age=None)
    world = under(world, app)
    sides = sides_of(world)
    sides = replace(sides, listing=Meanwhile(sides.listing, app.drop))
    app.add("sfs/missing")
    with pytest.raises(RowsUnavailableError):
        audited(world, sides)
    assert written(world) == 0
    AppDatabase.create(app.postgres, app.database)


def test_a_listing_that_breaks_off_ends_the_audit_and_leaves_no_row(world: World, app: AppDatabase) -> None:
    app.add("sfs/a")
    world = under(world, app)
    listing = Pages([[facts("sfs/a", bucket=world.bucket)]], ListingError())
    with pytest.raises(ListingError):
        audited(world, replace(sides_of(world), listing=listing))
    assert written(world) == 0


class Untagged:
    """A store in which nothing has a tag."""

    def read_tags(self, _: ObjectRef) -> dict[str, str]:
        return {}


class Silent(Untagged):
    """A store that will not say anything of an object."""

    def look(self, _: ObjectRef) -> Outcome:
        return Outcome(FailureClass.PERMISSION, code="AccessDenied")


def test_what_the_store_will_not_say_is_reported_as_unknown(world: World, app: AppDatabase) -> None:
    world.put("sfs/a")
    world = under(world, app)
    found = audited(world, replace(sides_of(world), store=Silent()))
    assert numbers(found) == {"object_without_row": 1}
    (one,) = found.findings
    assert (one.state, one.detail) == (State.UNKNOWN, "AccessDenied")
    assert "1 could not be looked at" in str(found)


# Much of it -----------------------------------------------------------------------------------------------
@dataclass
class Many:
    """Made-up rows and objects, of which no page is kept; every tenth object has no row."""

    count: int
    largest: list[int] = field(default_factory=list)

    def keys(self) -> Iterator[list[int]]:
        for start in range(0, self.count, 1000):
            yield list(range(start, start + 1000))

    def look(self, *, row_ids: Any, names: Any) -> tuple[list[Any], set[str]]:
        self.largest.append(max(len(row_ids), len(names)))
        return [], set()


class ManyRows(Many):
    def pages(self, *, are_all: bool = False) -> Iterator[list[OrphanRow]]:
        for page in self.keys() if are_all else ():
            yield [OrphanRow(str(one), f"sfs/{one:06}", None) for one in page if one % 10]


class ManyObjects(Many):
    def pages(self) -> Iterator[list[ObjectFacts]]:
        for page in self.keys():
            yield [facts(f"sfs/{one:06}", bucket="t-made-up") for one in page]

    def read_clock(self) -> None:
        """Tell no time."""


class Here(Untagged):
    """A store in which everything is."""

    def look(self, ref: ObjectRef) -> ObjectFacts:
        return ObjectFacts(ref, '"e"', 1, datetime(2020, 1, 1, tzinfo=UTC))


def test_memory_does_not_grow_with_the_rows_and_the_objects(world: World, app: AppDatabase) -> None:
    world = under(world, app)

    def peak(count: int) -> int:
        rows = ManyRows(count)
        tracemalloc.start()
        found = audited(world, audit.Sides(ManyObjects(count), Here(), rows, rows))
        (_, most) = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert numbers(found) == {"object_without_row": count // 10}
        assert len(found.findings) == min(MAX_KEPT, count // 10)
        assert rows.largest == [min(MAX_KEPT, count // 10)]
        return most

    peak(10_000)
    assert peak(100_000) < peak(20_000) + 2_000_000


# Listings -------------------------------------------------------------------------------------------------
def test_objects_of_a_listing_are_overdue_before_the_position_of_their_policy(world: World) -> None:
    world.put("exports/2020-01/a.json", "exports/2020-02/a.json")
    world = world.under(keep=KEEP_LATEST)
    world.clean()
    world.put("exports/2020-01/late.json", "exports/2019-12/late.json", "exports/2019-01/a.json")
    found = audited(world)
    # The newest of each customer stays.
    assert keys(found, Kind.OVERDUE) == ["exports/2019-01/a.json", "exports/2019-12/late.json"]
    assert numbers(found) == {"overdue": 2}
    assert written(world) == 1
    assert world.keys() >= {"exports/2019-01/a.json"}


def test_a_version_that_came_to_be_due_late_is_overdue_by_its_id(versioned: World) -> None:
    versioned.clean()
    versioned.put("exports/2020-01/a.json")
    versioned.put("exports/2020-01/a.json")
    (found,) = audited(versioned).findings
    assert (found.kind, found.key, found.state) == (Kind.OVERDUE, "exports/2020-01/a.json", State.CONFIRMED)
    assert found.version_id is not None


class Rewritten(Untagged):
    """A store in which each object was written again just now."""

    def look(self, ref: ObjectRef) -> ObjectFacts:
        return ObjectFacts(ref, '"new"', 1, datetime.now(UTC))


def test_an_object_that_was_written_again_while_the_audit_read_is_not_overdue(world: World) -> None:
    world = world.under(age=BY_LAST_MODIFIED)
    world.clean()
    listing = source_of(facts("exports/2020-01/a.json", bucket=world.bucket))
    for store, num_found in ((Here(), 1), (Rewritten(), 0)):
        found = audited(world, audit.Sides(listing, store))
        assert found.counts[Kind.OVERDUE].num_found == num_found


def test_no_cap_and_no_refusal_hides_what_is_overdue(world: World) -> None:
    capped = world.under(
        tenant={"group": "customer"},
        limits={"max_commands_per_tenant": 1, "allow_expire_everything": False},
    )
    world.clean()
    world.put("exports/2020-01/a.json", "exports/2020-02/a.json", "exports/2020-03/a.json")
    assert numbers(audited(capped)) == {"overdue": 3}


def test_what_waits_in_quarantine_is_counted_apart_from_what_is_overdue(world: World) -> None:
    world.put("exports/2020-01/a.json", "exports/2020-01/b.json")
    world.s3.deny(world.bucket, ["exports/2020-01/a.json"])
    world.clean()
    found = audited(world)
    assert (numbers(found), found.num_waiting) == ({}, {"in_quarantine": 1})
    assert "1 are due and wait: in_quarantine" in str(found)


def test_of_a_policy_that_was_never_enforced_nothing_is_overdue(world: World) -> None:
    world.put("exports/2020-01/a.json")
    found = audited(world)
    assert (found.counts, found.num_objects, found.due_before) == ({}, 1, None)
    assert "never been enforced" in str(found)


def test_the_screen_shows_the_first_of_each_kind_and_says_how_many_more(
    world: World, app: AppDatabase
) -> None:
    world.put(*(f"sfs/{number:03}\n" for number in range(30)))
    screen = str(audited(under(world, app)))
    assert "30 object_without_row: selected objects that no row names (30 confirmed)" in screen
    assert "'sfs/019\\n'" in screen
    assert "'sfs/020\\n'" not in screen
    assert "and 10 more" in screen
    assert "nothing was deleted" in screen


def test_objects_without_a_row_are_deleted_by_a_redrive_and_the_interval_balances(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a", "sfs/alone", "sfs/drafted")
    app.add("sfs/a")
    orphaned = world.under(
        **RULES,
        source=orphans_of(world.bucket, references=[{"table": "mail.drafts", "column": "sfs_key"}]),
    )
    orphaned = replace(orphaned, orphans=app.rows(orphaned.policy))
    with pytest.raises(AuditRefusedError, match="no completed interval yet"):
        audited(orphaned, is_parking=True)
    orphaned.clean()
    world.set_clock("clock_timestamp() + interval '1 day'")
    young = audited(orphaned, is_parking=True, note="left by a migration")
    assert (numbers(young), young.num_parked) == ({"object_without_row": 2}, 0), "their rows may come yet"
    world.set_clock("clock_timestamp() + interval '8 days'")
    assert audited(orphaned, is_parking=True, note="left by a migration").num_parked == 2
    assert audited(orphaned, is_parking=True, note="again").num_parked == 0, "they wait already"
    assert world.keys() == {"sfs/alone", "sfs/drafted"}
    app.run("INSERT INTO mail.drafts (sfs_key) VALUES ('sfs/drafted')")
    assert orphaned.redrive().num_by_outcome == {"deleted": 1, "kept": 1}
    assert world.keys() == {"sfs/drafted"}
    (balance,) = world.rows("SELECT * FROM s3_retention.balance")
    assert (balance["num_discovered"], balance["num_pending"], balance["num_quarantined"]) == (3, 0, 0)


def test_nothing_of_a_listing_and_nothing_in_simulation_is_parked(world: World, app: AppDatabase) -> None:
    with pytest.raises(AuditRefusedError, match="reads no rows"):
        audited(world, is_parking=True)
    with pytest.raises(AuditRefusedError, match="mode simulate"):
        audited(under(world, app).under(mode="simulate"), is_parking=True)
    assert written(world) == 0
