"""What stops a batch: a brake of the policy before its first delete, or faults that no object is to blame for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from s3_retention.core.outcome import FailureClass, Outcome, distinct
from s3_retention.core.policy import Mode
from s3_retention.store import kill_switches, policy_versions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.store.connection import Connection
    from s3_retention.store.kill_switches import SetLevers

MIN_DENIED = 100
"""Denials of one batch below which their share says nothing: these go to quarantine, each by itself."""


@dataclass(frozen=True, slots=True)
class Stop:
    """What stops a batch: the class of a failure, or a brake of the policy; and why, for the operator.

    ``may_pass``: another try of the same task may get on.
    """

    by: str
    why: str
    may_pass: bool = False


def find_brake(conn: Connection, policy: RetentionPolicy) -> Stop | None:
    """Look whether this policy may delete at all: the file may have been edited since the plan."""
    if policy.mode is Mode.SIMULATE:
        return Stop("simulate", f"policy {policy.name} is in mode simulate, which deletes nothing")
    first = policy_versions.find_rules_hash(conn, policy=policy.name, policy_version=policy.version)
    if first not in (None, policy.rules_hash):
        why = f"the rules of policy {policy.name} changed, and version is still {policy.version}: raise it"
        return Stop("policy_changed", why)
    return stop_by_switch(kill_switches.look(conn, policy=policy.name))


def stop_by_switch(levers: SetLevers) -> Stop | None:
    """Give the stop that a person has set; None where there is none."""
    if levers.stop_reason is None:
        return None
    return Stop("kill_switch", f"set by {levers.stopped_by}: {levers.stop_reason}")


@dataclass(slots=True)
class Delivered:
    """One delivery of a batch as it goes on: counts, and what ends it early.

    ``max_denied_share`` is the share of denials, 0 to 1, beyond which the identity is at fault and not the objects;
    None is no limit. ``broken`` is an error to raise once all that is in flight has been settled.
    """

    max_denied_share: float | None
    num_by_outcome: Counter[str] = field(default_factory=Counter)
    num_failed: int = 0
    num_retryable: int = 0
    num_denied: int = 0
    stop: Stop | None = None
    broken: BaseException | None = None

    @property
    def is_ending(self) -> bool:
        """Nothing more is sent; what is in flight is waited for."""
        return self.stop is not None or self.broken is not None

    @property
    def num_answered(self) -> int:
        """Objects of which something is known."""
        return sum(self.num_by_outcome.values()) + self.num_failed

    def count(self, outcomes: Iterable[Outcome]) -> None:
        """Count what came of some objects. The first thing that stops the batch is the one that is told."""
        # Most of an answer is one and the same value: it is looked at once.
        for outcome, num in _tally(outcomes):
            if outcome.is_final:
                self.num_by_outcome[outcome.kind.value] += num
                continue
            self.num_failed += num
            self.num_retryable += num * outcome.is_retried
            self.num_denied += num * (outcome.kind is FailureClass.PERMISSION)
            if outcome.stops_batch or outcome.whole_request:
                self.stop = self.stop or _stop_of(outcome)
        self.stop = self.stop or self._too_many_denied()

    def _too_many_denied(self) -> Stop | None:
        if self.max_denied_share is None or self.num_denied < MIN_DENIED:
            return None
        if self.num_denied <= self.max_denied_share * self.num_answered:
            return None
        return Stop(
            FailureClass.PERMISSION.value,
            f"{self.num_denied:,} of {self.num_answered:,} objects were denied, which is more than "
            f"limits.max_denied_share = {self.max_denied_share}: the rights of the identity are to be looked at",
        )


def _tally(outcomes: Iterable[Outcome]) -> list[tuple[Outcome, int]]:
    """Count equal values by what they are, not by what they say: in the order in which they came."""
    values = list(outcomes)
    num_of = Counter(map(id, values))
    return [(one, num_of[id(one)]) for one in distinct(values)]


def _stop_of(outcome: Outcome) -> Stop:
    words = " ".join(word for word in (outcome.code, outcome.message) if word)
    if outcome.kind is FailureClass.CONFIG and "ContentMD5" in words.replace("-", ""):
        words += "; this store demands the header Content-MD5: set batch.checksum: md5 in the policy"
    return Stop(outcome.kind.value, words or "the store did not answer", may_pass=outcome.may_pass)
