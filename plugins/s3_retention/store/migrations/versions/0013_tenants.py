"""How much of one tenant a plan takes."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0013_tenants.sql."""
    run_sql_file("0013_tenants.sql")
