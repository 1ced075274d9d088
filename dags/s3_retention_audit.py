"""
### S3 retention: audit

Holds a policy against what is there, and deletes nothing. Of a policy of orphaned rows: objects that no row names, rows
whose object is not there or that name none, and objects that are still there after their deadline. Of a policy of a
listing: the last of these. What differs is looked at twice; what came or went meanwhile is no difference.

The log shows the first of each kind, the ledger keeps up to a thousand of each. **`quarantine`** puts objects without a
row, which are as old as an orphan must be, into quarantine, from where `s3_retention_redrive` deletes them: after one
more look at rows and references. **Differences are no failure:** the run is green. Red is that one side could not be
read whole; nothing is written then. **Safe to clear:** a run audits once. What to do: `docs/runbook.md`::

    SELECT kind, bucket, key, row_id FROM s3_retention.audit_differences ORDER BY audit_id DESC, kind, key
"""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import DAG, Param, task

from s3_retention.runtime import auditing, environment, form_fields

with DAG(
    dag_id="s3_retention_audit",
    description="Holds rows, objects and deadlines of a policy against each other.",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    default_args=environment.retry_arguments(),
    tags=["s3-retention", "manual"],
    params={
        "policy": form_fields.named_policy("Whose rows and objects."),
        "quarantine": Param(
            default=False,
            type="boolean",
            title="Quarantine",
            description="Put old objects that no row names into quarantine, for a redrive to delete.",
        ),
        "note": Param(
            None,
            **form_fields.NOTE,
            title="Note",
            description="Why, in a sentence. Needed to put something into quarantine.",
        ),
    },
) as dag:

    @task(
        doc_md="Reads both sides, compares them in the ledger, and writes down what differs. Deletes nothing."
    )
    def audit_policy(params: dict[str, Any] | None = None) -> dict[str, Any]:
        return auditing.audit_policy(params or {})

    audit_policy()
