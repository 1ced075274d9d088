"""Commands for objects of which rows of a database are orphaned."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0015_rows.sql."""
    run_sql_file("0015_rows.sql")
