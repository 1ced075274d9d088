"""The end summary of a run."""

from __future__ import annotations

from collections import Counter

import pytest

from s3_retention.core.report import RunReport


def a_report(num_discovered: int, **counts: int) -> RunReport:
    return RunReport("p", "cleanup:p:a:b", num_discovered, Counter(counts))


def test_a_run_of_nothing_balances() -> None:
    assert a_report(0).is_balanced


def test_a_run_balances_when_every_command_is_accounted_for() -> None:
    assert a_report(21, deleted=1, already_absent=2, changed=3, kept=4, quarantined=5, stopped=6).is_balanced


@pytest.mark.parametrize("counts", [{"deleted": 9}, {"deleted": 11}, {"deleted": 9, "pending": 1}, {}])
def test_a_run_does_not_balance_when_something_is_missing_or_too_much(counts: dict[str, int]) -> None:
    assert not a_report(10, **counts).is_balanced


def test_the_counts_are_plain_values() -> None:
    report = RunReport(
        "p",
        "k",
        2,
        Counter(deleted=1, quarantined=1),
        Counter({"quarantined:permission": 1}),
        7,
        3,
        num_failed_attempts_by_class=Counter(permission=1, throttled=2),
    )
    assert report.counts() == {
        "num_discovered": 2,
        "num_by_outcome": {"deleted": 1, "quarantined": 1},
        "num_by_detail": {"quarantined:permission": 1},
        "num_failed_attempts_by_class": {"permission": 1, "throttled": 2},
        "num_deleted_bytes": 7,
        "num_remaining": 3,
        "num_uploads_aborted": 0,
        "num_redriven_by_class": {},
        "num_resolved_by_class": {},
        "tenants": [],
        "num_rows_by_outcome": {},
        "is_balanced": True,
        "plan_hash": None,
        "rules_hash": None,
        "seconds": {},
    }


def test_the_report_prints_one_screen() -> None:
    details = Counter({"quarantined:permission": 2, "quarantined:malformed": 1, "kept:keeper_gone": 4})
    counts = Counter(deleted=4991, kept=4, quarantined=3, stopped=2)
    report = RunReport(
        "digests",
        "cleanup:digests:a:b",
        5000,
        counts,
        details,
        1_234_567,
        1000,
        num_failed_attempts_by_class=Counter(throttled=2000, permission=2),
    )
    assert str(report).split("\n") == [
        "policy digests, interval cleanup:digests:a:b",
        "  discovered             5,000",
        "  deleted                4,991",
        "  kept                       4",
        "    keeper_gone              4",
        "  quarantined                3",
        "    malformed                1",
        "    permission               2",
        "  stopped                    2",
        "  failed attempts        2,002",
        "    permission               2",
        "    throttled            2,000",
        "  bytes deleted      1,234,567",
        "  left to the next run   1,000",
        "  balanced",
    ]


def test_a_report_that_does_not_balance_says_so() -> None:
    assert str(a_report(1, pending=1)).endswith(
        "\n  pending                    1\n  bytes deleted              0\n  NOT BALANCED"
    )
    assert str(RunReport(None, None, 0)).startswith("policy -, interval -\n")
