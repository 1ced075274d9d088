"""Plans a million made-up objects in 500 groups under calendar rules, and prints what it took: a process of its own.

`python -m tests.integration.plan_a_million CONNINFO`
"""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))

from benchmarks.measure import peak_of
from s3_retention.steps import claim, plan
from s3_retention.store.connection import connect
from tests.factories import MAX_BATCHES, a_policy, facts, holder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_retention.core.objects import ObjectFacts

NUM_PAGES, PAGE, NUM_DAYS = 1000, 1000, 2000
FIRST = datetime(2020, 1, 1, tzinfo=timezone.utc)


class MadeUp:
    """A source of objects that no store holds, made page by page."""

    def pages(self) -> Iterator[list[ObjectFacts]]:
        for number in range(0, NUM_PAGES * PAGE, PAGE):
            yield [facts(key_of(one), at=FIRST) for one in range(number, number + PAGE)]

    def read_clock(self) -> None:
        """Tell no time."""


def key_of(number: int) -> str:
    """A key of one of 500 customers, on one of 2,000 days."""
    day = FIRST + timedelta(days=number % NUM_DAYS)
    return f"exports/{day:%Y-%m-%d}/c{number // NUM_DAYS:04d}-{number:07d}.json"


def main(conninfo: str) -> None:
    policy = a_policy(
        select={"regex": r"exports/[0-9-]+/(?P<customer>c\d+)-.*"},
        age={
            "from": "key_date",
            "regex": r"exports/(?P<date>\d{4}-\d{2}-\d{2})/",
            "format": "%Y-%m-%d",
            "retain": "30d",
        },
        keep={"daily": 7, "weekly": 4, "monthly": 12, "within": "14d", "group_by": ["customer"]},
    )
    with closing(connect(conninfo)) as conn:
        claimed = claim.run(conn, policy, holder("claim"))
        assert claimed.interval_id is not None
        done = plan.run(conn, MadeUp(), policy, claimed.interval_id, holder("plan"), max_batches=MAX_BATCHES)
    print(done.num_scanned, done.num_discovered, peak_of())  # noqa: T201 - its answer


if __name__ == "__main__":
    main(sys.argv[1])
