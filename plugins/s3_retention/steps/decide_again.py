"""Decides again, just before the delete, what may have changed since the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from s3_retention.core.decider import Decider
from s3_retention.core.objects import is_same_incarnation
from s3_retention.core.outcome import Final, Outcome, kept
from s3_retention.core.verdict import NO_ROWS, Action, RowFacts
from s3_retention.s3.recheck import Faults
from s3_retention.steps import tags
from s3_retention.steps.retry import look_with_retries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.objects import ObjectRef
    from s3_retention.core.orphans import PlannedRows
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.s3.limits import RetryLimits

GroupOfPlan = tuple[int, int, str]
"""Interval id, generation and group key."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Up to 1,000 unfinished commands with the keepers of their groups, at a time of the ledger's clock.

    They are all that is unfinished of one chunk; a redrive's are of none. ``held`` are the ids of those that a
    legal hold is in force on, ``paused`` the tenants among theirs that are paused. ``rows`` are those of each command,
    by its id, where its policy is one of rows. ``is_again``: somebody may have sent them before.
    """

    commands: Sequence[DeleteCommand]
    keepers: dict[GroupOfPlan, list[ObjectRef]]
    chunk_id: int | None
    now: datetime
    held: frozenset[bytes] = frozenset()
    paused: frozenset[str] = frozenset()
    rows: dict[bytes, PlannedRows] | None = None
    is_again: bool = False

    @property
    def tenant(self) -> str | None:
        """Whose they are; None without tenants, and for a redrive, which mixes them."""
        return None if self.is_redrive else self.commands[0].tenant

    @property
    def is_redrive(self) -> bool:
        """Each object is looked at anew: much may have changed since it failed."""
        return self.chunk_id is None

    def spared(self, command: DeleteCommand, policy: RetentionPolicy) -> Outcome | None:
        """Give the outcome of a command that a person or another version spares; None where it may go on."""
        if self.held and command.command_id in self.held:
            return kept("held")
        if self.paused and command.tenant in self.paused:
            return kept("tenant_paused")
        return kept("policy_changed") if command.policy_version != policy.version else None


def decide_again(
    gateway: S3Gateway,
    policy: RetentionPolicy,
    delivery: Delivery,
    limits: RetryLimits,
    checked: Mapping[bytes, Outcome],
) -> dict[bytes, Outcome]:
    """Give the outcome of every command that must not be deleted now, by command id.

    - Under a legal hold, or of a paused tenant: ``kept``, and the next interval sees it again.
    - Planned under another version of the policy: ``kept``, and the next interval decides by today's rules.
    - A keeper of its group is gone: ``kept``, since the group may have shrunk. The store would not say: it fails.
    - Its rows, its tags or the pointers of the policy say so, in ``checked``, unless an earlier try has deleted it.
    - It is of rows, and the plan could not see it: looked at anew.
    - Redriven: looked at anew, and ``kept``, ``changed`` or ``already_absent`` where that is so.

    Where the store or the identity is at fault it is not asked 1,000 times: the rest of the delivery fails alike. One
    object that the store never shows is no such fault, unless the store says that it is asked too much.
    """
    decided: dict[bytes, Outcome] = {}
    safe: dict[GroupOfPlan, Outcome | None] = {}
    decider = Decider(policy)
    faults = Faults()
    for command in delivery.commands:
        spared = delivery.spared(command, policy)
        if spared is None and command.command_id in checked:
            spared = checked[command.command_id]
            if delivery.is_again:
                spared = unless_gone(gateway, command, spared, limits, faults)
        if spared is not None:
            decided[command.command_id] = spared
            continue
        outcome, is_looked_at = faults.of_all, False
        # Versions are decided with the whole history of their key (steps/decide_versions.py).
        is_unseen = delivery.rows is not None and command.facts.etag is None
        if outcome is None and (delivery.is_redrive or is_unseen) and command.ref.version_id is None:
            outcome = _decide_redriven(gateway, decider, command, delivery, limits)
            is_looked_at = True
        if outcome is None and command.group_key is not None:
            group = (command.interval_id, command.generation, command.group_key)
            if group not in safe:
                safe[group] = _check_keepers(gateway, delivery.keepers.get(group, []), limits)
                is_looked_at = True
            outcome = safe[group]
        if is_looked_at:
            faults.see(outcome)
        if outcome is not None:
            decided[command.command_id] = outcome
    return decided


def unless_gone(
    gateway: S3Gateway, command: DeleteCommand, checked: Outcome, limits: RetryLimits, faults: Faults
) -> Outcome:
    """Where an earlier try may have deleted what must stay by now, look: what is lost must not seem to be kept."""
    if command.facts.etag is None or not checked.is_final:
        return checked  # nothing that a plan has seen, or nothing that is known
    found = faults.of_all or look_with_retries(gateway, command.ref, limits)
    fault = faults.see(found)
    if isinstance(found, Outcome):
        return fault or found
    return checked if is_same_incarnation(command.facts, found) else Outcome(Final.CHANGED)


def _check_keepers(gateway: S3Gateway, keepers: Sequence[ObjectRef], limits: RetryLimits) -> Outcome | None:
    if not keepers:
        return kept("keeper_gone")
    for ref in keepers:
        found = look_with_retries(gateway, ref, limits)
        if isinstance(found, Outcome):
            # Where the store would not say, the command fails with that cause: an identity that may not look
            # must not seem to be a run in which all is well.
            return kept("keeper_gone") if found.is_final else found
    return None


def _decide_redriven(
    gateway: S3Gateway, decider: Decider, command: DeleteCommand, delivery: Delivery, limits: RetryLimits
) -> Outcome | None:
    found = look_with_retries(gateway, command.ref, limits)
    if isinstance(found, Outcome):
        return found
    if not is_same_incarnation(command.facts, found):
        return Outcome(Final.CHANGED)
    planned = (delivery.rows or {}).get(command.command_id)
    rows = NO_ROWS
    if planned is not None:
        # An object without a row has its age from itself.
        rows = RowFacts(planned.detached_at or command.facts.last_modified_at, command.tenant)
    # The ledger tells no storage class, and a look whole seconds only, by which it would be due too early.
    facts = replace(command.facts, storage_class=found.storage_class)
    verdict = tags.judge(gateway, decider.verdict, facts, limits=limits, now=delivery.now, rows=rows)
    if isinstance(verdict, Outcome):
        return verdict
    return None if verdict.action is Action.EXPIRE else kept(verdict.reasons[0])
