"""The programs that the package is measured against, each told to delete the whole prefix."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.bucket import BUCKET, PREFIX, as_worker
from benchmarks.measure import PYTHON, REPOSITORY, Cost, run_program

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox.s3 import S3Server

PEERS = REPOSITORY / ".venv" / "peers" / "bin"
URI = f"s3://{BUCKET}/{PREFIX}"
IN_FLIGHT = 16
"""Requests that the package and s5cmd keep in flight. The slow peers run as they come."""


def run_s5cmd(server: S3Server, log: Path) -> Cost:
    """`s5cmd rm`: lists and deletes side by side, and keeps no record."""
    command: list[str | Path] = [
        PEERS / "s5cmd",
        "--numworkers",
        str(IN_FLIGHT),
        "--log",
        "error",
        "rm",
        f"{URI}*",
    ]
    return run_program(command, as_worker(server), log)


def run_awscli(server: S3Server, log: Path) -> Cost:
    """`aws s3 rm --recursive`: one request for each object."""
    command: list[str | Path] = [PEERS / "aws", "s3", "rm", "--recursive", "--only-show-errors", URI]
    return run_program(command, as_worker(server), log)


def run_rclone(server: S3Server, log: Path) -> Cost:
    """`rclone delete`: one request for each object, 8 at once, which is its default."""
    env = as_worker(server) | {
        "RCLONE_CONFIG_BED_TYPE": "s3",
        "RCLONE_CONFIG_BED_PROVIDER": "Other",
        "RCLONE_CONFIG_BED_ENV_AUTH": "true",
        "RCLONE_CONFIG_BED_ENDPOINT": server.endpoint,
        "RCLONE_CONFIG_BED_FORCE_PATH_STYLE": "true",
    }
    where = URI.replace("s3://", "bed:")
    return run_program([PEERS / "rclone", "delete", where], env, log)


def run_operator(server: S3Server, log: Path) -> Cost:
    """`S3DeleteObjectsOperator` of the amazon provider, by its prefix: lists all, then deletes in chunks of 1,000."""
    env = as_worker(server) | {
        "AIRFLOW_HOME": str(log.parent / "operator"),
        "AIRFLOW_CONN_BED": server.airflow_connection_uri,
    }
    cost = run_program([PYTHON, "-m", "benchmarks.provider"], env, log, stdin=URI)
    return replace(cost, **json.loads(log.read_text(encoding="utf-8").splitlines()[-1]))
