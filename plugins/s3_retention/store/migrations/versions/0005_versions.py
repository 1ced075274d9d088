"""Buckets with versions: delete markers, locks and unfinished uploads."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0005_versions.sql."""
    run_sql_file("0005_versions.sql")
