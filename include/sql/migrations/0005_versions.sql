-- Buckets with versions: delete markers, locks and unfinished uploads.
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

-- Uploads -------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.aborted_uploads (
    bucket text NOT NULL,
    upload_id text NOT NULL,
    policy text NOT NULL,
    interval_id bigint NOT NULL REFERENCES s3_retention.intervals (interval_id),
    dag_id text NOT NULL,
    run_id text NOT NULL,
    key text COLLATE "C" NOT NULL,
    initiated_at timestamptz NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('aborted', 'already_absent')),
    request_id text,
    aborted_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    PRIMARY KEY (bucket, upload_id)
);
CREATE INDEX aborted_uploads_run ON s3_retention.aborted_uploads (run_id, dag_id);
COMMENT ON TABLE s3_retention.aborted_uploads IS
'One row per unfinished multipart upload that a run has aborted. Append-only.';
COMMENT ON COLUMN s3_retention.aborted_uploads.outcome IS
'already_absent: it had ended, or been aborted, between the listing and the abort.';

CREATE TRIGGER aborted_uploads_append_only BEFORE UPDATE OR DELETE ON s3_retention.aborted_uploads
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER aborted_uploads_not_truncated BEFORE TRUNCATE ON s3_retention.aborted_uploads
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Grants --------------------------------------------------------------------------------------------------
GRANT UPDATE (not_before) ON s3_retention.failures TO s3_retention_writer;
GRANT SELECT ON s3_retention.aborted_uploads TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.aborted_uploads TO s3_retention_writer;
