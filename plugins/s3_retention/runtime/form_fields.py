"""Fields that several forms have: what each takes, in the browser and by REST."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import Param

from s3_retention.runtime.environment import read_policies

OPTIONAL_TEXT = ["null", "string"]
# A format alone is a word to the browser: the API lets everything through.
TIME: dict[str, Any] = {
    "type": OPTIONAL_TEXT,
    "format": "date-time",
    "pattern": r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$",
}
BUCKET: dict[str, Any] = {"type": OPTIONAL_TEXT, "pattern": r"^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$"}
INTERVAL: dict[str, Any] = {"type": OPTIONAL_TEXT, "pattern": "^cleanup:"}


def dry_run(description: str) -> Param:
    """Make the switch that is on unless somebody switches it off."""
    return Param(default=True, type="boolean", title="Dry run", description=description)


def operation_ids(description: str) -> Param:
    """Make a field of operation ids."""
    return Param(
        None,
        type=["null", "array"],
        items={"type": "string", "pattern": "^[0-9a-f]{64}$"},
        title="Operation ids",
        description=f"One a line, 64 hex digits each; empty for all.{description}",
    )


def policy(description: str) -> Param:
    """Make a field of a policy's name; the names that there are are offered."""
    return Param(
        None,
        type=OPTIONAL_TEXT,
        pattern="^[a-z][a-z0-9_]{0,62}$",
        title="Policy",
        description=description,
        examples=[file.policy.name for file in read_policies() if file.policy],
    )
