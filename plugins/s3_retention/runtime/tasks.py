"""The bodies of the tasks: open what the step needs, run it, log its counts, give ids and counts to XCom."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from s3_retention import errors
from s3_retention.core.metrics import figures_of_run
from s3_retention.runtime import metrics
from s3_retention.runtime.connections import open_ledger, open_rows, open_source, open_store
from s3_retention.runtime.context import failed_map_indexes, holder, triggered_at
from s3_retention.runtime.environment import load_policy, max_map_length, settings
from s3_retention.runtime.failing import airflow_errors
from s3_retention.runtime.uploads import abort_uploads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from s3_retention.core.policy import Window
    from s3_retention.core.report import RunReport
    from s3_retention.steps.quarantine import QuarantineResult
    from s3_retention.store.batches import DealtBatch
    from s3_retention.store.connection import Connection

log = structlog.get_logger("s3_retention")

SIMULATED = "simulated"
CLAIMED = "claimed"


def claim_interval(policy_name: str) -> dict[str, Any]:
    """Claim the interval of this run: its status, id and key."""
    from s3_retention.steps import claim

    with airflow_errors():
        policy = load_policy(policy_name)
        if policy.mode == "simulate":
            log.info("simulate: nothing is claimed", policy=policy.name)
            return {"status": SIMULATED, "interval_id": None, "interval_key": None}
        with open_ledger() as conn:
            got = claim.run(conn, policy, holder())
    log.info("interval", policy=policy.name, interval=got.interval_key, status=got.status.value)
    return {
        "status": got.status.value,
        "interval_id": got.interval_id,
        "interval_key": got.interval_key,
    }


def plan_commands(policy_name: str, claim: Mapping[str, Any]) -> bool:
    """Plan the claimed interval and deal it to this run; True where it is over a limit, and waits for an answer."""
    from s3_retention.steps import plan, simulate

    if claim["status"] not in (CLAIMED, SIMULATED):
        return False
    with airflow_errors():
        policy = load_policy(policy_name)
        source = open_source(policy, is_simulated=claim["status"] == SIMULATED)
        with open_ledger() as conn:
            if claim["status"] == SIMULATED:
                planned, simulation = simulate.run(conn, source, policy, holder())
                for line in str(simulation).splitlines():
                    log.info(line)
            else:
                planned = plan.run(
                    conn,
                    source,
                    policy,
                    claim["interval_id"],
                    holder(),
                    max_batches=max_map_length(),
                )
    log.info(
        "plan",
        summary=str(planned),
        policy=policy.name,
        interval=claim["interval_key"],
        count=planned.num_discovered,
        waits_for_approval=planned.is_waiting,
    )
    return planned.is_waiting


def delete_batch(batch: Mapping[str, int]) -> dict[str, Any]:
    """Deliver one batch. Fails when something of it did not end, and is tried again where that may help."""
    from s3_retention.steps import delete
    from s3_retention.store import batches

    with airflow_errors(), open_ledger() as conn:
        try:
            policy = load_policy(batches.get_policy(conn, batch["batch_id"]))
            store = open_store(policy)
            rows = open_rows(policy) if policy.source.rows is not None else None
        except (errors.PolicyError, errors.SettingsError) as error:
            # No object is to blame, so none goes to quarantine: the batch waits for the next run.
            delete.stop(
                conn,
                batch["batch_id"],
                holder(),
                lease=timedelta(0),
                stopped_class="config",
                stopped_message=str(error),
            )
            raise
        result = delete.run(conn, store, policy, batch["batch_id"], holder(), rows=rows)
        log.info(
            "batch was done before" if result.was_closed else "batch delivered",
            policy=policy.name,
            batch=batch["batch_id"],
            count=sum(result.num_by_outcome.values()),
            failed=result.num_failed,
            **result.num_by_outcome,
        )
        if result.stopped_class is not None:
            stopped = errors.UnfinishedError if result.may_pass else errors.BatchStoppedError
            raise stopped(
                f"stopped by {result.stopped_class} ({result.stopped_message}): nothing more was sent, and "
                "report_run says where the rest waits; see docs/runbook.md"
            )
        if result.num_retryable:
            raise errors.UnfinishedError(f"{result.num_failed:,} commands did not end; trying again")
        if result.num_failed:
            raise errors.S3RetentionError(
                f"{result.num_failed:,} commands cannot end by themselves; quarantine_failed takes them"
            )
    return {"batch_id": batch["batch_id"], **result.num_by_outcome}


def quarantine_failed(delete_task_id: str, policy_name: str | None = None) -> dict[str, Any]:
    """Move what the workers left unfinished to quarantine: of this run, and of runs of the policy that are over."""
    from s3_retention.steps import quarantine

    with airflow_errors(), open_ledger() as conn:
        swept = quarantine.run(conn, holder(), failed_map_indexes=failed_map_indexes(delete_task_id))
        lost = _sweep_lost(conn, policy_name)
    for failure_class, count in (Counter(swept.num_by_class) + Counter(lost.num_by_class)).items():
        log.warning("quarantined", policy=policy_name, failure_class=failure_class, count=count)
    return {"num_batches": swept.num_batches, "num_lost_batches": lost.num_batches, **swept.num_by_class}


def _sweep_lost(conn: Connection, policy_name: str | None) -> QuarantineResult:
    """Sweep runs of this policy that are over without having swept. The watch does so, too, where it is on."""
    from s3_retention.steps import quarantine

    if policy_name is None:
        return quarantine.QuarantineResult(0)
    try:
        policy = load_policy(policy_name)
    except errors.PolicyError as error:
        log.warning(
            "runs that are over were not swept; the watch does it", policy=policy_name, why=str(error)
        )
        return quarantine.QuarantineResult(0)
    me = holder()
    return quarantine.run_lost(
        conn,
        policy=policy_name,
        rescue_after=policy.window.lease + settings().task_retry_delay,
        rescuer=f"{me.dag_id}.{me.task_id}",
    )


def report_cleanup(policy_name: str, claim: Mapping[str, Any] | None, batches: Any) -> dict[str, Any]:
    """Report a cleanup run and close its interval. Fails when it does not balance or anything was stopped.

    ``claim`` and ``batches`` are what the tasks before gave, None from one that failed: a last task that always
    runs must not paint such a run green.
    """
    with airflow_errors():
        if claim is None:
            raise errors.NotPlannedError("claim_interval failed, so nothing was planned or deleted")
        reported = {"status": claim["status"]}
        broken = None
        if claim["status"] == CLAIMED:
            # First, so that the report counts them; what goes wrong with them must not keep the report back.
            broken = abort_uploads(policy_name, claim["interval_id"])
            reported = report_run(policy_name, claim["interval_id"])
        if batches is None:
            raise errors.NotPlannedError(
                "nothing was dealt: see plan_commands, approve_plan and deal_batches; the next run goes on from there"
            )
        if broken is not None:
            raise broken
        log.info("reported", policy=policy_name, interval=claim["interval_key"], status=claim["status"])
        return reported


def report_run(policy_name: str | None, interval_id: int | None) -> dict[str, Any]:
    """Report this run: one screen in the log, the counts for XCom, the whole in the ledger."""
    from s3_retention.steps import report

    with open_ledger() as conn:
        done: RunReport = report.run(
            conn,
            holder(),
            policy=policy_name,
            interval_id=interval_id,
            window=_window(policy_name),
            triggered_at=triggered_at(),
            tell=partial(_tell, policy_name),
        )
    counts = done.counts()
    # Names have no place in an XCom, and 20 of them may be long: it stays well under 4 KB.
    del counts["tenants"]
    return counts


def _tell(policy_name: str | None, done: RunReport) -> None:
    """Tell of a run before it fails: what came of a red one is what is asked for first."""
    log.info("report", policy=policy_name, count=done.num_discovered, **done.counts())
    for line in str(done).splitlines():
        log.info(line)  # the one screen for the operator
    metrics.send(figures_of_run(done))


def _window(policy_name: str | None) -> Window | None:
    """Read how the policy cuts its intervals; None where it cannot be told: the report goes on without."""
    if policy_name is None:
        return None
    try:
        return load_policy(policy_name).window
    except errors.PolicyError as error:
        log.warning("whether the policy keeps up is not told", policy=policy_name, why=str(error))
        return None


def for_xcom(dealt: Iterable[DealtBatch]) -> list[dict[str, int]]:
    """Give batches as plain values: ids and counts."""
    return [
        {"batch_id": one.batch_id, "number": one.batch_number, "num_commands": one.num_commands}
        for one in dealt
    ]
