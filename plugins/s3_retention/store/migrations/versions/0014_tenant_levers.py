"""Pauses of tenants."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0014_tenant_levers.sql."""
    run_sql_file("0014_tenant_levers.sql")
