"""Claims the next slice of a policy's watermark: idempotent per run, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from s3_retention.core.interval import BEGINNING, ClaimAction, decide_claim, next_interval
from s3_retention.errors import PolicyChangedError, PolicyError
from s3_retention.store import intervals, policy_versions, watermarks
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.store.connection import Connection


class ClaimStatus(str, Enum):
    """``claimed``: this run works on the interval. The others are successes that do nothing."""

    CLAIMED = "claimed"
    OBSERVED = "observed"
    CAUGHT_UP = "caught_up"


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """What a run got: the interval is named unless there was nothing to take."""

    status: ClaimStatus
    interval_id: int | None = None
    interval_key: str | None = None


def use_policy_version(conn: Connection, policy: RetentionPolicy) -> None:
    """Store the rules behind the version at its first use.

    Raises ``PolicyChangedError`` when the version was used with other rules before.
    """
    first = policy_versions.use_version(
        conn, policy=policy.name, policy_version=policy.version, rules_hash=policy.rules_hash
    )
    if first != policy.rules_hash:
        raise PolicyChangedError(
            f"policy {policy.name}: source, select, versions, age, keep, pointers, keep_newest_noncurrent, "
            f"bypass_governance, tenant or timezone changed, and `version` is still "
            f"{policy.version!r}: give it a new version, so that every delete can be traced to its rules"
        )


def _refuse_future_start(conn: Connection, policy: RetentionPolicy) -> None:
    """Refuse a start in the future: the watermark would stand there, and it only moves forward."""
    if policy.start_at is not None and policy.start_at > watermarks.read_clock(conn):
        raise PolicyError(
            f"policy {policy.name}: start_at = {policy.start_at.isoformat()!r} lies in the future by the clock of the "
            "ledger; name a time that has passed, or leave it out"
        )


def run(conn: Connection, policy: RetentionPolicy, holder: Holder) -> ClaimResult:
    """Claim the interval that this run works on.

    The run's own interval again, or the unfinished one that nobody holds, or the next slice; when another
    live run holds the unfinished one, it is observed and nothing is done.
    Raises ``PolicyChangedError`` or ``PolicyError`` before anything is claimed.
    """
    lease = policy.window.lease
    _refuse_future_start(conn, policy)
    with transaction(conn):
        # The watermark before all else, as everywhere: two orders would be a deadlock.
        position, now = watermarks.lock(conn, policy=policy.name, start_at=policy.start_at or BEGINNING)
        use_policy_version(conn, policy)
        mine = intervals.find_of_run(conn, policy=policy.name, holder=holder)
        unfinished = intervals.find_unfinished(conn, policy=policy.name)
        action = decide_claim(mine=mine, unfinished=unfinished, holder=holder.run, now=now)
        if action is ClaimAction.REPEAT and mine is not None:
            return ClaimResult(ClaimStatus.CLAIMED, mine.interval_id, mine.interval.key)
        if unfinished is not None:
            if action is ClaimAction.OBSERVE:
                watermarks.count_conflict(conn, policy=policy.name)
                return ClaimResult(ClaimStatus.OBSERVED, unfinished.interval_id, unfinished.interval.key)
            intervals.claim(
                conn,
                unfinished.interval_id,
                policy_version=policy.version,
                lease=lease,
                holder=holder,
            )
            return ClaimResult(ClaimStatus.CLAIMED, unfinished.interval_id, unfinished.interval.key)
        interval = next_interval(
            policy.name,
            position=position,
            now=now,
            safety_delay=policy.window.safety_delay,
            width=policy.window.width,
        )
        if interval is None:
            return ClaimResult(ClaimStatus.CAUGHT_UP)
        interval_id = intervals.insert(
            conn, interval, policy_version=policy.version, lease=lease, holder=holder
        )
        return ClaimResult(ClaimStatus.CLAIMED, interval_id, interval.key)
