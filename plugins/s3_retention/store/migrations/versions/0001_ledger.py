"""The ledger: intervals, plans as manifests, outcomes as rows, quarantine."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0001_ledger.sql."""
    run_sql_file("0001_ledger.sql")
