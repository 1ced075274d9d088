"""The policy of every run, and the steps' holders."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from benchmarks.bucket import BUCKET, PREFIX
from s3_retention.core.holder import Holder
from s3_retention.core.policy import parse_policy

if TYPE_CHECKING:
    from s3_retention.core.policy import RetentionPolicy

NAME = "bench"
DAG_ID = f"s3_retention_cleanup__{NAME}"
BATCH_SIZE = 100_000
PARALLEL = 16
FIELDS: dict[str, Any] = {
    "name": NAME,
    "version": "v1",
    "mode": "enforce",
    "schedule": None,
    "source": {"type": "s3_listing", "bucket": BUCKET, "prefix": PREFIX, "aws_conn_id": "s3_retention_store"},
    "select": {"regex": PREFIX + r"[0-9]{4}-[0-9]{2}/[0-9]{2}/customer-(?P<customer>[0-9]+)\.json"},
    "age": {
        "from": "key_date",
        "regex": f"^{PREFIX}(?P<date>[0-9]{{4}}-[0-9]{{2}})/",
        "format": "%Y-%m",
        "retain": "30d",
    },
    "batch": {"size": BATCH_SIZE, "parallel": PARALLEL},
    "limits": {"allow_expire_everything": True, "max_commands_per_run": 10_000_000},
}


def a_policy() -> RetentionPolicy:
    """The policy: every object of the bucket is due."""
    return parse_policy(FIELDS, where="the benchmark", min_retention=timedelta(days=1))


def holder(task: str, map_index: int = -1, run: str = "run-1") -> Holder:
    """A try of a task of one cleanup run."""
    return Holder(DAG_ID, run, task, map_index, 1)
