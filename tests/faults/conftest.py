"""A server of faults before the S3 server of the session, and gateways that go through it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from botocore.config import Config

from s3_retention.s3.gateway import S3Gateway
from s3_retention.s3.limits import RetryLimits
from sandbox.fault_server import FaultServer, fault_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

    from sandbox.s3 import S3Server


@dataclass
class Faulty:
    """The server of faults, and what goes through it. ``waits`` are the seconds that were to be waited; none is."""

    server: FaultServer
    s3: S3Server
    waits: list[float] = field(default_factory=list)
    _clients: dict[tuple[float, int | None], S3Client] = field(default_factory=dict)

    @property
    def limits(self) -> RetryLimits:
        """The product's own limits, but that nobody waits."""
        return RetryLimits(sleep=self.waits.append)

    def gateway(self, read_timeout: float = 20.0, *, page_size: int | None = None) -> S3Gateway:
        """The gateway as `runtime` makes it, but for the patience (in seconds) of its client, and its pages."""
        client = self._clients.get((read_timeout, page_size))
        if client is None:
            config = Config(
                max_pool_connections=40,
                read_timeout=read_timeout,
                retries={"mode": "standard", "total_max_attempts": 1},
            )
            client = replace(self.s3, endpoint=self.server.endpoint).worker_client(config)
            if page_size is not None:
                client.meta.events.register(
                    "provide-client-params.s3.ListObjectsV2",
                    lambda params, **_: params | {"MaxKeys": page_size},
                )
            self._clients[read_timeout, page_size] = client
        return S3Gateway(client, self.limits)

    def close(self) -> None:
        """Close what clients have open."""
        for client in self._clients.values():
            client.close()


@pytest.fixture(scope="session")
def faulty_of_session(s3: S3Server) -> Iterator[Faulty]:
    with fault_server(s3.endpoint, s3.worker) as server:
        faulty = Faulty(server, s3)
        yield faulty
        faulty.close()


@pytest.fixture
def faulty(faulty_of_session: Faulty) -> Faulty:
    """The server of faults, without a fault yet."""
    faulty_of_session.server.script()
    faulty_of_session.waits.clear()
    return faulty_of_session
