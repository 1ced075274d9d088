"""Commands by their place in their chunk."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0006_places.sql."""
    run_sql_file("0006_places.sql")
