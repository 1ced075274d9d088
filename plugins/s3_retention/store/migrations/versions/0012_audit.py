"""What an auditor asks, as views."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0012_audit.sql."""
    run_sql_file("0012_audit.sql")
