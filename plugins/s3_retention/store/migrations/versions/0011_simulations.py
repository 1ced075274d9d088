"""What a policy in mode simulate would delete."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0011_simulations.sql."""
    run_sql_file("0011_simulations.sql")
