"""Legal holds and kill switches."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0007_levers.sql."""
    run_sql_file("0007_levers.sql")
