"""Does what a person orders: places and lifts holds, stops the deletes or those of a tenant, and lets them go on.

Each act is done once for a run: a run that is cleared finds that it has done it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.core.lever import LiftHold, PauseTenant, PlaceHold, ResumeTenant, StopDeletes
from s3_retention.errors import LeverError
from s3_retention.store import kill_switches, legal_holds, tenant_pauses, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from s3_retention.core.holder import Holder
    from s3_retention.core.lever import Lever, ResumeDeletes
    from s3_retention.store.connection import Connection


@dataclass(frozen=True, slots=True)
class HoldResult:
    """What was done, in a sentence; and the id of the hold, switch or pause, None where it was lifted before."""

    said: str
    acted_id: int | None


def run(conn: Connection, lever: Lever, holder: Holder, *, acted_by: str | None) -> HoldResult:
    """Do it. Raises ``LeverError`` when it cannot be done; nothing is changed then.

    ``acted_by`` is who asked for it, where Airflow knows.
    """
    who = acted_by or "unknown"
    with transaction(conn):
        if isinstance(lever, PlaceHold):
            return _place(conn, lever, holder, who)
        if isinstance(lever, LiftHold):
            return _lift(conn, lever, who)
        if isinstance(lever, StopDeletes):
            return _stop(conn, lever, holder, who)
        if isinstance(lever, PauseTenant):
            return _pause(conn, lever, holder, who)
        if isinstance(lever, ResumeTenant):
            return _resume_tenant(conn, lever, who)
        return _resume(conn, lever, who)


def _place(conn: Connection, hold: PlaceHold, holder: Holder, who: str) -> HoldResult:
    earlier = legal_holds.find_of_run(conn, holder=holder)
    now = watermarks.read_clock(conn)
    if earlier is None and hold.ends_at is not None and hold.ends_at <= now:
        raise LeverError(
            f"ends_at = {hold.ends_at.isoformat()!r} has passed by the clock of the ledger ({now:%Y-%m-%d %H:%M} UTC): "
            "write a later time, or nothing for a hold until it is lifted"
        )
    hold_id = earlier or legal_holds.insert(conn, hold, holder=holder, acted_by=who)
    until = f"until {hold.ends_at.isoformat()}" if hold.ends_at else "until it is lifted"
    where = f"s3://{hold.bucket}/{hold.name}" + ("*" if hold.scope.value != "key" else "")
    return HoldResult(f"hold {hold_id} on {where} is in force, {until}", hold_id)


def _lift(conn: Connection, lever: LiftHold, who: str) -> HoldResult:
    row = legal_holds.get(conn, lever.hold_id)
    if row is None:
        raise LeverError(
            f"hold_id = {lever.hold_id}: there is no such hold; s3_retention.active_holds lists them"
        )
    if not legal_holds.lift(conn, lever.hold_id, reason=lever.reason, acted_by=who):
        return HoldResult(f"hold {lever.hold_id} had been lifted by {row['lifted_by']} before", None)
    return HoldResult(
        f"hold {lever.hold_id} is lifted: what it held is due again in the next interval", lever.hold_id
    )


def _stop(conn: Connection, lever: StopDeletes, holder: Holder, who: str) -> HoldResult:
    what = f"policy {lever.policy}" if lever.policy else "every policy"
    earlier = kill_switches.find_of_run(conn, holder=holder)
    switch_id = earlier or kill_switches.stop(
        conn, policy=lever.policy, reason=lever.reason, holder=holder, acted_by=who
    )
    if switch_id is None:
        row = kill_switches.find_open(conn, policy=lever.policy) or {}
        return HoldResult(f"{what} had been stopped before, by {row.get('set_by')}", None)
    return HoldResult(f"{what} is stopped: running batches end between two requests", switch_id)


def _resume(conn: Connection, lever: ResumeDeletes, who: str) -> HoldResult:
    what = f"policy {lever.policy}" if lever.policy else "every policy"
    row = kill_switches.find_open(conn, policy=lever.policy)
    if row is None or not kill_switches.resume(conn, policy=lever.policy, reason=lever.reason, acted_by=who):
        return HoldResult(f"{what} was not stopped, or goes on already", None)
    return HoldResult(f"{what} may delete again: the next run resumes what was stopped", row["switch_id"])


def _pause(conn: Connection, lever: PauseTenant, holder: Holder, who: str) -> HoldResult:
    what = _tenant_of(lever)
    earlier = tenant_pauses.find_of_run(conn, holder=holder)
    pause_id = earlier or tenant_pauses.insert(
        conn, policy=lever.policy, tenant=lever.tenant, reason=lever.reason, holder=holder, acted_by=who
    )
    if pause_id is None:
        row = tenant_pauses.find_open(conn, policy=lever.policy, tenant=lever.tenant) or {}
        return HoldResult(f"{what} had been paused before, by {row.get('paused_by')}", None)
    return HoldResult(f"{what} is paused: its objects wait, and no others", pause_id)


def _resume_tenant(conn: Connection, lever: ResumeTenant, who: str) -> HoldResult:
    what = _tenant_of(lever)
    row = tenant_pauses.find_open(conn, policy=lever.policy, tenant=lever.tenant)
    if row is None or not tenant_pauses.lift(
        conn, policy=lever.policy, tenant=lever.tenant, reason=lever.reason, acted_by=who
    ):
        return HoldResult(f"{what} was not paused, or goes on already", None)
    return HoldResult(f"{what} goes on: what waited is due again in the next interval", row["pause_id"])


def _tenant_of(lever: PauseTenant | ResumeTenant) -> str:
    return f"tenant {lever.tenant!r} of {f'policy {lever.policy}' if lever.policy else 'every policy'}"
