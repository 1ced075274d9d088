-- name: get_revision
-- The revision of the schema, as Alembic keeps it.
SELECT alembic_version.version_num FROM s3_retention.alembic_version;
