"""The ledger database of the sandbox: its roles, its schema, and quick copies of it for tests."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.postgres import Postgres

PLUGINS = Path(__file__).resolve().parent.parent / "plugins"
DATABASE = "ledger"
TEMPLATE = "ledger_template"
OWNER = "s3_retention_owner"
WRITER_GROUP = "s3_retention_writer"  # made by the migration, without LOGIN
WRITER = "airflow_retention"


@dataclass(frozen=True)
class Ledger:
    """One migrated ledger database. The product logs in as the writer; only migrations as the owner."""

    postgres: Postgres
    database: str
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    @property
    def writer_conninfo(self) -> str:
        """A libpq URI for the login that DAGs have: it can neither change nor delete ledger entries."""
        return self.postgres.conninfo(WRITER, self.database)

    @property
    def owner_conninfo(self) -> str:
        """A libpq URI for the owner of the schema."""
        return self.postgres.conninfo(OWNER, self.database)

    @property
    def superuser_conninfo(self) -> str:
        """A libpq URI for the superuser, for tests that look or break things from outside."""
        return self.postgres.superuser_conninfo(self.database)

    @property
    def airflow_connection_uri(self) -> str:
        """The Airflow connection, for `AIRFLOW_CONN_S3_RETENTION_LEDGER`: the writer's libpq URI is one."""
        return self.writer_conninfo

    def fresh_ledger(self) -> Ledger:
        """A new, empty ledger in a database of its own, copied from the template."""
        name = f"{self.database}_{next(self._numbers)}"
        self.postgres.create_database(name, template=TEMPLATE, owner=OWNER)
        return Ledger(self.postgres, name)

    def drop(self) -> None:
        """Drop this database, with whoever is connected to it."""
        self.postgres.drop_database(self.database)


def create_ledger(postgres: Postgres, *, upgrade: Callable[[str], object] | None = None) -> Ledger:
    """Create roles, template and the database `ledger`, migrated by `upgrade(owner's conninfo)`.

    The default is the product's own migration. It runs as the owner, as in production, never as superuser.
    Once for each server: roles belong to all of its databases.
    """
    upgrade = upgrade or _product_migration()
    # CREATEROLE because the migration makes the group of the writers.
    postgres.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEROLE").format(sql.Identifier(OWNER)))
    postgres.create_database(TEMPLATE, owner=OWNER)
    upgrade(postgres.conninfo(OWNER, TEMPLATE))
    postgres.execute(
        sql.SQL("CREATE ROLE {} LOGIN IN ROLE {}").format(
            sql.Identifier(WRITER), sql.Identifier(WRITER_GROUP)
        )
    )
    postgres.create_database(DATABASE, template=TEMPLATE, owner=OWNER)
    return Ledger(postgres, DATABASE)


def _product_migration() -> Callable[[str], object]:
    if importlib.util.find_spec("s3_retention") is None:
        sys.path.append(str(PLUGINS))
    from s3_retention.store import migrate

    return migrate.upgrade
