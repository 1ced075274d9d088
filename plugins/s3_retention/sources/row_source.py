"""Candidates from rows of a database: the rows themselves, and the store in which their objects are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Union

from s3_retention.sources.s3_listing import CandidateSource

if TYPE_CHECKING:
    from datetime import datetime

    from s3_retention.core.objects import ObjectFacts, ObjectRef
    from s3_retention.core.outcome import Outcome
    from s3_retention.sources.postgres_rows import PostgresRows


class Looker(Protocol):
    """What rows need of a store."""

    def look(self, ref: ObjectRef) -> ObjectFacts | Outcome:
        """Look at one object."""


@dataclass(frozen=True, slots=True)
class RowSource:
    """Orphaned rows, and the store of their objects."""

    rows: PostgresRows
    store: Looker

    def read_clock(self) -> datetime | None:
        """Read the clock that stamps the ages: that of the database of the rows."""
        return self.rows.read_clock()


PlanSource = Union[CandidateSource, RowSource]  # noqa: UP007 - evaluated at run time, by Python 3.10 too
"""What a plan is made from."""
