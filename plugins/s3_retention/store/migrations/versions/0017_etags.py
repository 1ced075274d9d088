"""ETags are stored as they are."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0017_etags.sql."""
    run_sql_file("0017_etags.sql")
