"""Rows, objects and deadlines held against each other: what differs is found exactly, and nothing is deleted."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.errors import AuditRefusedError, ListingError, RowsUnavailableError
from s3_retention.steps import audit
from s3_retention.steps.park_unnamed import AuditForm
from tests.app_database import AppDatabase
from tests.fakes import faulty_gateway, refusal
from tests.integration.test_orphaned_rows import YOUNG, under

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_retention.core.audit import AuditResult
    from sandbox.postgres import Postgres
    from tests.factories import World

_numbers = itertools.count(1)
AUDIT = "s3_retention_audit"


@pytest.fixture
def app(postgres_server: Postgres) -> Iterator[AppDatabase]:
    made = AppDatabase.create(postgres_server, f"audited_{next(_numbers)}")
    yield made
    made.drop()


def audited(world: World, run: str = "audit-1", **form: Any) -> AuditResult:
    return audit.run(
        world.conn,
        world.source,
        world.gateway,
        world.policy,
        AuditForm(**form),
        Holder(AUDIT, run, "audit_policy"),
        acted_by="ann",
    )


def at_once(world: World) -> World:
    """No delay: what was written before the audit began counts."""
    return world.under(window={"safety_delay": "0s"})


def found(world: World) -> set[tuple[str, str | None, str | None]]:
    rows = world.rows("SELECT kind, key, row_id FROM s3_retention.audit_differences")
    return {(row["kind"], row["key"], row["row_id"]) for row in rows}


def test_each_kind_of_difference_is_found_and_nothing_else_and_nothing_is_deleted(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/attached", "sfs/lonely", "sfs/a/b", "sfs/a b", "sfs/overdue", "sfs/young", "other/lonely")
    app.add("sfs/attached", "sfs/a/b", "sfs/a b", age=None)
    (gone,) = app.add("sfs/gone", age=None)
    app.add("sfs/overdue")
    app.add("sfs/young", age=YOUNG)
    (without,) = app.add(None, age=None)
    (wrong,) = app.add("s3://sfs/attached", age=None)
    app.add("other/row", age=None)
    before = world.keys()
    audited_world = at_once(under(world, app))
    result = audited(audited_world)
    assert result.num_by_kind == {
        "object_without_row": 1,
        "row_without_object": 1,
        "row_malformed": 1,
        "row_without_key": 1,
        "overdue": 1,
    }
    assert {(kind, key, None) for kind, key, _ in found(world)} == {
        ("object_without_row", "sfs/lonely", None),
        ("row_without_object", "sfs/gone", None),
        ("row_malformed", "s3://sfs/attached", None),
        ("row_without_key", None, None),
        ("overdue", "sfs/overdue", None),
    }
    assert {row_id for _, _, row_id in found(world)} >= {str(gone), str(without), str(wrong), None}
    assert world.keys() == before
    assert len(app.left()) == 9
    assert "object_without_row" in str(result)
    assert "sfs/lonely" in str(result)


def test_three_thousand_of_each_side_differ_where_they_were_made_to(world: World, app: AppDatabase) -> None:
    keys = [f"sfs/{number:04d}{'/ b' if number % 7 == 0 else ''}" for number in range(3000)]
    world.put(*keys[:-10])
    app.add(*keys[10:], age=None)
    result = audited(at_once(under(world, app)))
    assert result.num_by_kind == {"object_without_row": 10, "row_without_object": 10}
    assert {key for kind, key, _ in found(world) if kind == "object_without_row"} == set(keys[:10])
    assert {key for kind, key, _ in found(world) if kind == "row_without_object"} == set(keys[-10:])


def test_what_comes_or_goes_while_both_sides_are_read_is_no_difference(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a", "sfs/b")
    app.add("sfs/a", "sfs/b", "sfs/c", age=None)

    class Busy:
        """A gateway before whose first look somebody uploads, and somebody else adds a row."""

        def __getattr__(self, name: str) -> Any:
            return getattr(world.gateway, name)

        def list_pages(self, bucket: str, prefix: str) -> Any:
            yield from world.gateway.list_pages(bucket, prefix)
            world.put("sfs/c", "sfs/d")
            app.run("DELETE FROM mail.attachments WHERE sfs_key = 'sfs/b'")

        def look(self, ref: Any) -> Any:
            if ref.key == "sfs/b":
                app.run("INSERT INTO mail.attachments (sfs_key) VALUES ('sfs/b')")
            return world.gateway.look(ref)

    busy: Any = Busy()
    result = audited(replace(at_once(under(world, app)), gateway=busy))
    assert result.num_by_kind == {}


def test_a_young_object_without_a_row_is_an_upload_under_way(world: World, app: AppDatabase) -> None:
    world.put("sfs/a")
    assert audited(under(world, app)).num_by_kind == {}
    assert audited(at_once(under(world, app)), "audit-2").num_by_kind == {"object_without_row": 1}


def test_objects_without_a_row_are_deleted_by_a_redrive_and_the_interval_balances(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a", "sfs/lonely", "sfs/drafted")
    app.add("sfs/a")
    orphaned = at_once(under(world, app, references=[{"table": "mail.drafts", "column": "sfs_key"}]))
    with pytest.raises(AuditRefusedError, match="no completed interval yet"):
        audited(orphaned, quarantines=True, note="why")
    orphaned.clean()
    result = audited(orphaned, quarantines=True, note="left by a migration")
    assert (result.num_by_kind, result.num_quarantined) == ({"object_without_row": 2}, 0), "they are young"
    world.set_clock("clock_timestamp() + interval '8 days'")
    assert audited(orphaned, "audit-2", quarantines=True, note="left by a migration").num_quarantined == 2
    assert audited(orphaned, "audit-2", quarantines=True, note="again").num_quarantined == 2, "a cleared run"
    assert audited(orphaned, "audit-3", quarantines=True, note="again").num_quarantined == 0, (
        "they wait already"
    )
    assert world.keys() == {"sfs/lonely", "sfs/drafted"}
    app.run("INSERT INTO mail.drafts (sfs_key) VALUES ('sfs/drafted')")
    assert orphaned.redrive().num_by_outcome == {"deleted": 1, "kept": 1}
    assert world.keys() == {"sfs/drafted"}
    (balance,) = world.rows("SELECT * FROM s3_retention.balance")
    assert (balance["num_discovered"], balance["num_pending"], balance["num_quarantined"]) == (3, 0, 0)


def test_a_listing_is_audited_for_what_should_have_gone(world: World) -> None:
    world.put("exports/2020-01/a.json", "exports/2999-01/b.json")
    world.clean()
    world.put("exports/2020-01/late.json")
    result = audited(world)
    assert result.num_by_kind == {"overdue": 1}
    assert found(world) == {("overdue", "exports/2020-01/late.json", None)}
    assert "exports/2020-01/late.json" in world.keys()  # noqa: SIM118 - no dict
    with pytest.raises(AuditRefusedError, match="reads no rows"):
        audited(world, "audit-2", quarantines=True, note="why")


def test_a_side_that_cannot_be_read_whole_ends_the_audit_with_nothing_written(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a")
    orphaned = under(world, app)
    away = app.rows(orphaned.policy, conninfo="postgresql://nobody@/nowhere?host=/nonexistent")
    with pytest.raises(RowsUnavailableError):
        audited(replace(orphaned, orphans=away))

    def denied(**_: Any) -> Any:
        raise refusal("AccessDenied", 403)

    with pytest.raises(ListingError):
        audited(orphaned.through(faulty_gateway(world.gateway, list_objects_v2=denied)))
    assert world.value("SELECT count(*) FROM s3_retention.audits") == 0


def test_rows_of_urls_are_compared_by_their_keys(world: World, app: AppDatabase) -> None:
    world.put("sfs/a", "sfs/b")
    app.add(f"s3://{world.bucket}/sfs/a", f"s3://{world.bucket}-else/sfs/b", "sfs/b", age=None)
    result = audited(at_once(under(world, app, key={"url": "sfs_key"})))
    assert result.num_by_kind == {"object_without_row": 1, "row_malformed": 1}
