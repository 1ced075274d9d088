"""The fields of the redrive form: each says what it takes, and refuses all else in the browser and by REST."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import Param

from s3_retention.core.durations import MAX_LENGTH, UNSIGNED_PATTERN
from s3_retention.runtime import form_fields
from s3_retention.runtime.environment import FAILURE_CLASSES
from s3_retention.runtime.form_fields import INTERVAL, NOTE, TEXT


def redrive_params() -> dict[str, Param]:
    """Make the fields; the names of the policies are offered."""
    return {
        "dry_run": form_fields.dry_run("Show what is selected, and do nothing."),
        "action": Param(
            "redrive",
            enum=["redrive", "waive"],
            title="Action",
            description="waive closes commands undeleted, for good; it takes a note.",
        ),
        "policy": form_fields.policy("The name of one policy; empty for all."),
        "failure_classes": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "enum": list(FAILURE_CLASSES)},
            title="Failure classes",
            description="Only commands that failed so; empty for all.",
            examples=list(FAILURE_CLASSES),
        ),
        "code": Param(
            None,
            **TEXT,
            title="Error code",
            description="Only this code of the store, such as AccessDenied; empty for all.",
        ),
        "operation_ids": form_fields.operation_ids(" Taken however often they were redriven."),
        "tenant": Param(None, **TEXT, title="Tenant", description="Empty for all."),
        "interval": Param(
            None,
            **INTERVAL,
            title="Of one interval",
            description="What was planned in it: its key, as in s3_retention.intervals; empty for all.",
        ),
        "older_than": Param(
            None,
            **form_fields.optional(UNSIGNED_PATTERN, "such as 2d, 12h or 1d12h", maxLength=MAX_LENGTH),
            title="Older than",
            description="Only what failed last so long ago, such as 2d or 12h; empty for all.",
        ),
        "max_commands": Param(
            10_000, type="integer", minimum=1, maximum=100_000, title="At most", description="Oldest first."
        ),
        "note": Param(
            None,
            **NOTE,
            title="Note",
            description="Kept with your name at each command; a waiver takes one.",
        ),
        "replay_interval": Param(
            None,
            **INTERVAL,
            title="Or replay one interval",
            description="Its key, as in s3_retention.intervals: cleanup:<policy>:<start>:<end>. The fields that select "
            "commands must be empty then.",
        ),
    }
