"""The task bodies of the redrive DAG: what it selects, quarantined commands or one interval, and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from s3_retention import errors
from s3_retention.runtime.connections import open_ledger, open_source
from s3_retention.runtime.context import holder, triggering_user
from s3_retention.runtime.environment import load_policy, max_map_length
from s3_retention.runtime.failing import airflow_errors
from s3_retention.runtime.tasks import for_xcom, report_run

if TYPE_CHECKING:
    from collections.abc import Mapping

log = structlog.get_logger("s3_retention")


def select_commands(params: Mapping[str, Any]) -> list[dict[str, int]]:
    """Select what the form asks for, quarantined commands or the replay of one interval: the batches of this run."""
    if params["replay_interval"]:
        return _replay(params)
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
            acted_by=triggering_user(),
            max_batches=max_map_length(),
        )
    log.info("selected for redrive", count=selected.num_selected, policy=params["policy"])
    return for_xcom(selected.batches)


def _replay(params: Mapping[str, Any]) -> list[dict[str, int]]:
    from s3_retention.steps import replay

    interval_key = params["replay_interval"]
    with airflow_errors(), open_ledger() as conn:
        others = [name for name in ("policy", "failure_classes", "operation_ids") if params[name]]
        if others:
            raise errors.ReplayRefusedError(
                f"replay_interval and {' and '.join(others)} are both given: an interval is replayed whole, and "
                "quarantined commands are redriven; leave one of the two empty"
            )
        policy = load_policy(replay.find_policy_name(conn, interval_key))
        planned = replay.run(
            conn,
            open_source(policy),
            policy,
            interval_key,
            holder(),
            acted_by=triggering_user(),
            max_batches=max_map_length(),
        )
    log.info(
        "replay planned",
        plan=str(planned),
        policy=policy.name,
        interval=interval_key,
        count=planned.num_discovered,
    )
    return for_xcom(planned.batches)


def report_redrive(batches: Any) -> dict[str, Any]:
    """Report a redrive or a replay. Fails when it does not balance, anything was stopped, or nothing was selected."""
    with airflow_errors():
        reported = report_run(None, None)
        if batches is None:
            raise errors.NotPlannedError("select_commands failed, so nothing was redriven: see its log")
        return reported
