"""
### S3 retention: watch

Looks every five minutes at what no run can say about itself, and writes it down as findings. It never deletes an
object, and opens no store. **Unpause it** wherever a cleanup DAG is enforced.

| it does | for |
| --- | --- |
| flags ticks that did not run | every policy, also where its DAG is paused or gone |
| gives back leases that have run out | intervals and batches whose worker died |
| sweeps runs that are over | what a cleanup had begun goes to quarantine, what a redrive had taken waits again |
| opens and closes findings | missed intervals, watermark age, quarantine, stragglers, stuck and stopped work |

A run counts as over when nothing of it has had a live lease for the lease of its policy (and the retry delay): the
ledger is asked, not Airflow. **Red** means that a part could not be done, or that the notifier failed; everything else
was done, and the next pass tries again. What each finding means is in `docs/runbook.md`. To see what is open::

    SELECT opened_at, detail ->> 'message' FROM s3_retention.findings WHERE closed_at IS NULL
"""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.providers.common.compat.sdk import DAG, task

from s3_retention.runtime import environment, watching

with DAG(
    dag_id="s3_retention_watch",
    description="Flags what did not run, releases and sweeps what died, and opens findings.",
    doc_md=__doc__,
    schedule="*/5 * * * *",
    start_date=pendulum.datetime(2020, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=environment.retry_arguments(),
    tags=["s3-retention"],
) as dag:

    @task(doc_md="One pass over every policy. Clear it at will: it does nothing twice.")
    def watch_policies() -> dict[str, Any]:
        return watching.watch_policies()

    watch_policies()
