"""Plans that wait for approval, the hash of a plan, and the canary of a new version."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0008_approvals.sql."""
    run_sql_file("0008_approvals.sql")
