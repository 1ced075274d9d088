"""The task body of the restore DAG: what it selects, what it brings back, and what it says of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from s3_retention import errors
from s3_retention.core.restore_form import parse_restore_form
from s3_retention.runtime.connections import open_ledger, open_restored_store
from s3_retention.runtime.context import holder, triggering_user
from s3_retention.runtime.failing import airflow_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.steps.restore import RestoreResult

log = structlog.get_logger("s3_retention")


def restore_objects(params: Mapping[str, Any]) -> dict[str, Any]:
    """Restore what the form selects, or say what would be restored; counts by outcome.

    Fails when an object could not be looked at, or its marker not removed: the others are back.
    """
    from s3_retention.steps import restore

    with airflow_errors():
        form = parse_restore_form(params)
        gateway = open_restored_store(params.get("aws_conn_id"), parallel=restore.PARALLEL)
        with open_ledger() as conn:
            result = restore.run(conn, gateway, form, holder(), acted_by=triggering_user())
        for one in result.sample:
            deleted = one.deleted
            log.info(
                "would be" if form.is_dry_run else "is",
                outcome=one.kind.value,
                object=str(deleted.facts.ref),
                operation_id=deleted.operation_id.hex(),
                marker=deleted.marker_version_id,
            )
        log.info("restore", dry_run=form.is_dry_run, **result.num_by_kind)
        if not result.num_by_kind:
            log.warning(
                "nothing is selected: of all that the ledger has as deleted, nothing matches the form"
            )
        if result.is_limited:
            log.warning(
                "max_objects is reached: there may be more that is selected", max_objects=form.max_objects
            )
        num_back = sum(result.num_by_kind.get(kind, 0) for kind in ("restored", "already_restored"))
        if num_back:
            log.warning(
                "WHAT IS RESTORED IS DUE AGAIN: the next interval deletes it once more, unless a legal hold is placed "
                "on it (s3_retention_hold) or the policy is changed",
                num_objects=num_back,
            )
        if result.num_failed:
            raise errors.RestoreFailedError(_failed(result))
    return {"dry_run": form.is_dry_run, **result.num_by_kind}


def _failed(result: RestoreResult) -> str:
    others = (
        "the run ended there, and what comes behind was not looked at"
        if result.is_stopped
        else "the others were dealt with"
    )
    what = f"{result.num_failed} objects could not be brought back; {others}"
    first = result.first_failed
    if first is None or first.failure is None:
        return f"{what}; s3_retention.restores says why"
    failure = first.failure
    return (
        f"{what}; the first of them {str(first.deleted.facts.ref)!r}: {failure.kind.value} "
        f"({failure.code or 'no code'}: {failure.message or 'no message'}); correct the cause and trigger the same "
        "restore again"
    )
