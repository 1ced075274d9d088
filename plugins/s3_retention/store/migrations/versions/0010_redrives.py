"""Notes, waived rows and superseded commands."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0010_redrives.sql."""
    run_sql_file("0010_redrives.sql")
