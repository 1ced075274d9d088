"""A row that gets its parent back while its object is being deleted: every place where that can happen, by name."""

from __future__ import annotations

import itertools
import os
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from botocore.exceptions import ReadTimeoutError

from s3_retention.core.condition import EtagCondition
from s3_retention.errors import ClaimLostError, RowsUnavailableError
from s3_retention.sources.postgres_rows import PostgresRows
from s3_retention.steps import attempt
from s3_retention.steps.attempt_rows import RowChecks
from s3_retention.steps.feed import load_delivery
from s3_retention.store import chunks
from s3_retention.store.connection import connect, transaction
from s3_retention.store.watermarks import read_clock
from sandbox.process import wait_until
from tests.app_database import AppDatabase, orphans_of
from tests.factories import NO_WAIT
from tests.fakes import asked, deleted, faulty_gateway, refusal
from tests.integration.test_orphaned_rows import RULES, row_outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sandbox.ledger import Ledger
    from sandbox.postgres import Postgres
    from tests.factories import World

_numbers = itertools.count(1)
ROUNDS = 50 if os.environ.get("S3_RETENTION_TEST_LONG") else 1
STEPS = ("before the check", "during the check", "after the check", "after the object", "after the row")
"""Where a row is attached again: round the first transaction, the store's delete, and the second transaction."""
WINDOW = ("after the check", "after the object")
"""Between the two transactions: what only a soft delete with its trigger closes."""


@dataclass(slots=True)
class Hooked(PostgresRows):
    """Rows at whose steps something else happens."""

    at: Callable[[str], object] = lambda _: None

    def check(self, **arguments: Any) -> set[datetime]:
        self.at("before the check")
        marked_at = PostgresRows.check(self, **arguments)
        self.at("after the check")
        return marked_at

    def delete(self, **arguments: Any) -> tuple[set[str], set[str]]:
        self.at("after the object")
        done = PostgresRows.delete(self, **arguments)
        self.at("after the row")
        return done


@pytest.fixture
def app(postgres_server: Postgres) -> Iterator[AppDatabase]:
    made = AppDatabase.create(postgres_server, f"reattach_{next(_numbers)}")
    yield made
    made.drop()


@pytest.fixture(params=["plain", "soft delete with triggers"])
def guarded(request: pytest.FixtureRequest, world: World, app: AppDatabase) -> World:
    """The world under a policy of the orphans, with or without what closes the window."""
    is_closed = request.param != "plain"
    if is_closed:
        app.attach_triggers()
    orphaned = world.under(
        **RULES,
        source=orphans_of(
            world.bucket,
            soft_delete="deleting_at" if is_closed else None,
            references=[{"table": "mail.drafts", "column": "sfs_key"}],
        ),
    )
    return replace(orphaned, orphans=app.rows(orphaned.policy))


def hooked(world: World, step: str, action: Callable[[], object]) -> World:
    """The world in which something happens at a step, once."""
    left = [step]

    def at(here: str) -> None:
        if left and here == left[0]:
            left.clear()
            action()

    plain = world.orphans
    assert plain is not None
    return replace(world, orphans=Hooked(plain.database, plain.rows, plain.tenant_column, at))


def is_closed(world: World) -> bool:
    return world.policy.source.rows is not None and world.policy.source.rows.soft_delete is not None


def attach_while_it_waits(app: AppDatabase, row: int) -> Callable[[], object]:
    """Attach a row in a transaction that ends only when somebody waits for it."""

    def begin() -> None:
        other = app.connect()
        other.autocommit = False
        (email,) = next(other.execute("INSERT INTO mail.emails DEFAULT VALUES RETURNING id"))
        other.execute(
            "UPDATE mail.attachments SET email_id = %s, orphaned_at = NULL WHERE id = %s", [email, row]
        )

        def end() -> None:
            waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"
            wait_until(
                lambda: bool(app.run(waiting, app.database)), what="somebody who waits", parts=[], timeout=30
            )
            other.commit()
            other.close()

        Thread(target=end).start()

    return begin


@pytest.mark.parametrize("_number", range(ROUNDS))
@pytest.mark.parametrize("step", STEPS)
def test_a_row_that_is_attached_again_keeps_its_object_but_in_the_window_that_is_told(
    guarded: World, app: AppDatabase, step: str, _number: int
) -> None:
    guarded.put("sfs/a")
    (row,) = app.add("sfs/a")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches
    refused = []

    def attach() -> None:
        try:
            app.attach(row)
        except psycopg.errors.ObjectInUse as error:
            refused.append(error)

    action = attach_while_it_waits(app, row) if step == "during the check" else attach
    where = "before the check" if step == "during the check" else step
    hooked(guarded, where, action).delete(batch)
    guarded.sweep()
    assert guarded.report().is_balanced
    is_attached = bool(app.run("SELECT 1 FROM mail.attachments WHERE id = %s AND email_id IS NOT NULL", row))
    is_there = guarded.keys() == {"sfs/a"}
    if step in WINDOW and not is_closed(guarded):
        assert (is_attached, is_there) == (True, False)
        assert row_outcomes(guarded) == {str(row): "left"}, "what is lost is told"
        assert guarded.report().num_rows_by_outcome == {"left": 1}
        guarded.watch()
        assert guarded.open_findings()["rows_left", ""]["row_id"] == str(row)
        return
    assert is_there == is_attached, "a file that is referenced is never deleted"
    assert bool(refused) == (step in WINDOW)
    assert guarded.outcomes()["sfs/a"] == ("kept:attached" if is_attached else "deleted")


@pytest.mark.parametrize("_number", range(ROUNDS))
@pytest.mark.parametrize("step", ["before the check", "after the check", "after the object", "after the row"])
def test_two_workers_of_one_batch_never_delete_a_file_that_is_referenced_behind_a_trigger(
    guarded: World, app: AppDatabase, ledger: Ledger, step: str, _number: int
) -> None:
    guarded.put("sfs/a", "sfs/b")
    first, second = app.add("sfs/a", "sfs/b")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches

    def other_worker_and_attach() -> None:
        with closing(connect(ledger.writer_conninfo)) as conn:
            replace(guarded, conn=conn).delete(batch, try_number=2)
        for row in (first, second):
            with suppress(psycopg.errors.ObjectInUse):
                app.attach(row)

    with suppress(ClaimLostError):
        hooked(guarded, step, other_worker_and_attach).delete(batch)
    guarded.sweep()
    assert guarded.report().is_balanced
    assert not guarded.keys(), "the second worker was first"
    assert set(app.left().values()) == {"sfs/else"}
    assert set(row_outcomes(guarded).values()) == {"already_absent" if step == "after the row" else "deleted"}


class KilledError(Exception):
    """Stands for the end of a process: nothing of it is done any more."""


@pytest.mark.parametrize("step", ["before the check", "after the check", "after the object", "after the row"])
def test_a_worker_that_dies_at_any_step_leaves_nothing_undone(
    guarded: World, app: AppDatabase, step: str
) -> None:
    guarded.put("sfs/a", "sfs/b")
    app.add("sfs/a", "sfs/b", "sfs/b")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches

    def die() -> None:
        raise KilledError

    with pytest.raises(KilledError):
        hooked(guarded, step, die).delete(batch)
    assert guarded.delete(batch, try_number=2).num_failed == 0
    assert guarded.report().is_balanced
    assert not guarded.keys()
    assert set(app.left().values()) == {"sfs/else"}
    assert len(row_outcomes(guarded)) == 3


@pytest.mark.parametrize("_number", range(ROUNDS))
@pytest.mark.parametrize("step", STEPS[:1])
def test_a_row_that_is_attached_and_detached_again_waits_for_its_age_once_more(
    guarded: World, app: AppDatabase, step: str, _number: int
) -> None:
    guarded.put("sfs/a")
    (row,) = app.add("sfs/a")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches

    def there_and_back() -> None:
        app.attach(row)
        app.run("UPDATE mail.attachments SET email_id = NULL, orphaned_at = now() WHERE id = %s", row)

    hooked(guarded, step, there_and_back).delete(batch)
    assert guarded.report().is_balanced
    assert guarded.outcomes() == {"sfs/a": "kept:not_due"}
    assert guarded.keys() == {"sfs/a"}
    assert app.run("SELECT deleting_at FROM mail.attachments WHERE id = %s", row) == [(None,)]


def test_a_row_that_is_attached_and_detached_long_ago_again_is_another_incarnation(
    guarded: World, app: AppDatabase
) -> None:
    guarded.put("sfs/a")
    (row,) = app.add("sfs/a")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches
    app.attach(row)
    app.run("ALTER TABLE mail.attachments DISABLE TRIGGER USER")
    app.detach(row)
    guarded.delete(batch)
    guarded.report()
    assert guarded.outcomes() == {"sfs/a": "changed"}
    assert guarded.clean("run-2").num_by_outcome == {"deleted": 1}
    assert row not in app.left()


def test_a_new_row_or_draft_of_an_object_that_is_being_deleted_is_refused(
    guarded: World, app: AppDatabase
) -> None:
    guarded.put("sfs/a")
    app.add("sfs/a")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches
    taken: list[str] = []

    def refer() -> None:
        for statement in (
            "INSERT INTO mail.drafts (sfs_key) VALUES ('sfs/a')",
            "INSERT INTO mail.attachments (sfs_key, email_id) VALUES ('sfs/a', (SELECT min(id) FROM mail.emails))",
            "UPDATE mail.attachments SET sfs_key = 'sfs/a' WHERE sfs_key = 'sfs/else'",
        ):
            with suppress(psycopg.errors.ObjectInUse):
                app.run(statement)
                taken.append(statement)

    hooked(guarded, "after the check", refer).delete(batch)
    assert guarded.report().is_balanced
    assert len(taken) == (0 if is_closed(guarded) else 3)
    assert not guarded.keys()


def test_a_row_that_is_attached_while_the_store_is_waited_for_keeps_its_object(
    guarded: World, app: AppDatabase
) -> None:
    guarded.put("sfs/a", "sfs/b")
    first, _ = app.add("sfs/a", "sfs/b")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches
    waited_for: list[Any] = []

    def busy_once(**arguments: Any) -> Any:
        if waited_for:
            return guarded.gateway.client.delete_objects(**arguments)
        waited_for.append(arguments)
        app.run("UPDATE mail.attachments SET deleting_at = NULL")
        app.attach(first)
        return deleted(errors=[(key, "SlowDown") for key in asked(arguments)])

    guarded.through(faulty_gateway(guarded.gateway, delete_objects=busy_once)).delete(batch)
    assert guarded.report().is_balanced
    assert guarded.outcomes() == {"sfs/a": "kept:attached", "sfs/b": "deleted"}
    assert guarded.keys() == {"sfs/a"}


def test_a_kill_switch_leaves_no_row_marked(guarded: World, app: AppDatabase) -> None:
    guarded.put("sfs/a", "sfs/b")
    first, _ = app.add("sfs/a", "sfs/b")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches
    ending = Event()

    def stop() -> None:
        ending.set()

    limits = replace(NO_WAIT, ending=ending)
    rows = hooked(guarded, "after the check", stop).orphans
    (chunk_id,) = (row["chunk_id"] for row in guarded.rows("SELECT chunk_id FROM s3_retention.chunks"))
    with transaction(guarded.conn):
        commands = chunks.list_unfinished(guarded.conn, chunk_id=chunk_id, fence=0)
        delivery = load_delivery(
            guarded.conn, commands, chunk_id=chunk_id, now=read_clock(guarded.conn), has_rows=True
        )
    came = attempt.run(
        guarded.gateway, guarded.policy, delivery, limits, EtagCondition.HONOURED, lambda _: None, rows
    )
    assert came.attempted == []
    assert app.run("SELECT 1 FROM mail.attachments WHERE deleting_at IS NOT NULL") == []
    app.attach(first)
    assert guarded.delete(batch).num_by_outcome == {"deleted": 1, "kept": 1}


@pytest.mark.parametrize("is_again", [False, True])
def test_a_worker_whose_batch_was_taken_over_takes_no_mark_back_that_the_other_one_needs(
    guarded: World, app: AppDatabase, *, is_again: bool
) -> None:
    guarded.put("sfs/a", "sfs/b")
    app.add("sfs/a", "sfs/b")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches
    ending = Event()
    plain = guarded.orphans
    assert plain is not None
    (chunk_id,) = (row["chunk_id"] for row in guarded.rows("SELECT chunk_id FROM s3_retention.chunks"))
    with transaction(guarded.conn):
        commands = chunks.list_unfinished(guarded.conn, chunk_id=chunk_id, fence=0)
        delivery = load_delivery(
            guarded.conn, commands, chunk_id=chunk_id, now=read_clock(guarded.conn), has_rows=True
        )

    def take_over() -> None:
        other = RowChecks(plain, guarded.policy, replace(delivery, is_again=True))
        assert other.check(commands) == {}
        ending.set()

    rows = hooked(guarded, "after the check", take_over).orphans
    came = attempt.run(
        guarded.gateway,
        guarded.policy,
        replace(delivery, is_again=is_again),
        replace(NO_WAIT, ending=ending),
        EtagCondition.HONOURED,
        lambda _: None,
        rows,
    )
    assert came.attempted == []
    marked = app.run("SELECT count(*) FROM mail.attachments WHERE deleting_at IS NOT NULL")
    assert marked == [(2 if is_closed(guarded) else 0,)]
    assert guarded.delete(batch).num_by_outcome == {"deleted": 2}


def test_a_file_that_is_gone_without_an_answer_is_told_where_a_row_needs_it_before_the_next_attempt(
    world: World, app: AppDatabase
) -> None:
    world.put("sfs/a", "sfs/b")
    row, other = app.add("sfs/a", "sfs/b")
    app.add("sfs/else", age=None)
    orphaned = world.under(**RULES, source=orphans_of(world.bucket))
    orphaned = replace(orphaned, orphans=app.rows(orphaned.policy))
    (batch,) = orphaned.planned().batches
    lost: list[Any] = []

    def deleted_unanswered(**arguments: Any) -> Any:
        answer = world.gateway.client.delete_objects(**arguments)
        if lost:
            return answer
        lost.append(arguments)
        app.attach(row)
        raise ReadTimeoutError(endpoint_url="store")

    looks_lost: list[Any] = []

    def look(**arguments: Any) -> Any:
        if len(looks_lost) < len(asked(lost[0])):
            looks_lost.append(arguments)
            raise ReadTimeoutError(endpoint_url="store")
        return world.gateway.client.head_object(**arguments)

    faulty = faulty_gateway(world.gateway, delete_objects=deleted_unanswered, head_object=look)
    orphaned.through(faulty).delete(batch)
    assert orphaned.report().is_balanced
    assert not world.keys()
    assert orphaned.outcomes() == {"sfs/a": "already_absent", "sfs/b": "already_absent"}
    assert row_outcomes(orphaned) == {str(row): "left", str(other): "deleted"}, "what is lost is told"


def test_a_draft_that_comes_before_the_check_keeps_the_object(guarded: World, app: AppDatabase) -> None:
    guarded.put("sfs/a")
    app.add("sfs/a")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches
    app.run("INSERT INTO mail.drafts (sfs_key) VALUES ('sfs/a')")
    guarded.delete(batch)
    assert guarded.outcomes() == {"sfs/a": "kept:referenced"}
    assert guarded.keys() == {"sfs/a"}


def test_the_triggers_leave_columns_of_every_type_as_they_are_and_a_mark_can_be_taken_back(
    world: World, app: AppDatabase
) -> None:
    app.run("CREATE TYPE mail.kind AS ENUM ('new', 'old')")
    app.run(
        "ALTER TABLE mail.attachments ADD tags text[] DEFAULT ARRAY['a', NULL, '{b}'], "
        "ADD price numeric DEFAULT 12345678901234567890.12345678901234567890, "
        "ADD raw bytea DEFAULT '\\x00ff', ADD kind mail.kind DEFAULT 'old', ADD spare float8 DEFAULT 'NaN', "
        "ADD shape jsonb DEFAULT '{\"a\": 1.0}', ADD at timestamptz DEFAULT '-infinity', "
        "ADD folder text GENERATED ALWAYS AS (split_part(sfs_key, '/', 1)) STORED"
    )
    app.attach_triggers()
    columns = (
        "SELECT tags, price, raw, kind, spare::text, shape::text, at::text, folder FROM mail.attachments"
    )
    app.add("sfs/a", "sfs/b", "sfs/c", age=None)
    before = app.run(columns)
    app.run("UPDATE mail.attachments SET email_id = NULL")
    assert app.run(columns) == before
    dated = "SELECT count(*) FROM mail.attachments WHERE orphaned_at > now() - interval '1 minute'"
    assert app.run(dated) == [(3,)]
    guarded = world.under(**RULES, source=orphans_of(world.bucket, soft_delete="deleting_at"))
    rows = app.rows(guarded.policy)
    app.run("UPDATE mail.attachments SET deleting_at = now()")
    rows.unmark([(str(row), None) for row in app.left()])
    assert app.run("SELECT count(deleting_at) FROM mail.attachments") == [(0,)]
    assert app.run(columns) == before


def test_an_e_mail_that_goes_with_a_hundred_attachments_dates_them_all(app: AppDatabase) -> None:
    app.attach_triggers()
    app.add(*(f"sfs/{number}" for number in range(100)), age=None)
    assert app.run("SELECT count(orphaned_at) FROM mail.attachments") == [(0,)]
    app.run("DELETE FROM mail.emails")
    assert app.run("SELECT count(orphaned_at) FROM mail.attachments") == [(100,)]


@pytest.mark.parametrize(
    "call",
    ["note_detach('e_mail_id', 'orphaned_at')", "note_detach('email_id', 'at')", "refuse_change('deleting')"],
)
def test_a_trigger_that_names_a_column_which_is_not_there_is_told_and_not_passed_over(
    app: AppDatabase, call: str
) -> None:
    app.attach_triggers()
    app.add("sfs/a")
    app.run(
        "CREATE TRIGGER wrong BEFORE INSERT OR UPDATE ON mail.attachments "
        f"FOR EACH ROW EXECUTE FUNCTION s3_retention_rows.{call}"
        if call.startswith("note")
        else "CREATE TRIGGER wrong BEFORE UPDATE ON mail.attachments "
        f"FOR EACH ROW EXECUTE FUNCTION s3_retention_rows.{call}"
    )
    with pytest.raises(psycopg.errors.UndefinedColumn):
        app.run("UPDATE mail.attachments SET state = 'read'")


@pytest.mark.parametrize("how", [RowsUnavailableError, KilledError])
def test_a_file_that_is_gone_while_its_rows_could_not_be_reached_is_told_where_a_row_needs_it_by_then(
    guarded: World, app: AppDatabase, how: type[Exception]
) -> None:
    guarded.put("sfs/a", "sfs/b")
    row, other = app.add("sfs/a", "sfs/b")
    app.add("sfs/else", age=None)
    (batch,) = guarded.planned().batches

    def go_away() -> None:
        raise how

    with suppress(KilledError):
        hooked(guarded, "after the object", go_away).delete(batch)
    assert not guarded.keys()
    with suppress(psycopg.errors.ObjectInUse):
        app.attach(row)
    guarded.delete(batch, try_number=2)
    assert guarded.report().is_balanced
    assert guarded.outcomes() == {"sfs/a": "already_absent", "sfs/b": "already_absent"}
    is_left = "deleted" if is_closed(guarded) else "left"
    assert row_outcomes(guarded) == {str(row): is_left, str(other): "deleted"}


def test_what_is_kept_before_it_was_sent_is_told_so_and_its_mark_is_taken_back(
    world: World, app: AppDatabase
) -> None:
    source = orphans_of(
        world.bucket,
        soft_delete="deleting_at",
        references=[{"table": "mail.drafts", "column": "sfs_key"}],
    )
    # Where each object is looked at first, the rows are checked for each part.
    looking = world.under(**RULES, source=source, batch={"recheck": "time"})
    looking = replace(looking, orphans=app.rows(looking.policy))
    keys = [f"sfs/{number:03}" for number in range(120)]
    looking.put(*keys)
    ids = {key: app.add(key)[0] for key in keys}
    app.add("sfs/else", age=None)
    (batch,) = looking.planned().batches
    referred: list[str] = []
    real = looking.gateway.client

    def refer(**arguments: Any) -> Any:
        if not referred:
            referred.append(min(set(keys) - set(asked(arguments))))
            app.run("INSERT INTO mail.drafts (sfs_key) VALUES (%s)", referred[0])
        return real.delete_objects(**arguments)

    def look(**arguments: Any) -> Any:
        if arguments["Key"] in referred:
            raise refusal("503", 503)
        return real.head_object(**arguments)

    gateway = faulty_gateway(looking.gateway, delete_objects=refer, head_object=look)
    result = looking.through(gateway).delete(batch)
    assert result.num_by_outcome == {"deleted": 119, "kept": 1}
    (last,) = referred
    assert looking.outcomes()[last] == "kept:referenced"
    assert app.run("SELECT deleting_at FROM mail.attachments WHERE id = %s", ids[last]) == [(None,)]
