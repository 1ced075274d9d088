"""Decides what a scan has found, and stores one command per object that is due."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.approval import over_limits
from s3_retention.core.policy_parts import AgeFrom
from s3_retention.errors import PlanRefusedError
from s3_retention.steps.checks import MAX_CHECKED
from s3_retention.store import (
    plan_canary,
    plan_candidates,
    plan_keeps,
    plan_kept_keys,
    plan_rows,
    plan_tenants,
    tenant_waits,
)

if TYPE_CHECKING:
    from datetime import datetime

    from s3_retention.core.approval import OverLimit
    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.policy_parts import Limits
    from s3_retention.steps.scan import Scan
    from s3_retention.store.batches import DealtBatch
    from s3_retention.store.connection import Connection

MAX_CHUNK = 1000
LEAVING = ("in_quarantine", "over_tenant_cap", "tenant_paused")
"""Reasons why an object is still there that do not let it stay."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a plan covers: all that is due before ``ends_at``; what was due before ``starts_at`` is a straggler.

    Only a replay (generation 1 and higher) has a lower bound, ``due_from``, and earlier plans of its interval.
    """

    starts_at: datetime
    ends_at: datetime
    due_from: datetime | None = None
    interval_id: int | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan in counts: objects, bytes, and objects per reason of keeping; and what was dealt to this run.

    ``next_due_at`` is the first due time beyond the plan that the scan saw, ``largest_tenant_share`` the part of one
    tenant's objects that goes, where it is the largest. ``is_waiting``: it is over a limit and not
    approved, so that nothing was dealt.
    """

    num_scanned: int
    num_discovered: int
    num_bytes: int
    num_stragglers: int
    num_kept_by_reason: dict[str, int] = field(default_factory=dict)
    next_due_at: datetime | None = None
    largest_tenant_share: float | None = None
    batches: tuple[DealtBatch, ...] = ()
    is_waiting: bool = False

    def over(self, limits: Limits) -> tuple[OverLimit, ...]:
        """Give every limit that this plan exceeds."""
        return over_limits(
            limits,
            num_scanned=self.num_scanned,
            num_discovered=self.num_discovered,
            num_bytes=self.num_bytes,
            largest_tenant_share=self.largest_tenant_share,
        )

    def __str__(self) -> str:
        """Print the plan for a task log."""
        kept = ", ".join(f"{count:,} {why}" for why, count in sorted(self.num_kept_by_reason.items()))
        return (
            f"{self.num_scanned:,} scanned, {self.num_discovered:,} due ({self.num_bytes:,} bytes, "
            f"{self.num_stragglers:,} stragglers); kept: {kept or 'none'}"
        )


def run(conn: Connection, policy: RetentionPolicy, scan: Scan, bounds: Bounds) -> PlanResult:
    """Decide every candidate of the scan, into a table of this session.

    Raises ``PlanRefusedError`` when everything would expire and the policy does not allow it.
    """
    # With named versions the rule has been asked already: it ranks current objects (steps/scan.py).
    keep = None if policy.keeps_histories else policy.keep
    are_distinct = scan.are_distinct
    if keep is not None and (keep.rules.keys() != {"latest"} or keep.valid_if is not None):
        if not are_distinct:
            plan_keeps.drop_doubles(conn)
            are_distinct = True
        are_periods = policy.age.from_ in (AgeFrom.KEY_DATE, AgeFrom.TAG)
        plan_keeps.mark(conn, keep, timezone=policy.timezone, are_periods=are_periods)
    if policy.age.whole_groups:
        plan_keeps.hold_back(conn, ends_at=bounds.ends_at)
    plan_candidates.decide(
        conn,
        policy=policy.name,
        policy_version=policy.version,
        # Each rule keeps the newest.
        keep_latest=(keep.latest or 1) if keep else None,
        due_from=bounds.due_from,
        ends_at=bounds.ends_at,
        are_distinct=are_distinct,
        has_keepers=not policy.age.whole_groups,
        interval_id=bounds.interval_id,
        generation=bounds.generation,
    )
    if (cap := policy.limits.max_commands_per_tenant) is not None:
        plan_tenants.cap(conn, max_commands=cap, interval_id=bounds.interval_id)
    by_reason = {
        row["reason"]: row for row in plan_candidates.count_decisions(conn, starts_at=bounds.starts_at)
    }
    due = by_reason.pop("due", {"num_objects": 0, "num_bytes": 0, "num_due_before": 0})
    kept = scan.num_kept + Counter({reason: row["num_objects"] for reason, row in by_reason.items()})
    result = PlanResult(
        num_scanned=scan.num_scanned,
        num_discovered=due["num_objects"],
        num_bytes=int(due["num_bytes"]),
        num_stragglers=due["num_due_before"],
        num_kept_by_reason=dict(kept),
        next_due_at=by_reason["not_due"]["first_due_at"] if "not_due" in by_reason else None,
        largest_tenant_share=plan_tenants.find_largest_share(conn) if policy.tenant is not None else None,
    )
    _refuse_everything(policy, result)
    return result


def store_commands(
    conn: Connection,
    policy: RetentionPolicy,
    holder: Holder,
    *,
    interval_id: int,
    generation: int,
    canary: int | None = None,
) -> None:
    """Store what was decided to be due as batches of chunks, with the keepers of its groups.

    The first ``canary`` commands get a batch of their own, which is dealt alone. Of a version whose lock has
    ended, the row in quarantine is closed: it waits for its new command now.
    """
    plan_candidates.supersede_ripe(conn, policy_version=policy.version, holder=holder)
    if policy.keeps_histories:
        plan_kept_keys.store(conn, interval_id=interval_id, generation=generation)
    plan_candidates.store_plan(
        conn,
        policy=policy.name,
        interval_id=interval_id,
        generation=generation,
        chunk_size=chunk_size_of(policy),
        batch_size=_batch_size_of(policy),
        weights=policy.tenant.weights if policy.tenant is not None else None,
        canary=canary,
    )
    if policy.source.rows is not None:
        plan_rows.store(conn, policy_version=policy.version, interval_id=interval_id, generation=generation)


def store_waits(conn: Connection, result: PlanResult, *, interval_id: int, generation: int) -> None:
    """Store what waits of each tenant by this decision; where nothing does, the candidates are not read again."""
    if tenant_waits.REASONS & result.num_kept_by_reason.keys():
        tenant_waits.insert(conn, interval_id=interval_id, generation=generation)


def chunk_size_of(policy: RetentionPolicy) -> int:
    """Give the most commands that a chunk of this policy holds.

    Where each object is asked for its tags just before the request, these are to be young when it leaves.
    """
    return min(MAX_CHECKED if policy.asks_tags else MAX_CHUNK, _batch_size_of(policy))


def canary_of(conn: Connection, policy: RetentionPolicy, interval_id: int | None) -> int | None:
    """Give how many commands go alone, where nothing was ever deleted by this version of the policy.

    ``interval_id`` is the one that is being planned; a simulation has none.
    """
    is_first = policy.limits.canary is not None and plan_canary.is_first_of_version(
        conn, policy=policy.name, policy_version=policy.version, interval_id=interval_id
    )
    return policy.limits.canary if is_first else None


def _batch_size_of(policy: RetentionPolicy) -> int:
    # A run is dealt at least one batch, so none may be over the limit of a run.
    return min(policy.batch.size, policy.limits.max_commands_per_run)


def _refuse_everything(policy: RetentionPolicy, result: PlanResult) -> None:
    if result.num_discovered == 0 or policy.limits.allow_expire_everything:
        return
    # By what stays, not by what was scanned: a listing may name a key twice. Quarantine is no place to stay, and what
    # is over a cap or of a paused tenant only goes later.
    leaving = sum(result.num_kept_by_reason.get(reason, 0) for reason in LEAVING)
    if sum(result.num_kept_by_reason.values()) == leaving:
        raise PlanRefusedError(
            f"policy {policy.name}: all {result.num_scanned:,} objects that the scan saw would be deleted, and "
            "nothing was; look at select and age, or set limits.allow_expire_everything: true if this is meant"
        )
