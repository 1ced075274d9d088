"""The task body of the audit DAG: the rows and objects of one policy held against each other, and what is overdue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from s3_retention import errors
from s3_retention.runtime.connections import open_ledger, open_rows, open_store
from s3_retention.runtime.context import holder, triggering_user
from s3_retention.runtime.environment import load_policy
from s3_retention.runtime.failing import airflow_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

log = structlog.get_logger("s3_retention")


def audit_policy(params: Mapping[str, Any]) -> dict[str, Any]:
    """Audit the policy that the form names: what was read, and the counts by kind.

    Green whatever it finds. Fails where a side cannot be read whole: then nothing is written down.
    """
    from s3_retention.sources.s3_listing import S3Listing
    from s3_retention.steps import audit

    with airflow_errors():
        note = (params["note"] or "").strip() or None
        if params["quarantine"] and note is None:
            raise errors.AuditRefusedError(
                "note is empty: say why these objects are to go, it is kept with your name"
            )
        policy = load_policy(params["policy"])
        source = policy.source
        # It looks, as a simulation does.
        store = open_store(policy, conn_id=source.simulate_aws_conn_id)
        rows = open_rows(policy) if source.rows is not None else None
        sides = audit.Sides(S3Listing(store, source.bucket, source.prefix), store, rows, rows)
        with open_ledger() as conn:
            found = audit.run(
                conn,
                sides,
                policy,
                holder(),
                acted_by=triggering_user(),
                note=note,
                is_parking=params["quarantine"],
            )
    for line in str(found).splitlines():
        log.info(line)
    if found.num_found:
        log.warning("the audit has found differences: docs/runbook.md says what to do", count=found.num_found)
    return {
        "policy": policy.name,
        "num_rows": found.num_rows,
        "num_objects": found.num_objects,
        "num_parked": found.num_parked,
        "counts": found.as_counts(),
    }
