"""
### S3 retention: restore

Brings deleted objects of **buckets with versions** back: removes the delete markers that the ledger has recorded, where
they are still the latest of their key and what lies beneath is the very object that was deleted. All that is given
must match, and something must be given. It needs an identity that may remove markers (`s3:DeleteObjectVersion`).

**What is restored is due again:** the next interval deletes it once more, unless a legal hold is placed on it first
(`s3_retention_hold`), or the policy is changed. A dry run, the default, looks and changes nothing. **Safe to clear:**
no marker is removed twice. What became of each object, and why another one stays deleted::

    SELECT outcome, bucket, key, code, acted_by FROM s3_retention.restores WHERE run_id = '<run>';
"""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import DAG, Param, task

from s3_retention.runtime import environment, form_fields, restoring

with DAG(
    dag_id="s3_retention_restore",
    description="Brings deleted objects of buckets with versions back.",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    default_args=environment.retry_arguments(),
    tags=["s3-retention", "manual"],
    params={
        "dry_run": form_fields.dry_run("Look and say, and change nothing."),
        "operation_ids": form_fields.operation_ids(""),
        "interval_key": Param(
            None,
            **form_fields.INTERVAL,
            title="Interval",
            description="The key of one: cleanup:<policy>:<start>:<end>; empty for all.",
        ),
        "bucket": Param(None, **form_fields.BUCKET, title="Bucket", description="Empty for all."),
        "prefix": Param(
            None, **form_fields.TEXT, title="Prefix", description="In that bucket, byte for byte."
        ),
        "deleted_from": Param(
            None,
            **form_fields.TIME,
            title="Deleted from",
            description="With its zone, as 2027-01-31T00:00:00Z: from then on, by the ledger.",
        ),
        "deleted_before": Param(
            None, **form_fields.TIME, title="Deleted before", description="Before then, by the ledger."
        ),
        "max_objects": Param(1000, type="integer", minimum=1, maximum=100_000, title="At most"),
        "aws_conn_id": Param(
            None,
            **form_fields.CONNECTION,
            title="Connection",
            description="An identity that may remove markers; empty: [s3_retention] restore_aws_conn_id.",
        ),
        "note": Param(
            None,
            **form_fields.NOTE,
            title="Note",
            description="Why, in a sentence. Needed unless it is a dry run.",
        ),
    },
) as dag:

    @task(doc_md="Looks at each object, removes the markers that may go, and says why others stay.")
    def restore_objects(params: dict[str, Any] | None = None) -> dict[str, Any]:
        return restoring.restore_objects(params or {})

    restore_objects()
