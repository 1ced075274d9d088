"""Plans an interval: one complete scan, every candidate decided, one command per object that is due.

The scan and the plan are always whole; a run drains as much of the plan as its limits allow.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from s3_retention.core.interval import BEGINNING, IntervalState
from s3_retention.core.verdict import Decider, Verdict
from s3_retention.errors import ClaimLostError, PlanRefusedError
from s3_retention.steps.claim import use_policy_version
from s3_retention.store import batches, intervals, ledger_entries, plan_candidates, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from s3_retention.core.holder import Holder
    from s3_retention.core.interval import Interval
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.sources.s3_listing import CandidateSource
    from s3_retention.store.batches import DealtBatch
    from s3_retention.store.connection import Connection

MAX_CHUNK = 1000
MAX_CLOCK_SKEW = timedelta(minutes=5)
"""How far the ledger's clock may be from the store's; each decision is by the ledger's."""
GENERATION = 0
"""A replay of an interval adds a generation; its first plan is generation 0."""


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan in counts: objects, bytes, and objects per reason of keeping; and what was dealt to this run."""

    num_scanned: int
    num_discovered: int
    num_bytes: int
    num_stragglers: int
    num_kept_by_reason: dict[str, int] = field(default_factory=dict)
    batches: tuple[DealtBatch, ...] = ()

    def __str__(self) -> str:
        """Print the plan for a task log."""
        kept = ", ".join(f"{count:,} {why}" for why, count in sorted(self.num_kept_by_reason.items()))
        return (
            f"{self.num_scanned:,} scanned, {self.num_discovered:,} due ({self.num_bytes:,} bytes, "
            f"{self.num_stragglers:,} stragglers); kept: {kept or 'none'}"
        )


def run(
    conn: Connection,
    source: CandidateSource,
    policy: RetentionPolicy,
    interval_id: int,
    holder: Holder,
    *,
    max_batches: int,
) -> PlanResult:
    """Plan the interval unless it is planned already, and deal open batches to this run.

    Raises ``ClaimLostError`` when another run has the interval, ``StoreError`` when the scan is not complete,
    ``PlanRefusedError`` when the plan would expire everything, the clocks of ledger and store disagree or the
    interval has not ended yet,
    ``PolicyChangedError`` when the rules changed under the same version. In each case nothing is planned.
    """
    lease = policy.window.lease
    with transaction(conn):
        claimed = intervals.get(conn, interval_id)
        if claimed.state is IntervalState.COMPLETED:
            return _planned(conn, interval_id, ())
        if claimed.claimed_by != holder.run:
            raise ClaimLostError
        # The file may have been edited since the claim.
        use_policy_version(conn, policy)
        fence = intervals.claim(conn, interval_id, policy_version=policy.version, lease=lease, holder=holder)
        ledger_entries.ensure_partition(conn, interval_id=interval_id)
    if claimed.state is IntervalState.CLAIMED:
        _refuse_future_end(conn, claimed.interval)

        def heartbeat() -> None:
            with transaction(conn):
                intervals.renew(conn, interval_id, fence=fence, lease=lease)

        num_scanned, num_kept = _scan(conn, source, policy, heartbeat)
        _store_plan(conn, policy, interval_id, fence, num_scanned, num_kept)
    with transaction(conn):
        intervals.renew(conn, interval_id, fence=fence, lease=lease)
        dealt = batches.deal(
            conn,
            interval_id=interval_id,
            holder=holder,
            max_batches=max_batches,
            max_commands=policy.limits.max_commands_per_run,
        )
        return _planned(conn, interval_id, tuple(dealt))


def simulate(conn: Connection, source: CandidateSource, policy: RetentionPolicy) -> PlanResult:
    """Decide everything as an enforced run would, and write nothing that outlives this session.

    No interval is claimed, no watermark moves, and the rules may still change under the same version.
    """
    ends_at = watermarks.read_clock(conn) - policy.window.safety_delay
    num_scanned, num_kept = _scan(conn, source, policy, lambda: None)
    with transaction(conn):
        counts = _decide(conn, policy, starts_at=policy.start_at or BEGINNING, ends_at=ends_at)
    result = _result(num_scanned, num_kept, counts)
    _refuse_everything(policy, result)
    return result


def _scan(
    conn: Connection, source: CandidateSource, policy: RetentionPolicy, heartbeat: Callable[[], None]
) -> tuple[int, Counter[str]]:
    """Stream the source into this session's table of candidates; count what is kept at once, by reason."""
    decider = Decider(policy)
    now = watermarks.read_clock(conn)
    _refuse_skew(policy, source.read_clock(), now)
    num_scanned = 0
    num_kept: Counter[str] = Counter()
    with transaction(conn):
        plan_candidates.begin(conn)
    for page in source.pages():
        num_scanned += len(page)
        candidates = []
        for facts in page:
            candidate = decider.candidate(facts, now=now)
            if isinstance(candidate, Verdict):
                num_kept[candidate.reasons[0]] += 1
            else:
                candidates.append(candidate)
        heartbeat()
        with transaction(conn):
            plan_candidates.copy(conn, candidates)
    return num_scanned, num_kept


def _refuse_future_end(conn: Connection, interval: Interval) -> None:
    """Refuse an interval that a clock ahead has cut: what is due before its end need not be due now."""
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
            f"that of the store {store_now:%Y-%m-%d %H:%M:%S} UTC; nothing was planned: set the clock that is wrong"
        )


def _decide(
    conn: Connection, policy: RetentionPolicy, *, starts_at: datetime, ends_at: datetime
) -> dict[str, tuple[int, int, int]]:
    """Decide the candidates: per reason the objects, their bytes, and those due before the interval."""
    plan_candidates.decide(
        conn,
        policy=policy.name,
        keep_latest=policy.keep.latest if policy.keep else None,
        ends_at=ends_at,
    )
    return {
        row["reason"]: (row["num_objects"], int(row["num_bytes"]), row["num_due_before"])
        for row in plan_candidates.count_decisions(conn, starts_at=starts_at)
    }


def _result(num_scanned: int, num_kept: Counter[str], counts: dict[str, tuple[int, int, int]]) -> PlanResult:
    num_discovered, num_bytes, num_stragglers = counts.pop("due", (0, 0, 0))
    by_reason = num_kept + Counter({reason: count[0] for reason, count in counts.items()})
    return PlanResult(num_scanned, num_discovered, num_bytes, num_stragglers, dict(by_reason))


def _refuse_everything(policy: RetentionPolicy, result: PlanResult) -> None:
    if result.num_discovered == 0 or policy.limits.allow_expire_everything:
        return
    # By what stays, not by what was scanned: a listing may name a key twice. Quarantine is no place to stay.
    if sum(result.num_kept_by_reason.values()) == result.num_kept_by_reason.get("in_quarantine", 0):
        raise PlanRefusedError(
            f"policy {policy.name}: all {result.num_scanned:,} objects that the scan saw would be deleted, and "
            "nothing was; look at select and age, or set limits.allow_expire_everything: true if this is meant"
        )


def _store_plan(
    conn: Connection,
    policy: RetentionPolicy,
    interval_id: int,
    fence: int,
    num_scanned: int,
    num_kept: Counter[str],
) -> None:
    interval = intervals.get(conn, interval_id).interval
    # A run is dealt at least one batch, so none may be over the limit of a run.
    batch_size = min(policy.batch.size, policy.limits.max_commands_per_run)
    chunk_size = min(MAX_CHUNK, batch_size)
    with transaction(conn):
        # Before the interval, as a claim does: the other way round, two runs would wait for each other.
        watermarks.hold(conn, policy=policy.name)
        intervals.renew(conn, interval_id, fence=fence, lease=policy.window.lease)
        counts = _decide(conn, policy, starts_at=interval.starts_at, ends_at=interval.ends_at)
        result = _result(num_scanned, num_kept, counts)
        _refuse_everything(policy, result)
        plan_candidates.store_plan(
            conn,
            policy=policy.name,
            interval_id=interval_id,
            generation=GENERATION,
            chunk_size=chunk_size,
            chunks_per_batch=batch_size // chunk_size,
        )
        intervals.mark_planned(
            conn,
            interval_id,
            fence=fence,
            lease=policy.window.lease,
            num_scanned=num_scanned,
            num_discovered=result.num_discovered,
            num_bytes=result.num_bytes,
            num_stragglers=result.num_stragglers,
            num_kept_by_reason=result.num_kept_by_reason,
        )
        watermarks.move_position(conn, interval_id=interval_id)


def _planned(conn: Connection, interval_id: int, dealt: tuple[DealtBatch, ...]) -> PlanResult:
    row = intervals.get_row(conn, interval_id)
    return PlanResult(
        num_scanned=row["num_scanned"],
        num_discovered=row["num_discovered"],
        num_bytes=int(row["num_bytes"]),
        num_stragglers=row["num_stragglers"],
        num_kept_by_reason=row["num_kept_by_reason"],
        batches=dealt,
    )
