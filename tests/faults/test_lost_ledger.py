"""The connection to the ledger breaks under a step: what S3 did is found again, and nothing is counted twice."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from s3_retention.errors import LedgerUnavailableError
from s3_retention.store import chunks, watermarks
from s3_retention.store.connection import connect, transaction
from tests.fakes import AroundGateway

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.outcome import Outcome
    from sandbox.ledger import Ledger
    from tests.factories import World

KEYS = [f"exports/2020-01/{name}.json" for name in "abcd"]


def break_connection(world: World) -> None:
    world.root.execute("SELECT pg_terminate_backend(%s)", [world.conn.info.backend_pid])


@dataclass(frozen=True)
class Breaking(AroundGateway):
    """A gateway after whose delete the ledger is gone."""

    world: World

    def delete_chunk(self, targets: Sequence[ObjectFacts], **how: Any) -> list[Outcome]:
        outcomes = self.real.delete_chunk(targets, **how)
        break_connection(self.world)
        return outcomes


def test_a_ledger_that_goes_away_between_delete_and_settle_loses_nothing(
    world: World, ledger: Ledger
) -> None:
    world.put(*KEYS)
    (batch,) = world.planned().batches
    breaking: Any = Breaking(world.gateway, world)
    with pytest.raises(LedgerUnavailableError, match="what was under way was rolled back"):
        world.through(breaking).delete(batch)
    assert world.keys() == set()
    assert world.balance() == (4, 0, 0, 0, 0, 0, 4)
    with closing(connect(ledger.writer_conninfo)) as own:
        again = replace(world, conn=own)
        assert again.delete(batch, try_number=2).num_by_outcome == {"already_absent": 4}
        assert again.report().is_balanced
    assert world.balance() == (4, 0, 4, 0, 0, 0, 0)


def test_a_ledger_that_is_gone_before_a_statement_is_our_error_inside_a_transaction_and_outside(
    world: World,
) -> None:
    break_connection(world)
    with pytest.raises(LedgerUnavailableError):
        chunks.list_open(world.conn, batch_id=1)
    with pytest.raises(LedgerUnavailableError), transaction(world.conn):
        pass


def test_a_statement_that_is_refused_rolls_its_whole_transaction_back(world: World) -> None:
    world.put(*KEYS)
    (batch,) = world.planned().batches
    # A ledger that takes no entry: the settle fails as a whole, and the failures of its chunk with it.
    world.root.execute("REVOKE INSERT ON s3_retention.ledger_entries FROM s3_retention_writer")
    with pytest.raises(Exception, match="permission denied") as caught:
        world.delete(batch)
    assert not isinstance(caught.value, psycopg.Error)
    world.root.execute("GRANT INSERT ON s3_retention.ledger_entries TO s3_retention_writer")
    assert world.delete(batch, try_number=2).num_by_outcome == {"already_absent": 4}


def test_a_ledger_that_cannot_be_reached_says_what_to_check_and_shows_no_credential(ledger: Ledger) -> None:
    with pytest.raises(LedgerUnavailableError) as caught:
        connect(ledger.postgres.conninfo("nobody_of_that_name", ledger.database) + "&password=SECRET")
    assert "check the Airflow connection" in str(caught.value)
    assert "SECRET" not in f"{caught.value} {caught.value.__cause__}"


def test_a_worker_that_is_suspended_in_a_transaction_does_not_hold_its_locks_for_ever(
    world: World, ledger: Ledger
) -> None:
    world.claim()
    limit = world.conn.execute("SHOW idle_in_transaction_session_timeout").fetchone()
    assert limit == {"idle_in_transaction_session_timeout": "30s"}
    with closing(connect(ledger.writer_conninfo)) as suspended:
        suspended.execute("SET idle_in_transaction_session_timeout = '50ms'")
        suspended.execute("BEGIN")
        watermarks.hold(suspended, policy=world.policy.name)
        # The other run waits for the lock, and gets it because the server ends the session that stands still.
        assert world.claim("run-2").status.value == "observed"
        with pytest.raises(LedgerUnavailableError, match="25P03"):
            watermarks.read_clock(suspended)
