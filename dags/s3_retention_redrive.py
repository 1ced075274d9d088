"""
### S3 retention: redrive and replay

Returns quarantined commands through the same delete, quarantine and report tasks that failed them. Trigger it when
the cause is gone: the permission corrected, the bucket policy lifted, the store back.

**A dry run first**: that is the default, and its log shows what is selected. Every field narrows the selection; what is
left empty selects everything. Each object is looked at and decided again under today's policy: one that is no longer
selected, has changed, or is gone already is closed as such and not deleted. What fails again goes back to quarantine
with its new cause; after `limits.max_redrives` times only its operation id takes it. Two redrives never take the same
command. `waive` closes commands undeleted, with your note and name. Or **replay one interval**, by its key: everything
that is due in that slice of time is listed, decided and deleted once more by the rules of today. What the interval has
settled is not repeated. To see what waits::

    SELECT failure_class, code, key, encode(operation_id, 'hex') FROM s3_retention.quarantine WHERE resolved_at IS NULL
"""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import DAG, TriggerRule, task

from s3_retention.runtime import environment, redrive_form, redriving, tasks

with DAG(
    dag_id="s3_retention_redrive",
    description="Returns quarantined commands through the same code that failed them.",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    default_args=environment.retry_arguments(),
    tags=["s3-retention", "manual"],
    params=redrive_form.redrive_params(),
) as dag:

    @task(doc_md="Takes the selected rows, each for this run alone; or plans the replay of an interval.")
    def select_commands(params: dict[str, Any] | None = None) -> list[dict[str, int]]:
        return redriving.select_commands(params or {})

    @task(
        map_index_template=environment.BATCH_LABEL,
        doc_md="Deletes one batch. Clear it at will: nothing goes twice.",
    )
    def delete_batch(batch: dict[str, int]) -> dict[str, Any]:
        return tasks.delete_batch(batch)

    @task(trigger_rule=TriggerRule.ALL_DONE, doc_md="Puts what failed again back, with its new cause.")
    def quarantine_failed() -> dict[str, Any]:
        return tasks.quarantine_failed("delete_batch")

    @task(trigger_rule=TriggerRule.ALL_DONE, doc_md="Counts and checks the balance.")
    def report_run(batches: Any) -> dict[str, Any]:
        return redriving.report_redrive(batches)

    batches = select_commands()
    delete_batch.expand(batch=batches) >> quarantine_failed() >> report_run(batches)
