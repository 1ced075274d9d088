"""The one file that Airflow's plugin loader runs: it loads early what every task needs.

The scheduler forks the workers of the LocalExecutor, and Celery its own: what is imported before the fork costs no
task anything. The figures are in docs/decisions/0006-preload-before-the-fork.md.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from airflow.plugins_manager import AirflowPlugin

FORKING_COMPONENTS = frozenset({"scheduler", "celery", "standalone"})
NEEDED_BY_TASKS = (
    "airflow.providers.amazon.aws.hooks.s3",
    "s3_retention.runtime.tasks",
    "s3_retention.runtime.redriving",
    "s3_retention.runtime.watching",
    "s3_retention.steps.claim",
    "s3_retention.steps.plan",
    "s3_retention.steps.delete",
    "s3_retention.steps.quarantine",
    "s3_retention.steps.redrive",
    "s3_retention.steps.replay",
    "s3_retention.steps.report",
    "s3_retention.steps.watch",
)


class S3RetentionPlugin(AirflowPlugin):
    """Preloads the modules of the tasks in components that fork workers."""

    name = "s3_retention"

    @classmethod
    def on_load(cls, *_args: Any, **_kwargs: Any) -> None:
        """Import what the tasks import, in a component that forks; nowhere else, where it would cost only."""
        if FORKING_COMPONENTS.intersection(sys.argv[1:]):
            for module in NEEDED_BY_TASKS:
                importlib.import_module(module)
