"""The application of the sandbox as the package sees it: its rows, and the policies of its orphans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from s3_retention.sources.postgres_rows import PostgresRows
from s3_retention.sources.rows_database import RowsDatabase
from sandbox import app_database
from sandbox.app_database import NAME

if TYPE_CHECKING:
    from s3_retention.core.policy import RetentionPolicy


@dataclass(frozen=True)
class AppDatabase(app_database.AppDatabase):
    """One database of it."""

    def rows(self, policy: RetentionPolicy, *, conninfo: str | None = None) -> PostgresRows:
        """Give the rows as a policy sees them."""
        assert policy.source.rows is not None
        database = RowsDatabase(conninfo or self.conninfo, NAME, policy.source.rows.statement_timeout)
        return PostgresRows.of(database, policy)


def orphans_of(bucket: str, **changes: Any) -> dict[str, Any]:
    """The section ``source`` of a policy of these rows; ``changes`` replace fields of ``rows``."""
    rows: dict[str, Any] = {
        "postgres_conn_id": NAME,
        "table": "mail.attachments",
        "key": {"column": "sfs_key"},
        "orphaned": [{"column": "email_id", "is_null": True}],
        "detached_at": "orphaned_at",
    }
    rows = {name: value for name, value in (rows | changes).items() if value is not None}
    return {
        "type": "postgres_rows",
        "bucket": bucket,
        "prefix": "sfs/",
        "aws_conn_id": "s3_retention_store",
        "rows": rows,
    }
