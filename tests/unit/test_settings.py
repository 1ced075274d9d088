"""The settings of an installation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from s3_retention.errors import SettingsError
from s3_retention.settings import Settings, read_settings

REPOSITORY = Path(__file__).parents[2]


DEFAULTS = Settings(
    ledger_conn_id="s3_retention_ledger",
    policies_dir=REPOSITORY / "include" / "policies",
    min_retention=timedelta(days=1),
    task_retries=2,
    task_retry_delay=timedelta(seconds=30),
)


def read(values: dict[str, str], home: Path = Path("/nowhere")) -> Settings:
    return read_settings(values.get, airflow_home=home)


def test_nothing_needs_to_be_set() -> None:
    assert read({}) == DEFAULTS


def test_policies_at_airflows_home_come_before_those_beside_the_plugins(tmp_path: Path) -> None:
    (tmp_path / "include" / "policies").mkdir(parents=True)
    assert read({}, tmp_path) == replace(DEFAULTS, policies_dir=tmp_path / "include" / "policies")


def test_what_is_set_counts() -> None:
    values = {
        "ledger_conn_id": "mine",
        "policies_dir": "/p",
        "min_retention": "7d",
        "task_retries": "0",
        "task_retry_delay": "5m",
        "on_finding": "my_alerts.Pager",
    }
    assert read(values) == Settings(
        "mine", Path("/p"), timedelta(days=7), 0, timedelta(minutes=5), "my_alerts.Pager"
    )


def test_the_schedule_of_the_audit_is_one_that_fires_or_is_named_with_what_to_write() -> None:
    assert read({"audit_schedule": "@weekly"}).audit_schedule == "@weekly"
    assert read({"audit_schedule": ""}).audit_schedule is None
    for value, fault in (("@once", "is not a preset"), ("weekly", "is not a cron expression")):
        with pytest.raises(SettingsError) as caught:
            read({"audit_schedule": value})
        assert str(caught.value).startswith(f"[s3_retention] audit_schedule = {value!r} {fault}")


@pytest.mark.parametrize(
    ("value", "fault"),
    [("Pager", "names no module"), ("my alerts.Pager", "is no class"), ("my_alerts.Pager()", "is no class")],
)
def test_a_notifier_that_is_no_class_is_named_with_what_to_write(value: str, fault: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read({"on_finding": value})
    expected = f"[s3_retention] on_finding = {value!r} {fault}; write for example my_alerts.Pager"
    assert str(caught.value) == expected


@pytest.mark.parametrize("name", ["min_retention", "task_retry_delay"])
@pytest.mark.parametrize("value", ["7", "a week", "-1d", "1d 1d"])
def test_a_setting_that_is_no_duration_is_named_with_its_value(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read({name: value})
    assert str(caught.value).startswith(f"[s3_retention] {name} = {value!r} is ")
    assert "; write for example " in str(caught.value)


@pytest.mark.parametrize("value", ["-1", "1.5", "many"])
def test_a_setting_that_is_no_count_is_named_with_its_value(value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read({"task_retries": value})
    assert str(caught.value) == f"[s3_retention] task_retries = {value!r} is no count; write for example 2"
