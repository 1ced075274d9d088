"""The task body of the audit DAG: the rows and objects of one policy held against each other, and what is overdue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from s3_retention import errors
from s3_retention.runtime.connections import open_ledger, open_rows, open_store
from s3_retention.runtime.context import holder, triggering_user
from s3_retention.runtime.environment import load_policy, read_policies
from s3_retention.runtime.failing import airflow_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.core.audit import Audit
    from s3_retention.core.policy import RetentionPolicy

log = structlog.get_logger("s3_retention")


def audit_policy(params: Mapping[str, Any]) -> dict[str, Any]:
    """Audit the policy that the form names, what was read and the counts by kind; or, where it names none, all.

    Green whatever it finds. Fails where a side cannot be read whole: then nothing of that policy is written down.
    """
    with airflow_errors():
        note = (params["note"] or "").strip() or None
        if params["quarantine"] and note is None:
            raise errors.AuditRefusedError(
                "note is empty: say why these objects are to go, it is kept with your name"
            )
        if params["policy"]:
            found = _audit(load_policy(params["policy"]), note, is_parking=params["quarantine"])
            return {
                "policy": params["policy"],
                "num_rows": found.num_rows,
                "num_objects": found.num_objects,
                "num_parked": found.num_parked,
                "counts": found.as_counts(),
            }
        if params["quarantine"]:
            raise errors.AuditRefusedError("policy is empty: objects of one policy alone go to quarantine")
        return _audit_all(note)


def _audit_all(note: str | None) -> dict[str, Any]:
    """Audit each policy, one after another; one at which something fails does not stand in the way of the others.

    Raises ``AuditUnfinishedError``, when all else is done, for a broken file and for a side that could not be read.
    """
    num_found, failed = {}, []
    for file in read_policies():
        if file.policy is None:
            failed.append(str(file.error))
            continue
        try:
            num_found[file.policy.name] = _audit(file.policy, note).num_found
        except Exception as error:
            # Also what a connection or a driver raises: the policies after it are audited all the same.
            is_ours = isinstance(error, errors.S3RetentionError)
            why = str(error) if is_ours else f"{type(error).__name__}: see the log"
            failed.append(f"{file.policy.name}: {why}")
            log.exception("not audited", policy=file.policy.name)
    if failed:
        raise errors.AuditUnfinishedError("\n".join(failed))
    return {"num_policies": len(num_found), "num_found": sum(num_found.values())}


def _audit(policy: RetentionPolicy, note: str | None, *, is_parking: bool = False) -> Audit:
    from s3_retention.sources.s3_listing import S3Listing
    from s3_retention.steps import audit

    source = policy.source
    # It looks, as a simulation does.
    store = open_store(policy, conn_id=source.simulate_aws_conn_id)
    rows = open_rows(policy) if source.rows is not None else None
    sides = audit.Sides(S3Listing(store, source.bucket, source.prefix), store, rows, rows)
    with open_ledger() as conn:
        found = audit.run(
            conn, sides, policy, holder(), acted_by=triggering_user(), note=note, is_parking=is_parking
        )
    for line in str(found).splitlines():
        log.info(line)
    if found.num_found:
        log.warning(
            "the audit has found differences: docs/runbook.md says what to do",
            policy=policy.name,
            count=found.num_found,
        )
    return found
