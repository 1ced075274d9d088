"""Scans a source whole: every candidate into a table of this session, and a count of what is kept at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from operator import lt
from typing import TYPE_CHECKING

from s3_retention.core.policy_parts import Versions
from s3_retention.core.verdict import Verdict
from s3_retention.errors import PlanRefusedError
from s3_retention.steps.judge import judged_pages
from s3_retention.store import plan_candidates, plan_kept_keys, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from s3_retention.core.interval import Interval
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.sources.row_source import PlanSource
    from s3_retention.store.connection import Connection

MAX_CLOCK_SKEW = timedelta(minutes=5)
"""How far the ledger's clock may be from the store's; each decision is by the ledger's."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A complete scan in counts. ``started_at`` is by the ledger's clock: what came later may not be in it.

    ``are_distinct``: it named no object twice, as far as its order tells.
    """

    started_at: datetime
    num_scanned: int
    num_kept: Counter[str]
    are_distinct: bool = False


@dataclass(slots=True)
class Order:
    """Whether keys only grow, so that none can come twice. Each store lists in an order; not each in this one."""

    is_strict: bool = True
    last: str | None = None

    def see(self, keys: Sequence[str]) -> None:
        """Look at the next keys."""
        if self.is_strict and keys:
            before = keys if self.last is None else [self.last, *keys]
            self.is_strict = all(map(lt, before, before[1:]))
            self.last = keys[-1]


def run(conn: Connection, source: PlanSource, policy: RetentionPolicy, heartbeat: Callable[[], None]) -> Scan:
    """Stream the source into this session's table of candidates.

    ``heartbeat`` is called for each page, in its transaction. Raises ``StoreError`` when the scan is not complete,
    ``PlanRefusedError`` when the clocks of ledger and store disagree, or the policy names versions and the bucket has
    none.
    """
    now = watermarks.read_clock(conn)
    _refuse_skew(policy, source.read_clock(), now)
    num_scanned = 0
    num_kept: Counter[str] = Counter()
    # A key has many versions, and a listing of these has no order that all stores keep.
    order = Order(is_strict=policy.versions is Versions.CURRENT)
    with transaction(conn):
        plan_candidates.begin(conn)
    for page in judged_pages(conn, source, policy, now):
        num_scanned += len(page)
        candidates = []
        for judged in page:
            if isinstance(judged, Verdict):
                num_kept[judged.reasons[0]] += 1
            else:
                candidates.append(judged)
        order.see([one.facts.ref.key for one in candidates])
        with transaction(conn):
            heartbeat()
            plan_candidates.copy(conn, candidates)
    if policy.keep is not None and policy.keeps_histories:
        with transaction(conn):
            num_kept["kept_latest"] += plan_kept_keys.spare(conn, keep_latest=policy.keep.latest or 1)
    return Scan(now, num_scanned, num_kept, order.is_strict)


def refuse_future_end(conn: Connection, interval: Interval) -> None:
    """Refuse an interval that a clock ahead has cut: what is due before its end need not be due now.

    Raises ``PlanRefusedError``.
    """
    if interval.ends_at > watermarks.read_clock(conn):
        raise PlanRefusedError(
            f"interval {interval.key} ends in the future: the clock of the ledger was ahead when it was cut, or is "
            "behind now; nothing was planned: see docs/runbook.md"
        )


def _refuse_skew(policy: RetentionPolicy, store_now: datetime | None, ledger_now: datetime) -> None:
    """Refuse to decide when the two clocks disagree: one that is ahead makes young objects due."""
    if store_now is not None and abs(store_now - ledger_now) > MAX_CLOCK_SKEW:
        raise PlanRefusedError(
            f"policy {policy.name}: the clock of the ledger database says {ledger_now:%Y-%m-%d %H:%M:%S} UTC and "
            f"that of the {'store' if policy.source.rows is None else 'database of the rows'} "
            f"{store_now:%Y-%m-%d %H:%M:%S} UTC; nothing was planned: set the clock that is wrong"
        )
