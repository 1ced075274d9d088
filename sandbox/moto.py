"""A second S3 server, with faults of its own: moto's. Only tests that hold stores against each other need it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from sandbox.ports import LOOPBACK, free_ports
from sandbox.process import Part, wait_until
from sandbox.s3 import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mypy_boto3_s3.client import S3Client


@dataclass(frozen=True)
class MotoServer:
    """A running server. It checks no signature and knows no identity: everyone may do everything."""

    endpoint: str
    part: Part

    def client(self, config: Config | None = None) -> S3Client:
        """A client of it."""
        return boto3.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="anyone",
            aws_secret_access_key="anything",  # noqa: S106 - it is not looked at
            config=CONFIG.merge(config) if config else CONFIG,
        )


@contextmanager
def moto_server(folder: Path) -> Iterator[MotoServer]:
    """Start a server with its log in `folder` and stop it at the end; its data are in its memory."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    with Part("moto", command, log=folder / "moto.log", patience=0) as part:
        server = MotoServer(f"http://{LOOPBACK}:{port}", part)
        client = server.client(Config(connect_timeout=2, read_timeout=5))

        def answers() -> bool:
            try:
                client.list_buckets()
            except BotoCoreError:
                return False
            return True

        wait_until(answers, what="the start of moto", parts=[part], timeout=60)
        yield server
