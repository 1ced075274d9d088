"""What a run in mode simulate says: what would go and what would stay, why, and where it lies."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.approval import OverLimit


_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class ReasonSum:
    """Objects decided alike. Of what is kept at first sight, such as ``not_selected``, only the number is known."""

    reason: str
    num_objects: int
    num_bytes: int | None = None
    oldest_at: datetime | None = None
    newest_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PrefixSum:
    """Objects that are due under one prefix."""

    prefix: str
    num_objects: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class ClassSum:
    """Objects that are due in one storage class.

    ``num_early`` of them are younger than the least time for which the class bills; deleted now, they are billed on for
    ``num_byte_days``. It is the least that can be: an object that a lifecycle rule has moved is billed from then on.
    """

    storage_class: str
    num_objects: int
    num_bytes: int
    num_early: int
    num_byte_days: int


@dataclass(frozen=True, slots=True)
class TenantSum:
    """Objects of one tenant: what is due and would go.

    ``num_over_cap`` are due beyond ``limits.max_commands_per_tenant``, ``num_paused`` while the tenant is paused.
    """

    tenant: str
    num_objects: int
    num_bytes: int
    num_over_cap: int
    num_paused: int = 0


@dataclass(frozen=True, slots=True)
class Simulation:
    """One simulation in counts, bytes and a sample of keys.

    ``plan_hash`` is that of the plan that an enforced run would store of the same objects. ``prefixes`` and
    ``tenants`` are the largest, ``num_lonely_groups`` the groups of a keep rule that hold a single object, which never
    goes; ``over`` are the limits at which an enforced run would wait for a person.
    """

    policy: str
    policy_version: str
    num_scanned: int
    num_due: int
    num_bytes: int
    plan_hash: bytes
    reasons: Sequence[ReasonSum]
    prefixes: Sequence[PrefixSum]
    storage_classes: Sequence[ClassSum]
    tenants: Sequence[TenantSum]
    sample: Sequence[str]
    num_lonely_groups: int
    over: Sequence[OverLimit]

    def detail(self) -> dict[str, Any]:
        """Give all that is not a column of its own, as plain JSON values."""
        return {
            "reasons": [
                {
                    "reason": one.reason,
                    "num_objects": one.num_objects,
                    "num_bytes": one.num_bytes,
                    "oldest_at": one.oldest_at.isoformat() if one.oldest_at else None,
                    "newest_at": one.newest_at.isoformat() if one.newest_at else None,
                }
                for one in self.reasons
            ],
            "prefixes": [asdict(one) for one in self.prefixes],
            "storage_classes": [asdict(one) for one in self.storage_classes],
            "tenants": [asdict(one) for one in self.tenants],
            "sample": list(self.sample),
            "num_lonely_groups": self.num_lonely_groups,
            "over_limits": [str(one) for one in self.over],
        }

    def __str__(self) -> str:
        """Print it as a table for a task log."""
        what = f"{self.num_due:,} ({self.num_bytes:,} bytes) would be deleted now; nothing was"
        lines = [
            f"policy {self.policy}, version {self.policy_version}: of {self.num_scanned:,} objects, {what}",
            f"  {'decision':<18} {'objects':>12} {'bytes':>18}  oldest and newest",
        ]
        lines += [
            f"  {one.reason:<18} {one.num_objects:>12,} {_say(one.num_bytes):>18}  {_span(one)}".rstrip()
            for one in self.reasons
        ]
        if self.prefixes:
            lines.append(f"  {'due under':<18} {'objects':>12} {'bytes':>18}")
        lines += [
            f"  {one.prefix!r:<18} {one.num_objects:>12,} {one.num_bytes:>18,}" for one in self.prefixes
        ]
        if self.storage_classes:
            lines.append(f"  {'due in class':<18} {'objects':>12} {'bytes':>18}")
        lines += [
            f"  {one.storage_class:<18} {one.num_objects:>12,} {one.num_bytes:>18,}{_fee(one)}"
            for one in self.storage_classes
        ]
        if self.tenants:
            lines.append(f"  {'due of tenant':<18} {'objects':>12} {'bytes':>18}")
        lines += [
            f"  {one.tenant!r:<18} {one.num_objects:>12,} {one.num_bytes:>18,}{_waiting(one)}"
            for one in self.tenants
        ]
        lines += [f"  would go: {key!r}" for key in self.sample]
        if self.num_lonely_groups:
            lines.append(
                f"  {self.num_lonely_groups:,} groups of the keep rule hold one object each: it stays for good"
            )
        lines += [f"  an enforced run would wait for approval: {one}" for one in self.over]
        lines.append(f"  plan {self.plan_hash.hex()}")
        return "\n".join(lines)


def _say(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _fee(one: ClassSum) -> str:
    if not one.num_early:
        return ""
    return f"  {one.num_early:,} sooner than billed: {one.num_byte_days / _GIB:,.2f} GiB-days are paid all the same"


def _waiting(one: TenantSum) -> str:
    capped = f"  and {one.num_over_cap:,} over the cap" if one.num_over_cap else ""
    return capped + (f"  and {one.num_paused:,} while it is paused" if one.num_paused else "")


def _span(one: ReasonSum) -> str:
    if one.oldest_at is None or one.newest_at is None:
        return ""
    return f"{one.oldest_at:%Y-%m-%d} {one.newest_at:%Y-%m-%d}"
