"""Restores."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0009_restores.sql."""
    run_sql_file("0009_restores.sql")
