-- What a delete leaves behind in a bucket with versions.
-- Alembic runs this file in one transaction.

-- Markers -------------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.ledger_entries ADD COLUMN marker_version_id text
CHECK (marker_version_id IS NULL OR (outcome = 'deleted' AND version_id IS NULL));
COMMENT ON COLUMN s3_retention.ledger_entries.marker_version_id IS
'The delete marker that the delete has put on top of the key; removing it brings the object back.';

-- Locks ---------------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.failures ADD COLUMN not_before timestamptz;
COMMENT ON COLUMN s3_retention.failures.not_before IS
'Of class locked: until then the store will not delete the version; NULL under a hold, which has no end.';
COMMENT ON COLUMN s3_retention.quarantine.not_before IS
'Of class locked: the plan that sees the version after this time closes the row and plans it anew.';

-- Grants --------------------------------------------------------------------------------------------------
GRANT UPDATE (not_before) ON s3_retention.failures TO s3_retention_writer;
