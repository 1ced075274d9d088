"""What took how long in a run."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from s3_retention.core.run_times import SPANS, RunTimes

AT = datetime(2026, 6, 1, tzinfo=timezone.utc)


def after(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def test_each_span_is_told_in_seconds() -> None:
    times = RunTimes(AT, after(1), after(3), after(3.5), after(10.25), after(11))
    assert times.seconds() == dict(zip(SPANS, (1.0, 2.0, 6.75, 10.0), strict=True))


def test_what_did_not_happen_has_no_duration() -> None:
    assert RunTimes(None, None, None, None, None, AT).seconds() == {}


def test_a_scheduler_whose_clock_is_ahead_makes_no_negative_wait() -> None:
    assert RunTimes(after(5), AT, None, None, None, after(1)).seconds() == {
        "trigger_to_claim": 0.0,
        "claim_to_report": 1.0,
    }
