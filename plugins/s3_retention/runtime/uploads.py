"""The end of a cleanup: unfinished uploads."""

from __future__ import annotations

import structlog

from s3_retention import errors
from s3_retention.runtime.connections import open_ledger, open_store
from s3_retention.runtime.context import holder
from s3_retention.runtime.environment import load_policy

log = structlog.get_logger("s3_retention")


def abort_uploads(policy_name: str, interval_id: int) -> errors.S3RetentionError | None:
    """Abort what the policy says; give what went wrong, for after the report."""
    from s3_retention.steps import abort_uploads as step

    try:
        policy = load_policy(policy_name)
        if policy.abort_incomplete_after is None:
            return None
        store = open_store(policy)
        with open_ledger() as conn:
            result = step.run(conn, store, policy, holder(), interval_id)
    except (errors.PolicyError, errors.SettingsError, errors.StoreError) as error:
        return error
    log.info(
        "unfinished uploads",
        policy=policy_name,
        count=result.num_aborted,
        already_absent=result.num_already_absent,
        failed=result.num_failed,
    )
    if result.failed is None:
        return None
    return errors.S3RetentionError(
        f"{result.num_failed:,} unfinished uploads were not aborted, the first of them {result.failed}; the next run "
        "tries again: see docs/runbook.md"
    )
