"""
### S3 retention: cleanup

Deletes what one retention policy selects: each object once, by its own command, with a row in the ledger.

| task | what it does | red means |
| --- | --- | --- |
| `claim_interval` | takes the next slice of the watermark | ledger away, or rules changed without a new `version` |
| `plan_commands` | one listing, one command per due object | listing broke off, or the plan would delete everything |
| `approve_plan` | asks a person, where the plan is over a limit | ledger away: clear it, and it asks again |
| `deal_batches` | gives the run its part of the plan | the plan waits for an answer, or another run has it |
| `delete_batch` | deletes what is still as it was planned | some objects could not go: the next task takes them |
| `quarantine_failed` | parks what did not end, with its cause | ledger away: clear it when the ledger is back |
| `report_run` | aborts old uploads, checks the balance, closes the slice | no balance, a stop, or uploads left |
| `flag_missed_intervals` | flags ticks that did not run; nothing waits for it | ledger away |

**Safe to do at any time:** clear any task, any mapped index or the whole run; nothing is deleted twice and nothing
is lost. A red run leaves its slice open, and the next run resumes it. A green run with red indices has objects in
quarantine. What to do about each failure class is in `docs/runbook.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pendulum
from airflow.providers.common.compat.sdk import DAG, TriggerRule, task

from s3_retention.runtime import approving, deadline, environment, tasks, watching

if TYPE_CHECKING:
    from s3_retention.core.policy import RetentionPolicy


def cleanup_dag(policy: RetentionPolicy) -> DAG:
    """Make the cleanup DAG of one policy."""
    with DAG(
        dag_id=policy.dag_id,
        description=policy.description,
        doc_md=f"{__doc__}\n\n**Policy** `{policy.name}`, version `{policy.version}`, mode `{policy.mode.value}`. "
        f"{policy.description}",
        schedule=environment.timetable(policy),
        start_date=pendulum.datetime(2020, 1, 1, tz=policy.timezone),
        catchup=False,
        max_active_runs=1,
        default_args={"owner": policy.owner, **environment.retry_arguments()},
        tags=["s3-retention", policy.mode.value],
        **deadline.deadline_arguments(policy),
    ) as dag:

        @task(doc_md="Takes the next slice of the watermark. The same run always gets the same slice.")
        def claim_interval() -> dict[str, Any]:
            return tasks.claim_interval(policy.name)

        @task.branch(doc_md="Lists everything once, decides every object, stores a command for each due one.")
        def plan_commands(claim: Any) -> str:
            return approving.ASK if tasks.plan_commands(policy.name, claim) else approving.DEAL

        @task(
            trigger_rule=TriggerRule.NONE_FAILED, doc_md="Deals the plan to this run, if it was not rejected."
        )
        def deal_batches(claim: Any) -> list[dict[str, int]]:
            return approving.deal_batches(policy.name, claim)

        @task(
            map_index_template=environment.BATCH_LABEL,
            doc_md="Deletes one batch. Clear it at will: nothing goes twice.",
        )
        def delete_batch(batch: dict[str, int]) -> dict[str, Any]:
            return tasks.delete_batch(batch)

        @task(
            trigger_rule=TriggerRule.ALL_DONE, doc_md="Parks every command that did not end, with its cause."
        )
        def quarantine_failed() -> dict[str, Any]:
            return tasks.quarantine_failed("delete_batch", policy.name)

        @task(trigger_rule=TriggerRule.ALL_DONE, doc_md="Counts, checks the balance and closes the slice.")
        def report_run(claim: Any, batches: Any) -> dict[str, Any]:
            return tasks.report_cleanup(policy.name, claim, batches)

        @task(doc_md="Flags the ticks before this one that did not run. Nothing waits for it.")
        def flag_missed_intervals() -> dict[str, Any]:
            return watching.flag_missed_intervals(policy.name)

        flag_missed_intervals()
        claim = claim_interval()
        planned, batches = plan_commands(claim), deal_batches(claim)
        approve_plan = approving.ApprovePlan(policy=policy, doc_md="Waits for a person, without a worker.")
        planned >> [approve_plan, batches]  # by way of the question only where there is one
        approve_plan >> batches
        delete_batch.expand(batch=batches) >> quarantine_failed() >> report_run(claim, batches)
    return dag


for file in environment.read_policies():
    if file.policy is not None:
        globals()[file.policy.dag_id] = cleanup_dag(file.policy)
