"""The task body of the audit DAG: whose rows and objects, what differs, and what a redrive is to take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from s3_retention import errors
from s3_retention.runtime.connections import open_ledger, open_source, open_store
from s3_retention.runtime.context import holder, triggering_user
from s3_retention.runtime.environment import load_policy
from s3_retention.runtime.failing import airflow_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

log = structlog.get_logger("s3_retention")


def audit_policy(params: Mapping[str, Any]) -> dict[str, Any]:
    """Audit the policy of the form, and say what differs: counts by kind. Differences are no failure."""
    from s3_retention.steps import audit
    from s3_retention.steps.park_unnamed import AuditForm

    with airflow_errors():
        note = (params["note"] or "").strip() or None
        if params["quarantine"] and note is None:
            raise errors.AuditRefusedError(
                "note is empty: say why these objects are to go, it is kept with your name"
            )
        policy = load_policy(params["policy"])
        form = AuditForm(bool(params["quarantine"]), note)
        source = open_source(policy)
        gateway = open_store(policy)
        with open_ledger() as conn:
            found = audit.run(conn, source, gateway, policy, form, holder(), acted_by=triggering_user())
    for line in str(found).splitlines():
        log.info(line)
    log.info("audit", policy=policy.name, count=sum(found.num_by_kind.values()), **found.num_by_kind)
    return {
        "num_objects": found.num_objects,
        "num_rows": found.num_rows,
        "num_quarantined": found.num_quarantined,
        **found.num_by_kind,
    }
