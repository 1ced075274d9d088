"""The end summary of a run, and whether it balances."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from s3_retention.core.run_times import SPANS
from s3_retention.core.tenant_counts import TenantCounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.core.capacity import Capacity

_COUNTERS = (
    "num_by_outcome",
    "num_by_detail",
    "num_failed_attempts_by_class",
    "num_redriven_by_class",
    "num_resolved_by_class",
    "num_rows_by_outcome",
)
SETTLED = ("deleted", "already_absent", "changed", "kept")
OUTCOMES = (*SETTLED, "quarantined", "stopped", "pending")


@dataclass(frozen=True, slots=True)
class RunReport:
    """Where the commands of one run ended.

    ``num_discovered`` is counted from what was dealt to the run, ``num_by_outcome`` from ledger and quarantine:
    outcomes are ``deleted``, ``already_absent``, ``changed``, ``kept``, ``quarantined``, ``stopped`` and
    ``pending``. ``num_by_detail`` has the reasons and classes, as ``outcome:detail``. ``num_failed_attempts_by_class``
    counts attempts at single objects, those that a later attempt made good included. ``num_remaining`` are
    planned commands of the interval that wait for the next run, beyond this run's limits; ``num_drained`` of a cleanup
    are those that have ended since they were dealt to this run, and not to one before. ``num_uploads_aborted`` counts
    unfinished multipart uploads, which are no commands and stand outside of the balance. ``num_redriven_by_class``
    counts what a redrive took, by the class it had waited with, and ``num_resolved_by_class`` what of that it has
    ended. ``tenants`` are those of a policy that tells them, the paused and the largest by name.
    ``num_rows_by_outcome`` counts, of a policy of rows, the rows of objects that are gone: ``deleted``,
    ``already_absent`` and ``left``, which were attached meanwhile. ``capacity`` is None for a redrive, and while a
    policy has too few runs. ``plan_hash`` (32 bytes) and ``rules_hash`` (hex) are those of the plan that the run worked
    on, and of the rules that made it. ``seconds`` are what ``RunTimes.seconds`` gives.
    """

    policy: str | None
    interval_key: str | None
    num_discovered: int
    num_by_outcome: Counter[str] = field(default_factory=Counter)
    num_by_detail: Counter[str] = field(default_factory=Counter)
    num_deleted_bytes: int = 0
    num_remaining: int = 0
    num_drained: int = 0
    capacity: Capacity | None = None
    num_failed_attempts_by_class: Counter[str] = field(default_factory=Counter)
    num_uploads_aborted: int = 0
    num_redriven_by_class: Counter[str] = field(default_factory=Counter)
    num_resolved_by_class: Counter[str] = field(default_factory=Counter)
    tenants: tuple[TenantCounts, ...] = ()
    num_rows_by_outcome: Counter[str] = field(default_factory=Counter)
    plan_hash: bytes | None = None
    rules_hash: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def num_pending(self) -> int:
        """Commands that nothing accounts for."""
        return self.num_by_outcome["pending"]

    @property
    def is_balanced(self) -> bool:
        """True where discovered = deleted + already_absent + changed + kept + quarantined + stopped."""
        return self.num_pending == 0 and self.num_discovered == sum(self.num_by_outcome.values())

    @classmethod
    def from_counts(
        cls, policy: str | None, interval_key: str | None, counts: Mapping[str, Any]
    ) -> RunReport:
        """Read a report back from the ledger; one of an earlier release lacks what that did not count yet."""
        plan_hash = counts.get("plan_hash")
        named: dict[str, Any] = {name: Counter(counts.get(name, {})) for name in _COUNTERS}
        whole = {
            name: counts.get(name, 0)
            for name in ("num_deleted_bytes", "num_remaining", "num_uploads_aborted")
        }
        return cls(
            policy,
            interval_key,
            counts["num_discovered"],
            **named,
            **whole,
            tenants=tuple(TenantCounts(**one) for one in counts.get("tenants", ())),
            plan_hash=bytes.fromhex(plan_hash) if plan_hash else None,
            rules_hash=counts.get("rules_hash"),
            seconds=counts.get("seconds", {}),
        )

    def counts(self) -> dict[str, object]:
        """Give the report as plain values, for the ledger."""
        return {
            "num_discovered": self.num_discovered,
            "num_by_outcome": dict(self.num_by_outcome),
            "num_by_detail": dict(self.num_by_detail),
            "num_failed_attempts_by_class": dict(self.num_failed_attempts_by_class),
            "num_deleted_bytes": self.num_deleted_bytes,
            "num_remaining": self.num_remaining,
            "num_uploads_aborted": self.num_uploads_aborted,
            "num_redriven_by_class": dict(self.num_redriven_by_class),
            "num_resolved_by_class": dict(self.num_resolved_by_class),
            "tenants": [asdict(one) for one in self.tenants],
            "num_rows_by_outcome": dict(self.num_rows_by_outcome),
            "is_balanced": self.is_balanced,
            "plan_hash": self.plan_hash.hex() if self.plan_hash else None,
            "rules_hash": self.rules_hash,
            "seconds": dict(self.seconds),
        }

    def __str__(self) -> str:
        """Print one screen for a task log."""
        lines = [f"policy {self.policy or '-'}, interval {self.interval_key or '-'}"]
        lines.append(f"  discovered      {self.num_discovered:>12,}")
        for outcome in OUTCOMES:
            if count := self.num_by_outcome[outcome]:
                lines.append(f"  {outcome:<15} {count:>12,}")
            for name, part in sorted(self.num_by_detail.items()):
                if name.startswith(f"{outcome}:"):
                    lines.append(f"    {name.partition(':')[2]:<13} {part:>12,}")
        if self.num_failed_attempts_by_class:
            lines.append(f"  failed attempts {sum(self.num_failed_attempts_by_class.values()):>12,}")
        for failure_class, count in sorted(self.num_failed_attempts_by_class.items()):
            lines.append(f"    {failure_class:<13} {count:>12,}")
        lines.append(f"  bytes deleted   {self.num_deleted_bytes:>12,}")
        lines += [f"  {one}" for one in self.tenants]
        lines += [
            f"  rows {outcome.replace('_', ' '):<14} {count:>8,}"
            for outcome, count in sorted(self.num_rows_by_outcome.items())
        ]
        if self.num_uploads_aborted:
            lines.append(f"  uploads aborted {self.num_uploads_aborted:>12,}")
        lines += self._success_rates()
        if self.num_remaining:
            lines.append(f"  left to the next run {self.num_remaining:>7,}")
        if self.capacity is not None:
            lines.append(f"  {self.capacity}")
        lines += self._times_and_hashes()
        lines.append("  balanced" if self.is_balanced else "  NOT BALANCED")
        return "\n".join(lines)

    def _times_and_hashes(self) -> list[str]:
        # From the ledger they come in another order.
        spans = ", ".join(
            f"{name.replace('_', ' ')} {self.seconds[name]:,.1f} s" for name in SPANS if name in self.seconds
        )
        times = [f"  {spans}"] if spans else []
        if self.plan_hash is None:
            return times
        return [*times, f"  plan {self.plan_hash.hex()}", f"  rules {self.rules_hash}"]

    def _success_rates(self) -> list[str]:
        """Of a redrive: how much of each class has ended."""
        return [
            f"  resolved of {failure_class}: {(resolved := self.num_resolved_by_class[failure_class]):,} of {count:,} "
            f"({resolved / count:.0%})"
            for failure_class, count in sorted(self.num_redriven_by_class.items())
        ]
