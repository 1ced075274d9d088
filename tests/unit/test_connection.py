"""The ledger connection: what its errors say, and what they never say."""

from __future__ import annotations

import psycopg
import pytest

from s3_retention.errors import LedgerConflictError, LedgerDuplicateError, LedgerError, LedgerUnavailableError
from s3_retention.store import migrate
from s3_retention.store.connection import connect, driver_errors

CONNINFO = "postgresql://own:Se%cret@127.0.0.1:1/db"


@pytest.mark.parametrize("function", [connect, migrate.upgrade])
def test_no_part_of_a_password_is_in_an_error_or_in_what_led_to_it(function: object) -> None:
    assert callable(function)
    for conninfo in (CONNINFO, CONNINFO.replace("%", "")):
        with pytest.raises(LedgerUnavailableError) as caught:
            function(conninfo)
        assert "cret" not in str(caught.value)
        assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("raised", "ours"),
    [
        (psycopg.errors.AdminShutdown, LedgerUnavailableError),
        (psycopg.errors.ConnectionFailure, LedgerUnavailableError),
        (psycopg.OperationalError, LedgerUnavailableError),
        (psycopg.errors.DeadlockDetected, LedgerConflictError),
        (psycopg.errors.DiskFull, LedgerError),
        (psycopg.errors.ProgramLimitExceeded, LedgerError),
        (psycopg.errors.UniqueViolation, LedgerDuplicateError),
    ],
)
def test_an_error_of_the_driver_is_classed_by_its_sqlstate(
    raised: type[psycopg.Error], ours: type[LedgerError]
) -> None:
    with pytest.raises(LedgerError) as caught, driver_errors():
        raise raised
    assert type(caught.value) is ours
