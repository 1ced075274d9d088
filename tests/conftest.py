"""Real parts, one of each per process: a Postgres, a `weed`, and for each test a ledger and a bucket of its own."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, settings
from psycopg.rows import dict_row

from s3_retention.s3.gateway import S3Gateway
from s3_retention.store.connection import Connection, connect
from sandbox.ledger import Ledger, create_ledger
from sandbox.moto import MotoServer, moto_server
from sandbox.postgres import Postgres, postgres
from sandbox.s3 import S3Server, s3_server
from tests.factories import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_s3 import S3Client

# A test's ledger outlives the examples of one property: each example makes its own rows or transaction.
settings.register_profile(
    "s3_retention",
    deadline=None,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "long", settings.get_profile("s3_retention"), max_examples=800, stateful_step_count=80
)
settings.load_profile("long" if os.environ.get("S3_RETENTION_TEST_LONG") else "s3_retention")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with postgres(tmp_path_factory.mktemp("postgres"), in_memory=True) as running:
        yield running


@pytest.fixture(scope="session")
def migrated(postgres_server: Postgres) -> Ledger:
    return create_ledger(postgres_server)


@pytest.fixture
def ledger(migrated: Ledger) -> Iterator[Ledger]:
    """A new, empty ledger."""
    fresh = migrated.fresh_ledger()
    yield fresh
    fresh.drop()


@pytest.fixture
def conn(ledger: Ledger) -> Iterator[Connection]:
    """The ledger as DAGs have it: as the writer."""
    with closing(connect(ledger.writer_conninfo)) as opened:
        yield opened


@pytest.fixture
def root(ledger: Ledger) -> Iterator[Connection]:
    """The ledger as no one has it: as superuser, to look and to break things from outside."""
    opened: psycopg.Connection[dict[str, Any]]
    with closing(psycopg.connect(ledger.superuser_conninfo, row_factory=dict_row, autocommit=True)) as opened:
        opened.execute("SET TIME ZONE 'UTC'")
        yield opened


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3"), worker_buckets=["t-*"]) as running:
        yield running


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    """A second kind of server."""
    with moto_server(tmp_path_factory.mktemp("moto")) as running:
        yield running


@pytest.fixture(scope="session")
def admin(s3: S3Server) -> S3Client:
    return s3.admin_client(Config(max_pool_connections=20))


@pytest.fixture(scope="session")
def gateway(s3: S3Server) -> S3Gateway:
    return S3Gateway(s3.worker_client(Config(max_pool_connections=40)))


@pytest.fixture(scope="session")
def new_bucket(admin: S3Client) -> Iterator[Callable[[], str]]:
    """Gives buckets, each made while the test before runs: the first write into one takes `weed` 0.2 s."""

    def make() -> str:
        name = f"t-{next(_numbers):04d}"
        admin.create_bucket(Bucket=name)
        admin.put_object(Bucket=name, Key="first", Body=b"x")
        admin.delete_object(Bucket=name, Key="first")
        return name

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="bucket") as pool:
        upcoming = [pool.submit(make)]

        def take() -> str:
            name = upcoming.pop().result()
            upcoming.append(pool.submit(make))
            return name

        yield take
        admin.delete_bucket(Bucket=upcoming.pop().result())


@pytest.fixture
def bucket(admin: S3Client, new_bucket: Callable[[], str]) -> Iterator[str]:
    """A bucket of its own. It is deleted at the end: each takes volumes, of which `weed` has few."""
    name = new_bucket()
    yield name
    try:
        while entries := admin.list_objects_v2(Bucket=name).get("Contents", []):
            for entry in entries:
                admin.delete_object(Bucket=name, Key=entry["Key"])
        admin.delete_bucket(Bucket=name)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":  # a test may have deleted it
            raise


@pytest.fixture
def world(
    conn: Connection, root: Connection, s3: S3Server, admin: S3Client, gateway: S3Gateway, bucket: str
) -> World:
    """All of it: a ledger, a bucket, and the steps between them."""
    return World(conn=conn, root=root, s3=s3, admin=admin, gateway=gateway, bucket=bucket)
