"""The figures that are sent to whatever collects metrics: gauges of the last run, and of where each policy stands.

They are gauges and not counters, so that a report that is made twice counts nothing twice. Sums are in the ledger. The
policy is a part of the name, since plain StatsD drops tags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from s3_retention.core.report import OUTCOMES

if TYPE_CHECKING:
    from datetime import timedelta

    from s3_retention.core.report import RunReport

PREFIX = "s3_retention"
MAX_TENANT = 60
"""Characters that a tenant takes in a name; Airflow refuses names of more than 250."""
_PLAIN = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a policy stands: objects that wait in quarantine, commands in open batches, ticks that were missed.

    ``watermark_age`` is how long ago ended what is completed, or how long ago the first interval was claimed where that
    was later; None before it. ``quarantine_age`` is how long the oldest command waits.
    """

    policy: str
    watermark_age: timedelta | None = None
    num_missed: int = 0
    num_quarantined: int = 0
    quarantine_age: timedelta | None = None
    num_open: int = 0
    num_stragglers: int = 0

    def figures(self) -> dict[str, float]:
        """Give each figure by its name, ages in seconds; one of nothing is 0, so that what has healed shows."""
        begin = f"{PREFIX}.policy.{self.policy}"
        figures: dict[str, float] = {
            f"{begin}.missed_intervals": self.num_missed,
            f"{begin}.quarantine_open": self.num_quarantined,
            f"{begin}.quarantine_age_seconds": _seconds(self.quarantine_age),
            f"{begin}.commands_open": self.num_open,
            f"{begin}.stragglers": self.num_stragglers,
        }
        if self.watermark_age is not None:
            figures[f"{begin}.watermark_age_seconds"] = _seconds(self.watermark_age)
        return figures


def figures_of_run(report: RunReport) -> dict[str, float]:
    """Give what a run did, by name: of its policy, or of a redrive, which is of many; and of the tenants it names."""
    begin = f"{PREFIX}.redrive" if report.policy is None else f"{PREFIX}.policy.{report.policy}.run"
    figures: dict[str, float] = {
        f"{begin}.discovered": report.num_discovered,
        f"{begin}.deleted_bytes": report.num_deleted_bytes,
        f"{begin}.remaining": report.num_remaining,
    }
    for outcome in OUTCOMES:
        figures[f"{begin}.{outcome}"] = report.num_by_outcome[outcome]
    for one in report.tenants:
        if one.tenant is None:
            continue
        of_tenant = f"{begin}.tenant.{spell_tenant(one.tenant)}"
        figures[f"{of_tenant}.deleted"] = one.num_deleted
        figures[f"{of_tenant}.quarantined"] = one.num_quarantined
        figures[f"{of_tenant}.paused"] = one.num_paused
        figures[f"{of_tenant}.over_cap"] = one.num_over_cap
    return figures


def spell_tenant(tenant: str) -> str:
    """Spell a tenant so that any collector takes it, and no two alike.

    Letters, digits and ``-`` of ASCII stay. Of any other tenant, and of a long one, the first 40 such characters are
    followed by ``_`` and 16 hex digits of its SHA-256.
    """
    if _PLAIN.fullmatch(tenant) and len(tenant) <= MAX_TENANT:
        return tenant
    plain = "".join(_PLAIN.findall(tenant))[:40]
    return f"{plain}_{sha256(tenant.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _seconds(age: timedelta | None) -> float:
    # A clock that was set back would make it negative.
    return 0.0 if age is None else max(age.total_seconds(), 0.0)
