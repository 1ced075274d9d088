"""Opens a store from a shell: by the credentials that boto3 finds there, and none of Airflow's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from s3_retention.core.durations import parse_duration
from s3_retention.shell.answers import Exit, fail

if TYPE_CHECKING:
    from datetime import timedelta

    from s3_retention.s3.gateway import S3Gateway

# plugins/s3_retention/shell/stores.py: include/ lies beside plugins/.
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


def open_gateway(*, parallel: int) -> S3Gateway:
    """Open the store that the environment names: AWS_PROFILE, AWS_ENDPOINT_URL, keys or the machine's identity."""
    import boto3
    from botocore.exceptions import BotoCoreError

    from s3_retention.s3.client_config import client_config
    from s3_retention.s3.gateway import S3Gateway

    try:
        client = boto3.Session().client("s3", config=client_config(parallel=parallel))
    except (BotoCoreError, ValueError) as error:
        # Of a profile that is not there, an endpoint that is no URL; botocore's text may hold either, and is left out.
        fail(
            f"the store cannot be opened by what this shell has in AWS_PROFILE, AWS_ENDPOINT_URL and the like: "
            f"{type(error).__name__}",
            Exit.NOT_GOOD,
        )
    return S3Gateway(client)
