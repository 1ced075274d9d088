"""Decides everything as an enforced run would, and shows it: nothing is claimed, queued or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.interval import BEGINNING
from s3_retention.core.simulation import ClassSum, PrefixSum, ReasonSum, Simulation, TenantSum
from s3_retention.steps import decide, scan
from s3_retention.steps.collecting import collects_rarely
from s3_retention.steps.decide import Bounds
from s3_retention.steps.turns import takes_short_turns
from s3_retention.store import plan_canary, plan_candidates, plan_tenants, simulations, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.sources.row_source import PlanSource
    from s3_retention.steps.decide import PlanResult
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

MAX_PREFIXES, MAX_TENANTS, MAX_SAMPLE = 20, 20, 10


@collects_rarely()
@takes_short_turns()
def run(
    conn: Connection, source: PlanSource, policy: RetentionPolicy, holder: Holder
) -> tuple[PlanResult, Simulation]:
    """Scan and decide by the code of an enforced run, and write down what it would delete.

    No interval is claimed, no watermark moves, no command is stored, and the rules may still change under the same
    version. Raises what ``plan.run`` raises of the scan and the decision.
    """
    ends_at = watermarks.read_clock(conn) - policy.window.safety_delay
    scanned = scan.run(conn, source, policy, lambda: None)
    with transaction(conn):
        result = decide.run(conn, policy, scanned, Bounds(policy.start_at or BEGINNING, ends_at))
        plan_candidates.cut(
            conn, chunk_size=decide.chunk_size_of(policy), by_tenant=policy.tenant is not None
        )
        plan_canary.begin(conn)
        if (canary := decide.canary_of(conn, policy, None)) is not None:
            plan_canary.take(conn, canary)
        simulation = _summarize(conn, policy, result)
        simulations.insert(conn, simulation, rules_hash=policy.rules_hash, ends_at=ends_at, holder=holder)
    return result, simulation


def _summarize(conn: Connection, policy: RetentionPolicy, result: PlanResult) -> Simulation:
    decided = [ReasonSum(**_whole(row)) for row in simulations.sum_by_reason(conn)]
    known = {one.reason for one in decided}
    at_first_sight = [
        ReasonSum(reason, count)
        for reason, count in sorted(result.num_kept_by_reason.items())
        if reason not in known
    ]
    prefixes = simulations.sum_by_prefix(conn, prefix=policy.source.prefix, max_rows=MAX_PREFIXES)
    return Simulation(
        policy.name,
        policy.version,
        result.num_scanned,
        result.num_discovered,
        result.num_bytes,
        simulations.hash_plan(conn),
        [*decided, *at_first_sight],
        [PrefixSum(**_whole(row)) for row in prefixes],
        [ClassSum(**_whole(row)) for row in simulations.sum_by_storage_class(conn)],
        [TenantSum(**_whole(row)) for row in plan_tenants.sum_by_tenant(conn, max_rows=MAX_TENANTS)],
        [row["key"] for row in simulations.list_due(conn, max_rows=MAX_SAMPLE)],
        simulations.count_lonely_groups(conn),
        result.over(policy.limits),
    )


def _whole(row: Row) -> Row:
    """Postgres sums bytes as a decimal; they are whole."""
    return row | {name: int(row[name]) for name in ("num_bytes", "num_byte_days") if name in row}
