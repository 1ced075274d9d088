"""The task body of the hold DAG: what a person orders about the deletes, done and recorded with the name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from s3_retention.core.lever import parse_lever
from s3_retention.runtime.connections import open_ledger
from s3_retention.runtime.context import holder, triggering_user
from s3_retention.runtime.failing import airflow_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

log = structlog.get_logger("s3_retention")


def pull_lever(params: Mapping[str, Any]) -> dict[str, Any]:
    """Do what the form says: the action, and the id of the hold, the switch or the pause."""
    from s3_retention.steps import hold

    with airflow_errors():
        lever = parse_lever(params)
        with open_ledger() as conn:
            done = hold.run(conn, lever, holder(), acted_by=triggering_user())
    log.info(
        done.said,
        action=params["action"],
        policy=params["policy"],
        tenant=params["tenant"],
        acted_id=done.acted_id,
    )
    return {"action": params["action"], "acted_id": done.acted_id}
