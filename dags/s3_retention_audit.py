"""
### S3 retention: audit

Holds what a policy looks at against what should be there, and **deletes nothing, ever**. For a policy of source
`postgres_rows`, both ways: objects that no row names, rows whose object is not there, and orphaned files that are still
there after their deadline. For one of source `s3_listing`: objects that are still there after their deadline.

The log shows one screen: of each kind how many, and the first 20. The first 1,000 of each are looked at once more at
the end, and kept: what was uploaded, attached or put right while the audit read is no difference. It is green whatever
it finds, and red where the store or the database could not be read whole; then nothing is written down. With
**`quarantine`**, objects without a row that are as old as an orphan must be wait in quarantine, from where
`s3_retention_redrive` deletes them, after one more look. **Safe to clear:** another try is another audit. Without a
**`policy`** all are audited, one after another; so does each run by schedule, where `[s3_retention] audit_schedule`
sets one. There it is red where one could not be audited: the error names it, and the others were. What each kind
means and what to do: docs/runbook.md. What was found::

    SELECT kind, state, key, row_id, since, detail FROM s3_retention.audit_findings WHERE audit_id = <id>
"""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import DAG, Param, task

from s3_retention.runtime import auditing, environment, form_fields

with DAG(
    dag_id="s3_retention_audit",
    description="Holds rows and objects against each other, and finds what is past its deadline.",
    doc_md=__doc__,
    schedule=environment.audit_timetable(),
    catchup=False,
    max_active_runs=1,
    default_args=environment.retry_arguments(),
    tags=["s3-retention"],
    params={
        "policy": form_fields.policy("Whose rows and objects are looked at; empty for all policies."),
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
            description="Why, in a sentence; kept with the audit. Needed to put something into quarantine.",
        ),
    },
) as dag:

    @task(doc_md="Reads both sides whole, compares them in the ledger's database, and reports.")
    def audit_policy(params: dict[str, Any] | None = None) -> dict[str, Any]:
        return auditing.audit_policy(params or {})

    audit_policy()
