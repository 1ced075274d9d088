"""Applies the ledger schema: Alembic keeps the order, the statements stand in ``include/sql/migrations``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from s3_retention.errors import LedgerError, LedgerUnavailableError, SchemaOutdatedError
from s3_retention.store.queries import sql_dir
from s3_retention.store.statements import fetch_one

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection

SCHEMA = "s3_retention"
REQUIRED_REVISION = "0017"
"""The revision that this code needs; a test holds it against the newest migration."""


def run_sql_file(name: str) -> None:
    """Run one file of ``include/sql/migrations`` in the transaction of the migration under way."""
    from alembic import op

    statements = (sql_dir() / "migrations" / name).read_text(encoding="utf-8")
    # The driver's own connection: a file holds many statements, and SQLAlchemy would read `:` as parameters.
    op.get_bind().connection.cursor().execute(statements)


def upgrade(conninfo: str) -> None:
    """Bring the ledger database to the newest revision; a database that is there already is left as it is.

    ``conninfo`` names a role that may create schemas and roles (docs/deploy.md). Raises
    ``LedgerUnavailableError`` when the database cannot be reached.
    """
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine, pool, text

    def connect() -> psycopg.Connection[tuple[object, ...]]:
        try:
            return psycopg.connect(conninfo)
        except psycopg.Error:
            # Its words may hold a part of the password.
            raise LedgerUnavailableError(
                "the ledger database cannot be reached: check host, port, database, role and password of the "
                "conninfo; in a URL, write special characters of the password as %XX"
            ) from None

    engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=pool.NullPool)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.begin() as connection:
        # Two migrations at once would both find the schema missing.
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('s3_retention.migrate', 0))"))
        connection.execute(text("CREATE SCHEMA IF NOT EXISTS s3_retention"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def check_revision(conn: Connection) -> None:
    """Make sure that the ledger has the schema that this code needs.

    Raises ``SchemaOutdatedError``, whose message holds the command to run, when it has another one or none.
    """
    try:
        row = fetch_one(conn, "alembic_version", "get_revision")
    except LedgerError as error:
        if not isinstance(error.__cause__, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            raise
        row = None
    found = row["version_num"] if row else None
    if found != REQUIRED_REVISION:
        raise SchemaOutdatedError(
            f"the ledger schema is at revision {found or 'none'}, and this code needs {REQUIRED_REVISION}: run "
            "`make migrate`, or `PYTHONPATH=plugins python -m s3_retention migrate`, with the connection of the "
            "schema's owner in S3_RETENTION_LEDGER_CONNINFO"
        )
