"""Settings and policies as this Airflow has them. Imported while DAG files are read: nothing heavy here."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import conf

from s3_retention import policy_files
from s3_retention.core.outcome import FailureClass
from s3_retention.errors import PolicyError
from s3_retention.settings import SECTION, Settings, read_settings

if TYPE_CHECKING:
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.policy_files import PolicyFile


BATCH_LABEL = (
    "batch {{ task.op_kwargs['batch']['number'] }} · "
    "{{ '{:,}'.format(task.op_kwargs['batch']['num_commands']) }} "
    "object{{ '' if task.op_kwargs['batch']['num_commands'] == 1 else 's' }}"
)
"""What a mapped index is called in the UI, rendered when its task starts."""

FAILURE_CLASSES = tuple(one.value for one in FailureClass)
"""The failure classes, for the redrive form."""


def settings() -> Settings:
    """Read the settings. Raises ``SettingsError``."""
    sql_dir = conf.get(SECTION, "sql_dir", fallback=None)
    if sql_dir:
        # The store may not import Airflow: what airflow.cfg says reaches it by the environment.
        os.environ.setdefault("AIRFLOW__S3_RETENTION__SQL_DIR", sql_dir)
    return read_settings(
        lambda name: conf.get(SECTION, name, fallback=None),
        airflow_home=Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser(),
    )


def timetable(policy: RetentionPolicy) -> Any:
    """Give the timetable of a policy's DAG; None for a manual one."""
    return _timetable(policy.schedule, policy.timezone)


def audit_timetable() -> Any:
    """Give the timetable of the audit; None where it is by hand only. Raises ``SettingsError``."""
    return _timetable(settings().audit_schedule, "UTC")


def _timetable(schedule: str | None, timezone: str) -> Any:
    """Make a timetable of ticks.

    Named, and not left to Airflow: with ``[scheduler] create_cron_data_intervals`` it would take one whose logical date
    is the tick before, and a deadline counts from there.
    """
    if schedule is None:
        return None
    import airflow.sdk

    timetable_class: Any = getattr(airflow.sdk, "CronTriggerTimetable", None)
    if timetable_class is None:  # before Airflow 3.2
        timetable_class = import_module("airflow.timetables.trigger").CronTriggerTimetable
    return timetable_class(schedule, timezone=timezone)


def retry_arguments() -> dict[str, Any]:
    """Give the ``default_args`` by which Airflow runs a failed task again."""
    at = settings()
    return {"retries": at.task_retries, "retry_delay": at.task_retry_delay}


def read_policies() -> list[PolicyFile]:
    """Read every policy file; a broken one carries its error. Raises ``PolicyError`` without a folder."""
    at = settings()
    return policy_files.read_policy_files(at.policies_dir, min_retention=at.min_retention)


def check_policies() -> None:
    """Raise ``PolicyError`` that names every broken policy file, field and fix."""
    broken = [file.error for file in read_policies() if file.error is not None]
    if broken:
        raise PolicyError("\n".join(broken))


def load_policy(name: str) -> RetentionPolicy:
    """Read one policy as its file stands now. Raises ``PolicyError``."""
    at = settings()
    return policy_files.load_policy(at.policies_dir, name, min_retention=at.min_retention)


def max_map_length() -> int:
    """Read how many mapped tasks Airflow takes: a longer list would fail the task that returns it."""
    return int(conf.getint("core", "max_map_length"))
