"""What audits have found."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0016_audits.sql."""
    run_sql_file("0016_audits.sql")
