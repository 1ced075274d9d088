"""A process that runs the amazon provider's own operator on the prefix that standard input names.

It writes one line of JSON: seconds of wall time and CPU of the operator. The start of the interpreter and of Airflow is
not in it, as it is not for the package.
"""

from __future__ import annotations

import json
import os
import sys
import time
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
    started, before = time.monotonic(), os.times()
    delete.execute(context)
    wall, after = time.monotonic() - started, os.times()
    cpu = after.user + after.system - before.user - before.system
    print(json.dumps({"wall": wall, "cpu": cpu}))


if __name__ == "__main__":
    main()
