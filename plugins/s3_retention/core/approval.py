"""Limits of a plan, and the approval that one beyond them waits for: decisions and words, no service."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from s3_retention.core.finding import Facts, Finding, FindingKind, make_finding, say_age, say_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.policy_parts import Limits

MAX_KEYS = 5
MAX_KEY = 200
"""Of a plan, how many keys a question shows, and how much of each."""


class Decision(str, Enum):
    """What became of a question. ``timed_out``: nobody answered, which counts as ``rejected``."""

    APPROVED = "approved"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"


class DealAction(str, Enum):
    """What a run does with a stored plan: deal it, wait for an answer, or close it with nothing deleted."""

    DEAL = "deal"
    ASK = "ask"
    WAIT = "wait"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A limit that a plan exceeds: its name, the plan's value, and the policy's bound."""

    limit: str
    value: float
    bound: float

    def __str__(self) -> str:
        """Say it for a person."""
        if self.limit == "max_share":
            return f"{self.value:.1%} of what the scan saw, over limits.max_share = {self.bound:g}"
        if self.limit == "max_tenant_share":
            return f"{self.value:.1%} of a tenant's objects, over limits.max_tenant_share = {self.bound:g}"
        return f"{self.value:,} {self.limit.removeprefix('max_')}, over limits.{self.limit} = {self.bound:,}"


@dataclass(frozen=True, slots=True)
class Approval:
    """The question about one plan, and its answer: ``decision`` is None while it is open."""

    plan_hash: str
    over_limits: tuple[OverLimit, ...]
    asked_at: datetime
    decision: Decision | None = None
    decided_by: str | None = None


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A stored plan as a question tells it."""

    policy: str
    interval_key: str
    num_scanned: int
    num_discovered: int
    num_bytes: int
    num_stragglers: int
    num_kept_by_reason: dict[str, int]
    sample: Sequence[str]


def over_limits(
    limits: Limits,
    *,
    num_scanned: int,
    num_discovered: int,
    num_bytes: int,
    largest_tenant_share: float | None,
) -> tuple[OverLimit, ...]:
    """Give every limit that a plan exceeds; at a limit it is not over it.

    The share is of everything that the complete scan listed, selected or not; that of a tenant is of all of which the
    tenant is known, and None without tenants.
    """
    share = num_discovered / num_scanned if num_scanned else 0.0
    held = (
        ("max_objects", num_discovered, limits.max_objects),
        ("max_bytes", num_bytes, limits.max_bytes),
        ("max_share", share, limits.max_share),
        ("max_tenant_share", largest_tenant_share or 0.0, limits.max_tenant_share),
    )
    return tuple(
        OverLimit(name, value, bound) for name, value, bound in held if bound is not None and value > bound
    )


def decide_deal(approval: Approval | None, over: Sequence[OverLimit], *, was_dealt: bool) -> DealAction:
    """Decide what a run does with a plan.

    A question that was asked stays until it is answered, whatever the limits are by then. A plan of which anything
    ``was_dealt`` is not asked about: of what a worker had in its hands nobody can say that it was kept. Limits
    that came later hold from the next plan on.
    """
    if approval is not None:
        return {
            None: DealAction.WAIT,
            Decision.APPROVED: DealAction.DEAL,
            Decision.REJECTED: DealAction.CLOSE,
            Decision.TIMED_OUT: DealAction.CLOSE,
        }[approval.decision]
    return DealAction.ASK if over and not was_dealt else DealAction.DEAL


def write_question(plan: PlanSummary, approval: Approval) -> str:
    """Write the body of a question in Markdown: what the plan would delete, and what it exceeds."""
    kept = ", ".join(f"{count:,} {why}" for why, count in sorted(plan.num_kept_by_reason.items()))
    share = plan.num_discovered / plan.num_scanned if plan.num_scanned else 0.0
    # Indented, and as JSON: no key can end the block, or pass for the text around it.
    keys = "\n".join(f"    {json.dumps(key[:MAX_KEY])}" for key in plan.sample)
    return (
        f"The plan of `{plan.interval_key}` is over a limit of policy `{plan.policy}`:\n\n"
        + "".join(f"- {one}\n" for one in approval.over_limits)
        + f"\nIt would delete **{plan.num_discovered:,} objects** ({plan.num_bytes:,} bytes), {share:.1%} of the "
        f"{plan.num_scanned:,} that the scan saw; {plan.num_stragglers:,} of them were due before the interval.\n\n"
        f"Kept: {kept or 'none'}.\n\nThe first keys:\n\n{keys}\n\n"
        f"Plan `{approval.plan_hash}`, asked at {approval.asked_at.isoformat()}.\n\n"
        "**Approve** deletes what is in this plan, and of it only what is still due and unchanged. **Reject** deletes "
        "nothing: the objects stay, and the next run plans and asks anew."
    )


def plan_waits(facts: Facts, *, now: datetime) -> Finding:
    """A plan that waits for an answer."""
    age = say_age(now - facts["asked_at"])
    return make_finding(
        facts,
        FindingKind.PLAN_WAITS,
        f"the plan of {facts['interval_key']} ({say_count(facts['num_discovered'], 'object')}) has waited {age} for "
        "approval, and nothing of it is deleted before: answer approve_plan of its run; where no run waits, trigger "
        "the cleanup DAG, which asks again",
        interval_key=facts["interval_key"],
        num_discovered=facts["num_discovered"],
        asked_by=f"{facts['dag_id']}/{facts['run_id']}",
        age=age,
    )


def plan_rejected(facts: Facts) -> Finding:
    """The last plan of a policy, where it was rejected or nobody answered."""
    by = facts["decided_by"] or "nobody that Airflow knows"
    why = "timed out" if facts["decision"] == Decision.TIMED_OUT.value else f"was rejected by {by}"
    return make_finding(
        facts,
        FindingKind.PLAN_REJECTED,
        f"the plan of {facts['interval_key']} ({say_count(facts['num_discovered'], 'object')}) {why}: it was closed "
        "with nothing deleted, and its objects are planned again by the next run",
        interval_key=facts["interval_key"],
        num_discovered=facts["num_discovered"],
        decision=facts["decision"],
        decided_by=facts["decided_by"],
        decided_at=facts["decided_at"].isoformat(),
    )
