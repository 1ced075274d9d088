"""Replays of one interval, late runs, and the figures of the capacity rule."""

from __future__ import annotations

from s3_retention.store.migrate import run_sql_file

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run include/sql/migrations/0003_replay.sql."""
    run_sql_file("0003_replay.sql")
