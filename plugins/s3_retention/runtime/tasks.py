"""The bodies of the tasks: open what the step needs, run it, log its counts, give ids and counts to XCom."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog
from airflow.providers.common.compat.sdk import get_current_context

from s3_retention import errors
from s3_retention.core.holder import Holder
from s3_retention.runtime.connections import open_ledger, open_store
from s3_retention.runtime.environment import load_policy, max_map_length
from s3_retention.runtime.failing import airflow_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from s3_retention.core.report import RunReport
    from s3_retention.store.batches import DealtBatch

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


def plan_commands(policy_name: str, claim: Mapping[str, Any]) -> list[dict[str, int]]:
    """Plan the claimed interval and give the batches of this run; none where there is nothing to do."""
    from s3_retention.sources.s3_listing import S3Listing
    from s3_retention.steps import plan

    if claim["status"] not in (CLAIMED, SIMULATED):
        return []
    with airflow_errors():
        policy = load_policy(policy_name)
        source = S3Listing(open_store(policy), policy.source.bucket, policy.source.prefix)
        with open_ledger() as conn:
            if claim["status"] == SIMULATED:
                planned = plan.simulate(conn, source, policy)
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
    )
    return _for_xcom(planned.batches)


def select_quarantined(params: Mapping[str, Any]) -> list[dict[str, int]]:
    """Select the quarantined commands that the form asks for and give the batches of this run."""
    from s3_retention.steps import redrive

    with airflow_errors(), open_ledger() as conn:
        selected = redrive.run(
            conn,
            redrive.Selection(
                policy=params["policy"] or None,
                failure_classes=tuple(params["failure_classes"] or ()) or None,
                operation_ids=tuple(params["operation_ids"] or ()) or None,
                max_commands=params["max_commands"],
            ),
            holder(),
            acted_by=getattr(get_current_context()["dag_run"], "triggering_user_name", None),
            max_batches=max_map_length(),
        )
    log.info("selected for redrive", count=selected.num_selected, policy=params["policy"])
    return _for_xcom(selected.batches)


def delete_batch(batch: Mapping[str, int]) -> dict[str, Any]:
    """Deliver one batch. Fails when something of it did not end, and is tried again where that may help."""
    from s3_retention.steps import delete
    from s3_retention.store import batches

    with airflow_errors(), open_ledger() as conn:
        try:
            policy = load_policy(batches.get_policy(conn, batch["batch_id"]))
            store = open_store(policy)
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
        result = delete.run(conn, store, policy, batch["batch_id"], holder())
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


def quarantine_failed(delete_task_id: str) -> dict[str, Any]:
    """Move what the workers left unfinished to quarantine."""
    from s3_retention.steps import quarantine

    with airflow_errors(), open_ledger() as conn:
        swept = quarantine.run(conn, holder(), failed_map_indexes=_failed_map_indexes(delete_task_id))
    for failure_class, count in swept.num_by_class.items():
        log.warning("quarantined", failure_class=failure_class, count=count)
    return {"num_batches": swept.num_batches, **swept.num_by_class}


def report_cleanup(policy_name: str, claim: Mapping[str, Any] | None, batches: Any) -> dict[str, Any]:
    """Report a cleanup run and close its interval. Fails when it does not balance or anything was stopped.

    ``claim`` and ``batches`` are what the tasks before gave, None from one that failed: a last task that always
    runs must not paint such a run green.
    """
    with airflow_errors():
        if claim is None:
            raise errors.NotPlannedError("claim_interval failed, so nothing was planned or deleted")
        reported = {"status": claim["status"]}
        if claim["status"] == CLAIMED:
            reported = _report(policy_name, claim["interval_id"])
        if batches is None:
            raise errors.NotPlannedError("plan_commands failed: see its log; the next run goes on from there")
        log.info("reported", policy=policy_name, interval=claim["interval_key"], status=claim["status"])
        return reported


def report_redrive(batches: Any) -> dict[str, Any]:
    """Report a redrive run. Fails when it does not balance, when anything was stopped, or without a selection."""
    with airflow_errors():
        if batches is None:
            raise errors.NotPlannedError("select_quarantined failed, so nothing was redriven: see its log")
        return _report(None, None)


def _report(policy_name: str | None, interval_id: int | None) -> dict[str, Any]:
    from s3_retention.steps import report

    with open_ledger() as conn:
        done: RunReport = report.run(conn, holder(), policy=policy_name, interval_id=interval_id)
    log.info("report", policy=policy_name, count=done.num_discovered, **done.counts())
    for line in str(done).splitlines():
        log.info(line)  # the one screen for the operator
    return done.counts()


def holder() -> Holder:
    """Say who this try of this task is."""
    ti = get_current_context()["ti"]
    return Holder(
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task_id=ti.task_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        try_number=ti.try_number,
    )


def _for_xcom(dealt: Iterable[DealtBatch]) -> list[dict[str, int]]:
    return [
        {"batch_id": one.batch_id, "number": one.batch_number, "num_commands": one.num_commands}
        for one in dealt
    ]


def _failed_map_indexes(task_id: str) -> frozenset[int]:
    """Ask Airflow which mapped tasks failed: a hint, which the ledger can do without."""
    ti = get_current_context()["ti"]
    try:
        states = ti.get_task_states(dag_id=ti.dag_id, task_ids=[task_id], run_ids=[ti.run_id])
    except Exception:
        log.warning("Airflow gave no task states; the ledger alone decides", exc_info=True)
        return frozenset()
    return frozenset(
        int(name.rpartition("_")[2])
        for name, state in states.get(ti.run_id, {}).items()
        if state == "failed" and name.rpartition("_")[2].isdigit()
    )
