"""The task bodies that look after time: flagging missed ticks, and the passes of the watch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import structlog
from airflow.providers.common.compat.sdk import get_current_context

from s3_retention import errors
from s3_retention.core.ticks import Tick
from s3_retention.core.watched import watch_policy
from s3_retention.runtime import metrics
from s3_retention.runtime.connections import open_ledger
from s3_retention.runtime.context import holder
from s3_retention.runtime.environment import load_policy, read_policies, settings
from s3_retention.runtime.failing import airflow_errors
from s3_retention.runtime.hints import hints_of
from s3_retention.runtime.ticks import ticks_of_policy, ticks_of_timetable
from s3_retention.settings import SECTION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from s3_retention.store.connection import Connection

log = structlog.get_logger("s3_retention")


def flag_missed_intervals(policy_name: str) -> dict[str, Any]:
    """Flag the ticks before this run that did not run."""
    from s3_retention.steps import flag_missed

    with airflow_errors():
        policy = load_policy(policy_name)
        if policy.mode == "simulate":
            log.info("simulate: no tick is missed, because none is expected", policy=policy.name)
            return {}
        context = get_current_context()
        with open_ledger() as conn:
            done = flag_missed.run(
                conn,
                watch_policy(policy),
                this=_tick_of(context["dag_run"]),
                ticks_between=ticks_of_timetable(context["dag"].timetable),
                hints=hints_of(policy.dag_id),
                flagged_by=holder().run,
            )
    for cause, count in done.num_flagged.items():
        log.warning("intervals missed", policy=policy.name, cause=cause, count=count)
    log.info(
        "a new series of ticks begins"
        if done.is_new_series
        else "ticks told"
        if not done.is_unknown
        else "ticks unknown",
        policy=policy.name,
        count=sum(done.num_flagged.values()),
        resolved=done.num_resolved,
    )
    return {"num_flagged": done.num_flagged, "num_resolved": done.num_resolved}


def watch_policies() -> dict[str, Any]:
    """Do one pass of the watch. Fails, when all else is done, for what could not be done or told."""
    from s3_retention.steps import measure, watch

    with airflow_errors():
        policies = [file.policy for file in read_policies() if file.policy is not None]
        with open_ledger() as conn:
            result = watch.run(
                conn,
                policies,
                holder(),
                asking=watch.Asking(ticks_of=ticks_of_policy, hints_of=hints_of),
                retry_delay=settings().task_retry_delay,
            )
            log.info("watched", policies=len(policies), **result.counts())
            result.errors.extend(_notify(conn))
            # Last: what cannot be measured must not keep a finding back.
            try:
                for standing in measure.run(conn, [policy.name for policy in policies]):
                    metrics.send(standing.figures())
            except errors.S3RetentionError as error:
                result.errors.append(f"metrics: {error}")
        if result.errors:
            raise errors.WatchError("\n".join(result.errors))
    return result.counts()


def _tick_of(dag_run: Any) -> Tick | None:
    """Read which tick a run is: None for one that was not scheduled, which is none."""
    if dag_run.run_type != "scheduled":
        return None
    due_at: datetime = dag_run.run_after
    return Tick(due_at, dag_run.data_interval_start or due_at, dag_run.data_interval_end or due_at)


def _notify(conn: Connection) -> list[str]:
    """Hand each open finding that none was told of to the notifier; what went wrong with which.

    A finding counts as told when the notifier has returned: one that failed is told again by the next pass.
    """
    from s3_retention.store import findings

    waiting = findings.list_unnotified(conn)
    for row in waiting:
        # The sentence first, since a line of the UI shows its beginning.
        log.warning(row["detail"]["message"], policy=row["policy"], finding=row["kind"])
    path = settings().on_finding
    if path is None:
        return []
    return [failure for row in waiting if (failure := _tell(conn, path, row)) is not None]


def _tell(conn: Connection, path: str, finding: Mapping[str, Any]) -> str | None:
    """Hand one finding to the notifier: None, or what went wrong. The notifier's own words go to the log only."""
    module, _, name = path.rpartition(".")
    try:
        notifier = getattr(import_module(module), name)()
        notifier({**get_current_context(), "finding": dict(finding)})
    except Exception as error:
        log.exception("the notifier failed", notifier=path, finding=finding["finding_id"])
        return (
            f"[{SECTION}] on_finding = {path!r} failed for finding {finding['finding_id']} ({finding['kind']}) "
            f"with {type(error).__name__}: see the log; the next pass tells it again"
        )
    from s3_retention.store import findings

    findings.mark_notified(conn, finding["finding_id"])
    return None
