"""The task that asks a person about a plan over a limit, and what comes before and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from airflow.providers.standard.operators.hitl import ApprovalOperator

from s3_retention.runtime.connections import open_ledger
from s3_retention.runtime.context import holder
from s3_retention.runtime.environment import load_policy, max_map_length
from s3_retention.runtime.failing import airflow_errors
from s3_retention.runtime.tasks import CLAIMED, for_xcom

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.core.approval import Decision
    from s3_retention.core.policy import RetentionPolicy

log = structlog.get_logger("s3_retention")

ASK = "approve_plan"
DEAL = "deal_batches"
"""The tasks between which plan_commands chooses."""


class ApprovePlan(ApprovalOperator):
    """Asks about the plan of this run, waits without a running task, and writes the answer to the ledger.

    The first answer about a plan stands, in whichever run it was given. Nobody in time is an answer too: no. A cleared
    task asks again only while there is none. What follows is never skipped: it reads the answer in the ledger.
    """

    def __init__(self, *, policy: RetentionPolicy, **arguments: Any) -> None:
        """Take the policy as its file stood when the DAG was read; the plan is looked up when the task starts."""
        super().__init__(
            task_id=ASK,
            subject=f"Delete what policy {policy.name} has planned?",
            response_timeout=policy.limits.approval_timeout,
            **arguments,
        )
        self.policy_name = policy.name

    def execute(self, context: Any) -> Any:
        """Ask, unless the ledger has an answer."""
        from s3_retention.core.approval import write_question
        from s3_retention.steps import approve

        with airflow_errors(), open_ledger() as conn:
            asked = approve.find_question(conn, load_policy(self.policy_name), holder())
        if asked is None:
            log.info("nothing is to be asked", policy=self.policy_name)
            return None
        summary, approval = asked
        self.subject = f"Delete {summary.num_discovered:,} objects by policy {self.policy_name}?"
        self.body = write_question(summary, approval)
        log.info(
            "asked", policy=self.policy_name, interval=summary.interval_key, plan_hash=approval.plan_hash
        )
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        """Write the answer, or that there was none in time."""
        from s3_retention.core.approval import Decision

        del context
        if event.get("error_type") == "timeout":
            return self._decide(Decision.TIMED_OUT, None)
        if "error" in event:
            self.process_trigger_event_error(event)
        self.validate_chosen_options(event["chosen_options"])
        is_approved = event["chosen_options"] == [self.APPROVE]
        user = event.get("responded_by_user") or {}
        return self._decide(
            Decision.APPROVED if is_approved else Decision.REJECTED, user.get("name") or user.get("id")
        )

    def _decide(self, decision: Decision, decided_by: str | None) -> dict[str, Any]:
        from s3_retention.steps import approve

        with airflow_errors(), open_ledger() as conn:
            stands = approve.decide(
                conn, self.policy_name, holder(), decision=decision, decided_by=decided_by
            )
        answer = {
            "decision": stands.decision.value if stands.decision else None,
            "decided_by": stands.decided_by,
            "plan_hash": stands.plan_hash,
        }
        log.info("answered", policy=self.policy_name, said=decision.value, **answer)
        return answer


def deal_batches(policy_name: str, claim: Mapping[str, Any]) -> list[dict[str, int]]:
    """Give the batches of this run: those that were dealt when it was planned, or what an answer lets go."""
    from s3_retention.steps import approve

    if claim["status"] != CLAIMED:
        return []
    with airflow_errors(), open_ledger() as conn:
        dealt = approve.resume(
            conn, load_policy(policy_name), claim["interval_id"], holder(), max_batches=max_map_length()
        )
    log.info("dealt", policy=policy_name, count=sum(one.num_commands for one in dealt), batches=len(dealt))
    return for_xcom(dealt)
