"""What a run did of one tenant, and what of it waits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TenantCounts:
    """Objects of one tenant; of all others together where ``tenant`` is None, and ``num_tenants`` is how many.

    ``num_deleted`` and ``num_quarantined`` are of the commands of the run. ``num_paused`` and ``num_over_cap`` are due
    and wait: those that the plan left, and those that the run kept because the tenant was paused meanwhile.
    """

    tenant: str | None
    num_tenants: int = 1
    num_deleted: int = 0
    num_quarantined: int = 0
    num_paused: int = 0
    num_over_cap: int = 0

    def __str__(self) -> str:
        """Print one line for a task log."""
        whose = (
            f"tenant {self.tenant!r}" if self.tenant is not None else f"{self.num_tenants:,} other tenants"
        )
        counts = {
            "deleted": self.num_deleted,
            "quarantined": self.num_quarantined,
            "waiting while paused": self.num_paused,
            "waiting over the cap": self.num_over_cap,
        }
        return f"{whose}: " + ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
