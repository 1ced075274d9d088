"""What an error of ours means to Airflow: fail for good, or fail and try again. One table."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowFailException

from s3_retention import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

TRIED_AGAIN: tuple[type[errors.S3RetentionError], ...] = (
    errors.LedgerUnavailableError,
    errors.LedgerConflictError,
    errors.ListingError,
    errors.RowsUnavailableError,
    errors.UnfinishedError,
    errors.WatchError,
)
"""May pass by itself. Every other error of ours needs a person, a change or the next run."""


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Turn errors of ours that no retry can help into ``AirflowFailException``; let the others through."""
    try:
        yield
    except errors.S3RetentionError as error:
        if isinstance(error, TRIED_AGAIN) and not isinstance(error, errors.ListingRefusedError):
            raise
        raise AirflowFailException(str(error)) from error
