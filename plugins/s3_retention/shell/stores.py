"""Opens a store from a shell: by the credentials that boto3 finds there, and none of Airflow's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.shell.answers import Exit, fail

if TYPE_CHECKING:
    from s3_retention.s3.gateway import S3Gateway


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
