"""One pass of the watch: what no run of a policy can say about itself. It opens no store and deletes no object."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.watched import WatchedPolicy, watch_policy, watch_without_file
from s3_retention.errors import LedgerUnavailableError, S3RetentionError
from s3_retention.steps import find, flag_missed, quarantine
from s3_retention.store import batches, intervals, replays, schedules, watch_passes
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from s3_retention.core.holder import Holder
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.ticks import TicksBetween
    from s3_retention.steps.flag_missed import FlagResult, Hints
    from s3_retention.store.connection import Connection


@dataclass(frozen=True, slots=True)
class Asking:
    """How the watch asks Airflow: for the ticks of a timetable, and for hints about a DAG."""

    ticks_of: Callable[[str], TicksBetween]
    hints_of: Callable[[str], Hints]


@dataclass
class WatchResult:
    """What one pass did. ``errors`` says of which policies a part could not be done; all else was."""

    released_intervals: list[int] = field(default_factory=list)
    released_replays: list[int] = field(default_factory=list)
    released_batches: list[int] = field(default_factory=list)
    num_flagged: Counter[str] = field(default_factory=Counter)
    num_resolved: int = 0
    num_swept_batches: int = 0
    num_swept: Counter[str] = field(default_factory=Counter)
    num_opened: int = 0
    num_closed: int = 0
    errors: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, object]:
        """Give the pass as plain values, for the ledger."""
        return {
            "released_intervals": self.released_intervals,
            "released_replays": self.released_replays,
            "released_batches": self.released_batches,
            "num_flagged": dict(self.num_flagged),
            "num_resolved": self.num_resolved,
            "num_swept_batches": self.num_swept_batches,
            "num_swept": dict(self.num_swept),
            "num_opened": self.num_opened,
            "num_closed": self.num_closed,
            "errors": self.errors,
        }


def run(
    conn: Connection,
    policies: Sequence[RetentionPolicy],
    holder: Holder,
    *,
    asking: Asking,
    retry_delay: timedelta,
) -> WatchResult:
    """Watch the given policies, and those that only the ledger knows.

    ``retry_delay`` is how long Airflow waits before it tries a failed task again: for so long after its lease a
    run is not over. A policy at which something fails does not stand in the way of the others. Raises
    ``LedgerUnavailableError`` when nothing more can be done.
    """
    result = WatchResult()
    with transaction(conn):
        result.released_intervals = intervals.release_expired(conn)
        result.released_replays = replays.release_expired(conn)
        result.released_batches = batches.release_expired(conn)
    watched = _all_policies(conn, policies)
    unknown: list[WatchedPolicy] = []
    for one in watched:
        try:
            flagged = _watch_one(conn, one, holder, result, asking=asking, retry_delay=retry_delay)
        except LedgerUnavailableError:
            raise
        except S3RetentionError as error:
            result.errors.append(f"{one.name}: {error}")
            continue
        if flagged.is_unknown:
            unknown.append(one)
    result.num_opened, result.num_closed = find.run(conn, watched, unknown_ticks=unknown)
    with transaction(conn):
        watch_passes.insert(conn, run_id=holder.run_id, did=result.counts())
    return result


def _all_policies(conn: Connection, policies: Sequence[RetentionPolicy]) -> list[WatchedPolicy]:
    by_name = {
        name: watch_without_file(name, timetable) for name, timetable in schedules.list_known(conn).items()
    } | {policy.name: watch_policy(policy) for policy in policies}
    return [by_name[name] for name in sorted(by_name)]


def _watch_one(
    conn: Connection,
    watched: WatchedPolicy,
    holder: Holder,
    result: WatchResult,
    *,
    asking: Asking,
    retry_delay: timedelta,
) -> FlagResult:
    swept = quarantine.run_lost(
        conn,
        policy=watched.name,
        rescue_after=watched.lease + retry_delay,
        rescuer=f"{holder.dag_id}.{holder.task_id}",
    )
    result.num_swept_batches += swept.num_batches
    result.num_swept.update(swept.num_by_class)
    flagged = flag_missed.run(
        conn,
        watched,
        this=None,
        ticks_between=asking.ticks_of(watched.timetable or ""),
        hints=asking.hints_of(watched.dag_id),
        flagged_by=holder.run,
    )
    result.num_flagged.update(flagged.num_flagged)
    result.num_resolved += flagged.num_resolved
    return flagged
