"""Alembic's entry: runs the migrations on the connection that ``s3_retention.store.migrate`` opened."""

from __future__ import annotations

from alembic import context

from s3_retention.store.migrate import SCHEMA

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table_schema=SCHEMA)
with context.begin_transaction():
    context.run_migrations()
