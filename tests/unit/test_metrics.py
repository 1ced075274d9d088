"""The figures that are sent as metrics, and their names."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.metrics import Standing, figures_of_run, spell_tenant
from s3_retention.core.report import OUTCOMES, RunReport
from s3_retention.core.tenant_counts import TenantCounts

tenants = st.text(max_size=90)


def test_a_run_tells_each_outcome_and_0_of_those_that_there_were_none_of() -> None:
    report = RunReport("p", "k", 5, Counter(deleted=3, stopped=2), num_deleted_bytes=70, num_remaining=4)
    figures = figures_of_run(report)
    assert figures["s3_retention.policy.p.run.discovered"] == 5
    assert figures["s3_retention.policy.p.run.deleted_bytes"] == 70
    assert figures["s3_retention.policy.p.run.remaining"] == 4
    by_outcome = {name: figures[f"s3_retention.policy.p.run.{name}"] for name in OUTCOMES}
    assert by_outcome == dict.fromkeys(OUTCOMES, 0) | {"deleted": 3, "stopped": 2}


def test_a_redrive_has_a_name_that_no_policy_can_have() -> None:
    names = figures_of_run(RunReport(None, None, 0))
    assert all(re.fullmatch(r"s3_retention\.redrive\.[a-z_]+", name) for name in names)


def test_tenants_that_a_report_names_have_figures_and_the_others_together_have_none() -> None:
    named = TenantCounts("ann", num_deleted=1, num_quarantined=2, num_paused=3, num_over_cap=4)
    report = RunReport("p", "k", 0, tenants=(named, TenantCounts(None, num_tenants=9, num_deleted=5)))
    begin = "s3_retention.policy.p.run.tenant."
    found = {name: value for name, value in figures_of_run(report).items() if name.startswith(begin)}
    assert found == {
        f"{begin}ann.deleted": 1,
        f"{begin}ann.quarantined": 2,
        f"{begin}ann.paused": 3,
        f"{begin}ann.over_cap": 4,
    }


@pytest.mark.parametrize("tenant", ["ann", "A-1", "0", "x" * 60])
def test_a_plain_tenant_is_its_own_name(tenant: str) -> None:
    assert spell_tenant(tenant) == tenant


@given(tenant=tenants)
def test_every_tenant_has_a_name_that_a_collector_takes(tenant: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,60}", spell_tenant(tenant))


@given(one=tenants, other=tenants)
def test_no_two_tenants_have_the_same_name(one: str, other: str) -> None:
    assert (spell_tenant(one) == spell_tenant(other)) == (one == other)


def test_a_policy_of_which_nothing_waits_tells_0_so_that_what_has_healed_shows() -> None:
    figures = Standing("p").figures()
    assert set(figures.values()) == {0}
    assert "s3_retention.policy.p.watermark_age_seconds" not in figures, "nothing is known before the first"


def test_ages_are_seconds_and_never_negative() -> None:
    figures = Standing("p", watermark_age=timedelta(hours=1), quarantine_age=timedelta(seconds=-5)).figures()
    assert figures["s3_retention.policy.p.watermark_age_seconds"] == 3600
    assert figures["s3_retention.policy.p.quarantine_age_seconds"] == 0
