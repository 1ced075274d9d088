"""One delivery at the store: decided again, probed where need be, deleted. Runs in a thread, without the ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from s3_retention.core.condition import EtagCondition, Guard
from s3_retention.core.outcome import Final, kept
from s3_retention.core.policy_batch import Recheck
from s3_retention.core.versions import OVER_KEPT
from s3_retention.s3.recheck import Faults
from s3_retention.steps import checks, decide_versions, probe
from s3_retention.steps.attempt_rows import RowChecks
from s3_retention.steps.decide_again import Delivery, decide_again, unless_gone
from s3_retention.steps.retry import Attempted, Attempts, Decide, delete_with_retries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.objects import ObjectRef
    from s3_retention.core.outcome import Outcome
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.s3.limits import RetryLimits
    from s3_retention.sources.postgres_rows import PostgresRows
    from s3_retention.store.row_entries import SettledRow


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of a delivery; ``condition`` is what is known of the store by now."""

    attempted: list[Attempted]
    num_failed_by_class: Counter[str]
    condition: EtagCondition | None
    rows: Sequence[SettledRow] = ()


def run(
    gateway: S3Gateway,
    policy: RetentionPolicy,
    delivery: Delivery,
    limits: RetryLimits,
    condition: EtagCondition | None,
    found_out: Callable[[EtagCondition], object],
    rows: PostgresRows | None = None,
) -> Attempt:
    """Decide again what must be, and delete the rest; where ``condition`` is None, the store is probed first.

    ``found_out`` is told what that found as soon as it has: other deliveries need not wait for this one. Of a policy of
    ``rows``, these are checked before, and deleted after it; of any other the store is asked before it for what no
    listing tells.
    """
    if rows is None:
        check = checks.of_store(gateway, policy, delivery, limits)
        return _attempt(gateway, policy, delivery, limits, condition, found_out, check)
    of_rows = RowChecks(rows, policy, delivery)
    came = _attempt(gateway, policy, delivery, limits, condition, found_out, of_rows.check)
    attempted, settled = of_rows.finish(came.attempted)
    return replace(came, attempted=attempted, rows=settled)


def _attempt(
    gateway: S3Gateway,
    policy: RetentionPolicy,
    delivery: Delivery,
    limits: RetryLimits,
    condition: EtagCondition | None,
    found_out: Callable[[EtagCondition], object],
    check: Decide | None = None,
) -> Attempt:
    came = _Came()
    checked = check(delivery.commands) if check is not None else {}
    named = came.take(delivery.commands, decide_again(gateway, policy, delivery, limits, checked))
    versions = decide_versions.run(gateway, policy, named, delivery.now, limits)
    rest = came.take(named, versions.outcomes)
    was_unknown = condition is None
    if condition is None:
        # It deletes what it finds the store out by, and the keepers' looks may have taken their time.
        rest = came.take(rest, _check_now(check, gateway, delivery, limits, rest))
        probed = probe.run(gateway, rest, limits)
        condition = probed.condition
        if condition is not None:
            found_out(condition)
        if probed.command is not None and probed.outcome is not None:
            rest = came.take(rest, {probed.command.command_id: probed.outcome})
    guard = Guard.of(
        condition,
        rechecks_time=policy.batch.recheck is Recheck.TIME,
        bypasses_governance=policy.bypass_governance,
    )
    names_versions = any(command.ref.version_id is not None for command in rest)
    anew = check and partial(_check_again, check, gateway, limits)
    if names_versions:
        anew = partial(decide_versions.run_alone, gateway, policy, now=delivery.now, limits=limits)
    first = _undecided(rest, versions.beneath)
    # Between the check and here the probe, or looks at keepers and objects, may have taken their time.
    took_time = was_unknown or delivery.is_redrive or any(one.group_key is not None for one in first)
    asks_each = check is not None and (guard.looks_first or policy.asks_tags)
    size = checks.MAX_CHECKED if asks_each else max(len(first), 1)
    for start in range(0, len(first), size):
        part = first[start : start + size]
        if start or took_time:
            part = came.take(part, _check_now(check, gateway, delivery, limits, part))
        came.add(delete_with_retries(gateway, part, guard, limits, decide=anew))
        if came.is_store_at_fault:
            break
    # Where the delivery is to end, what lies beneath was perhaps not sent: the next one decides what lies on top, too.
    if versions.beneath and not limits.ending.is_set():
        last = [command for command in rest if command.command_id in versions.beneath]
        bare, left = _bare_ones(last, versions.beneath, came.attempted)
        came.attempted += left
        # By a second look: what lay beneath is gone by what the store said, and a newer one may have come meanwhile.
        came.add(delete_with_retries(gateway, bare, guard, limits, decide=anew, is_decided=False))
    return Attempt(came.attempted, came.num_failed, condition)


@dataclass(slots=True)
class _Came:
    """What came of a delivery so far; where ``is_store_at_fault``, the next request would fare no better."""

    attempted: list[Attempted] = field(default_factory=list)
    num_failed: Counter[str] = field(default_factory=Counter)
    is_store_at_fault: bool = False

    def take(
        self, commands: Sequence[DeleteCommand], decided: Mapping[bytes, Outcome]
    ) -> list[DeleteCommand]:
        """Take in what was decided without a request for it, or by the probe; the other commands are given back."""
        for command in commands if decided else ():
            outcome = decided.get(command.command_id)
            if outcome is not None:
                # A look that failed was an attempt, and so was a delete by the probe; a decision to keep was none.
                num = command.num_attempts + (not outcome.is_final or outcome.kind is Final.DELETED)
                self.attempted.append((command, outcome, num))
                if not outcome.is_final:
                    self.num_failed[outcome.kind.value] += 1
        self._see(decided.values())
        return _undecided(commands, decided)

    def add(self, done: Attempts) -> None:
        """Take in what became of a request."""
        self.attempted += done.attempted
        self.num_failed += done.num_failed_by_class
        self._see(outcome for _, outcome, _ in done.attempted)

    def _see(self, outcomes: Iterable[Outcome]) -> None:
        faults = (one for one in outcomes if not one.is_final)
        self.is_store_at_fault |= any(one.stops_batch or one.whole_request for one in faults)


def _check_now(
    check: Decide | None,
    gateway: S3Gateway,
    delivery: Delivery,
    limits: RetryLimits,
    commands: Sequence[DeleteCommand],
) -> dict[bytes, Outcome]:
    """Check once more what this delivery has not sent yet."""
    if check is None or not commands:
        return {}
    return _check_again(check, gateway, limits, commands) if delivery.is_again else check(commands)


def _check_again(
    check: Decide, gateway: S3Gateway, limits: RetryLimits, commands: Sequence[DeleteCommand]
) -> dict[bytes, Outcome]:
    """Check anew what may have been sent already, and was not answered: its object may be gone."""
    by_id = {command.command_id: command for command in commands}
    faults = Faults()
    return {
        command_id: unless_gone(gateway, by_id[command_id], outcome, limits, faults)
        for command_id, outcome in check(commands).items()
    }


def _undecided(commands: Sequence[DeleteCommand], decided: Collection[bytes]) -> list[DeleteCommand]:
    if not decided:
        return list(commands)
    return [command for command in commands if command.command_id not in decided]


def _bare_ones(
    commands: list[DeleteCommand], beneath: dict[bytes, set[ObjectRef]], attempted: list[Attempted]
) -> tuple[list[DeleteCommand], list[Attempted]]:
    """Give the latest versions under which nothing is left, and those that stay: an older one must not come back."""
    gone = {command.ref for command, outcome, _ in attempted if outcome.is_gone}
    fault = next((outcome for _, outcome, _ in attempted if outcome.stops_batch), None)
    stays = fault or kept(OVER_KEPT.reasons[0])
    bare: list[DeleteCommand] = []
    left: list[Attempted] = []
    for command in commands:
        if fault is None and beneath[command.command_id] <= gone:
            bare.append(command)
        else:
            left.append((command, stays, command.num_attempts + (fault is not None)))
    return bare, left
