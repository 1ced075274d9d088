"""Figures go out by Airflow's own metrics, and a collector that is at fault stops nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.airflow.child import result_of

if TYPE_CHECKING:
    from pathlib import Path

SEND = """
    import json
    from collections import Counter
    from airflow.providers.common.compat.sdk import Stats
    from s3_retention.core.metrics import Standing, figures_of_run
    from s3_retention.core.report import RunReport
    from s3_retention.core.tenant_counts import TenantCounts
    from s3_retention.runtime import metrics

    def as_airflow_names(name, value, **_):
        # What Airflow's StatsD client does before it sends: it refuses other names.
        sent[stat_name_default_handler(name)] = value

    def out_of_order(name, value, **_):
        raise OSError("the collector is not there")

    from airflow.sdk._shared.observability.metrics.validators import stat_name_default_handler
    tenants = tuple(TenantCounts(name, num_deleted=1) for name in ["ann", "Bj\\u00f6rn", "a b/c", "x" * 900, "\\n"])
    report = RunReport("p" * 63, "k", 5, Counter(deleted=5), tenants=tenants)
    sent = {}
    metrics.send(figures_of_run(report))  # to nowhere, as Airflow comes
    Stats.gauge = staticmethod(as_airflow_names)
    metrics.send(figures_of_run(report))
    metrics.send(Standing("p").figures())
    Stats.gauge = staticmethod(out_of_order)
    metrics.send(figures_of_run(report))
    print("RESULT", json.dumps(sent))
"""


def test_figures_are_sent_by_names_that_airflow_takes_and_a_collector_at_fault_stops_nothing(
    tmp_path: Path,
) -> None:
    sent = result_of(SEND, home=tmp_path)
    begin = f"s3_retention.policy.{'p' * 63}.run"
    assert sent[f"{begin}.deleted"] == 5
    assert sum(value for name, value in sent.items() if name.startswith(f"{begin}.tenant.")) == 5
    assert sent["s3_retention.policy.p.quarantine_open"] == 0
