"""What stores do with conditions, the rate that they are asked at, and the attempts that failed."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0004_stores.sql."""
    run_sql_file("0004_stores.sql")
