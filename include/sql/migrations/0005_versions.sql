-- What a delete leaves behind in a bucket with versions.
-- Alembic runs this file in one transaction.

-- Markers -------------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.ledger_entries ADD COLUMN marker_version_id text
CHECK (marker_version_id IS NULL OR (outcome = 'deleted' AND version_id IS NULL));
COMMENT ON COLUMN s3_retention.ledger_entries.marker_version_id IS
'The delete marker that the delete has put on top of the key; removing it brings the object back.';
