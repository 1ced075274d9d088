"""
### S3 retention: legal holds, the kill switch, and pauses of tenants

What a person does to the deletes. Each act takes a reason, and is kept with the name of who triggered it.

| action | what it does | fields |
| --- | --- | --- |
| `place` | holds a key, a prefix or a bucket back from every policy | `bucket`, `scope`, `name`, `ends_at` |
| `lift` | lifts one hold; what it held is due again in the next interval | `hold_id` |
| `stop` | the kill switch: running batches end between two requests | `policy`, or none for all |
| `resume` | lets the deletes go on that such a stop has stopped; the next run resumes them | `policy`, as in the stop |
| `pause_tenant` | nothing of one tenant goes, all others go on | `tenant`; `policy`, or none for all |
| `resume_tenant` | lifts such a pause; what waited is due again in the next interval | `tenant`, `policy` as paused |

An object that is held, or of a paused tenant, gets no command, and one that was planned before ends as `kept`: that is
no failure. A hold is no Object Lock: it binds this package and nobody else. A stopped run is red, and loses nothing.
**Safe to clear:** a run does its act once. What is in force::

    SELECT * FROM s3_retention.active_holds;
    SELECT * FROM s3_retention.kill_switches WHERE lifted_at IS NULL;
    SELECT * FROM s3_retention.tenant_pauses WHERE lifted_at IS NULL;
"""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import DAG, Param, task

from s3_retention.runtime import environment, form_fields, holding

with DAG(
    dag_id="s3_retention_hold",
    description="Places and lifts legal holds, stops every delete or those of a tenant, and lets them go on.",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    default_args=environment.retry_arguments(),
    tags=["s3-retention", "manual"],
    params={
        "action": Param(
            "place",
            enum=["place", "lift", "stop", "resume", "pause_tenant", "resume_tenant"],
            title="Action",
        ),
        "reason": Param(
            **form_fields.REASON,
            title="Reason",
            description="Why, in a sentence: it is kept with the act.",
        ),
        "bucket": Param(
            None,
            **form_fields.BUCKET,
            title="Bucket",
            description="To place a hold: the name alone, without s3://.",
        ),
        "scope": Param(
            "key",
            enum=["key", "prefix", "bucket"],
            title="Scope",
            description="Of a hold: one key, all that begins so, or the whole bucket.",
        ),
        "name": Param(
            None,
            **form_fields.TEXT,
            title="Key or prefix",
            description="Byte for byte, without s3:// and the bucket; empty for a whole bucket.",
        ),
        "ends_at": Param(
            None,
            **form_fields.TIME,
            title="Ends at",
            description="With its zone, as 2027-01-31T00:00:00Z; empty: until the hold is lifted.",
        ),
        "hold_id": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=2**53 - 1,
            title="Hold",
            description="The number of the one to lift.",
        ),
        "policy": form_fields.policy("To stop, pause or resume: the name of one policy; empty for all."),
        "tenant": Param(
            None,
            **form_fields.TEXT,
            title="Tenant",
            description="To pause or resume: as the policy reads it from the key, byte for byte.",
        ),
    },
) as dag:

    @task(doc_md="Does what the form says, once for this run, and records who asked for it and why.")
    def pull_lever(params: dict[str, Any] | None = None) -> dict[str, Any]:
        return holding.pull_lever(params or {})

    pull_lever()
