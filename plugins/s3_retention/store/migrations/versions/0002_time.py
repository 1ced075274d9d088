"""Time: schedules, missed intervals, findings and the passes of the watch."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0002_time.sql."""
    run_sql_file("0002_time.sql")
