"""A process that runs the amazon provider's own operator on the prefix that standard input names."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import urlsplit


def main() -> None:
    """Delete everything under the prefix, as a task would."""
    from airflow.providers.amazon.aws.operators.s3 import S3DeleteObjectsOperator

    uri = urlsplit(sys.stdin.read().strip())
    delete = S3DeleteObjectsOperator(
        task_id="delete", bucket=uri.netloc, prefix=uri.path.removeprefix("/"), aws_conn_id="bed"
    )
    context: Any = {}
    delete.execute(context)


if __name__ == "__main__":
    main()
