"""The settings of the package: section ``[s3_retention]`` of airflow.cfg, or ``AIRFLOW__S3_RETENTION__*``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from s3_retention.core.durations import parse_duration
from s3_retention.core.schedule import check_schedule
from s3_retention.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

SECTION = "s3_retention"


@dataclass(frozen=True, slots=True)
class Settings:
    """What an installation decides, as against what a policy does.

    ``ledger_conn_id``: the Airflow connection to the ledger database. ``policies_dir``: the folder of policy
    files. ``min_retention``: the floor under every retention. ``task_retries`` and ``task_retry_delay``: how
    often, and after how long, Airflow runs a failed task again. ``on_finding``: the notifier class that each new
    finding is handed to, as ``module.Class``; None for none. ``restore_aws_conn_id``: the Airflow connection by which
    deleted objects are brought back; None where the form of a restore must name it. ``audit_schedule``: when every
    policy is audited, as a cron expression in UTC or a preset; None for by hand only.
    """

    ledger_conn_id: str
    policies_dir: Path
    min_retention: timedelta
    task_retries: int
    task_retry_delay: timedelta
    on_finding: str | None = None
    restore_aws_conn_id: str | None = None
    audit_schedule: str | None = None


def read_settings(get: Callable[[str], str | None], *, airflow_home: Path) -> Settings:
    """Read the settings through ``get(name)``, which gives None for what is not set.

    Raises ``SettingsError`` that names the setting, its value and the fix.
    """
    return Settings(
        ledger_conn_id=get("ledger_conn_id") or "s3_retention_ledger",
        policies_dir=_policies_dir(get("policies_dir"), airflow_home),
        min_retention=_duration(get, "min_retention", "1d"),
        task_retries=_count(get, "task_retries", "2"),
        task_retry_delay=_duration(get, "task_retry_delay", "30s"),
        on_finding=_class_path(get, "on_finding"),
        restore_aws_conn_id=get("restore_aws_conn_id") or None,
        audit_schedule=_schedule(get, "audit_schedule"),
    )


def _schedule(get: Callable[[str], str | None], name: str) -> str | None:
    value = get(name) or None
    try:
        return None if value is None else check_schedule(value)
    except ValueError as error:
        raise SettingsError(f"[{SECTION}] {name} = {value!r} {error}") from error


def _duration(get: Callable[[str], str | None], name: str, default: str) -> timedelta:
    value = get(name) or default
    try:
        length = parse_duration(value)
    except ValueError as error:
        raise SettingsError(f"[{SECTION}] {name} = {value!r} {error}") from error
    if length < timedelta(0):
        raise SettingsError(f"[{SECTION}] {name} = {value!r} is negative; write for example {default}")
    return length


def _count(get: Callable[[str], str | None], name: str, default: str) -> int:
    value = get(name) or default
    if not value.isdecimal():
        raise SettingsError(f"[{SECTION}] {name} = {value!r} is no count; write for example {default}")
    return int(value)


def _class_path(get: Callable[[str], str | None], name: str) -> str | None:
    value = get(name) or None
    if value is not None and not all(part.isidentifier() for part in value.split(".")):
        raise SettingsError(f"[{SECTION}] {name} = {value!r} is no class; write for example my_alerts.Pager")
    if value is not None and "." not in value:
        raise SettingsError(
            f"[{SECTION}] {name} = {value!r} names no module; write for example my_alerts.Pager"
        )
    return value


def _policies_dir(setting: str | None, airflow_home: Path) -> Path:
    if setting:
        return Path(setting)
    beside_plugins = Path(__file__).resolve().parents[2] / "include" / "policies"
    at_home = airflow_home / "include" / "policies"
    return at_home if at_home.is_dir() else beside_plugins
