"""Opens the ledger and the stores from Airflow connections: secrets live there and nowhere else."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import BaseHook

from s3_retention.errors import SettingsError
from s3_retention.runtime.environment import settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.sources.postgres_rows import PostgresRows
    from s3_retention.sources.row_source import PlanSource
    from s3_retention.store.connection import Connection

CONNECT_TIMEOUT_SECONDS = 10


@contextmanager
def open_ledger() -> Iterator[Connection]:
    """Open the ledger with psycopg 3 and make sure of its schema; closed at the end.

    Raises ``SettingsError`` without the connection, ``LedgerUnavailableError`` or ``SchemaOutdatedError``.
    """
    from s3_retention.store.connection import connect
    from s3_retention.store.migrate import check_revision

    with closing(connect(_read_conninfo(settings().ledger_conn_id, "the ledger database"))) as conn:
        check_revision(conn)
        yield conn


def open_rows(policy: RetentionPolicy) -> PostgresRows:
    """Open the database of the rows of a policy of rows. Raises ``SettingsError`` without its connection."""
    from s3_retention.sources.postgres_rows import PostgresRows
    from s3_retention.sources.rows_database import RowsDatabase

    rows = policy.source.rows
    if rows is None:
        raise SettingsError(f"policy {policy.name}: source.type is not postgres_rows")
    conninfo = _read_conninfo(rows.postgres_conn_id, f"the rows of policy {policy.name}")
    return PostgresRows.of(RowsDatabase(conninfo, rows.postgres_conn_id, rows.statement_timeout), policy)


def _read_conninfo(conn_id: str, purpose: str) -> str:
    from psycopg.conninfo import make_conninfo

    found = _get_connection(conn_id, purpose)
    # Only what libpq knows: an Airflow connection may carry extras for hooks.
    extras = {
        name: value for name, value in (found.extra_dejson or {}).items() if name in _LIBPQ_EXTRAS and value
    }
    parts = {
        "host": found.host,
        "port": found.port,
        "user": found.login,
        "password": found.password,
        "dbname": found.schema,
    }
    return make_conninfo(**_LIBPQ_DEFAULTS | {name: value for name, value in parts.items() if value} | extras)


# A server that vanishes without a word is noticed in about a minute, not after the two hours of TCP's defaults.
_LIBPQ_DEFAULTS = {
    "connect_timeout": CONNECT_TIMEOUT_SECONDS,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_LIBPQ_EXTRAS = frozenset(_LIBPQ_DEFAULTS) | {
    "host",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "target_session_attrs",
    "options",
}


def open_store(policy: RetentionPolicy, *, conn_id: str | None = None) -> S3Gateway:
    """Make the gateway to the store of a policy; ``conn_id`` is another connection than the policy's to it.

    The connection's own ``config_kwargs`` (path style, proxies) are kept. Raises ``SettingsError`` without it.
    """
    from s3_retention.core.policy_batch import Checksum
    from s3_retention.s3.checksums import send_md5

    gateway = _open_gateway(
        conn_id or policy.source.aws_conn_id,
        f"the store of policy {policy.name}",
        parallel=policy.batch.parallel,
    )
    if policy.batch.checksum is Checksum.MD5:
        send_md5(gateway.client)
    return gateway


def open_restored_store(conn_id: str | None, *, parallel: int) -> S3Gateway:
    """Make the gateway by which markers are removed, under an identity that may; None: that of the settings.

    Raises ``SettingsError`` where neither names a connection, or it is not there.
    """
    named = conn_id or settings().restore_aws_conn_id
    if named is None:
        raise SettingsError(
            "aws_conn_id is empty, and [s3_retention] restore_aws_conn_id is not set: name the Airflow connection "
            "whose identity may remove delete markers (docs/deploy.md)"
        )
    return _open_gateway(named, "the store of a restore", parallel=parallel)


def _open_gateway(conn_id: str, purpose: str, *, parallel: int) -> S3Gateway:
    from airflow.providers.amazon.aws.hooks.s3 import S3Hook

    from s3_retention.s3.client_config import client_config
    from s3_retention.s3.gateway import S3Gateway

    # Without this, the hook would go on with whatever identity the machine has.
    _get_connection(conn_id, purpose)
    config = client_config(parallel=parallel)
    theirs = S3Hook(aws_conn_id=conn_id).conn_config.botocore_config
    client = S3Hook(aws_conn_id=conn_id, config=config.merge(theirs) if theirs else config).get_conn()
    return S3Gateway(client)


def open_source(policy: RetentionPolicy, *, is_simulated: bool = False) -> PlanSource:
    """Open where the candidates of a policy come from. Raises ``SettingsError`` without its connection.

    A simulation looks by ``source.simulate_aws_conn_id``, where that is set.
    """
    from s3_retention.sources.row_source import RowSource
    from s3_retention.sources.s3_listing import S3Listing

    named = policy.source.simulate_aws_conn_id if is_simulated else None
    store = open_store(policy, conn_id=named)
    if policy.source.rows is not None:
        return RowSource(open_rows(policy), store)
    return S3Listing(store, policy.source.bucket, policy.source.prefix)


def _get_connection(conn_id: str, purpose: str) -> Any:
    try:
        return BaseHook.get_connection(conn_id)
    except Exception as error:
        # Airflow raises different types from version to version; each means that there is no such connection.
        raise SettingsError(
            f"the Airflow connection {conn_id!r}, for {purpose}, was not found: create it (docs/deploy.md)"
        ) from error
