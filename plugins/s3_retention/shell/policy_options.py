"""Where a shell finds the policies, and the floor under their retentions: the same options for each command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from s3_retention.core.durations import parse_duration

if TYPE_CHECKING:
    from datetime import timedelta

# plugins/s3_retention/shell/policy_options.py: include/ lies beside plugins/.
POLICY_FOLDER = Path(__file__).resolve().parents[3] / "include" / "policies"

Folder = Annotated[
    Path, typer.Option(envvar="AIRFLOW__S3_RETENTION__POLICIES_DIR", help="The folder of the policies.")
]
MinRetention = Annotated[
    str,
    typer.Option(
        envvar="AIRFLOW__S3_RETENTION__MIN_RETENTION", help="The floor, as in [s3_retention] min_retention."
    ),
]
DEFAULT_FLOOR = "1d"


def parse_floor(min_retention: str) -> timedelta:
    """Read the floor. Raises ``typer.BadParameter``."""
    try:
        return parse_duration(min_retention)
    except ValueError as error:
        raise typer.BadParameter(f"{min_retention!r} {error}", param_hint="--min-retention") from error
