-- Redrives that say why, rows that a person waives, and commands that took the place of another one.
-- Alembic runs this file in one transaction.

-- Quarantine ----------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.quarantine ADD COLUMN superseded_by bytea CHECK (length(superseded_by) = 32);
COMMENT ON COLUMN s3_retention.quarantine.superseded_by IS
'The command that was planned in its place, by which the row was closed.';

ALTER TABLE s3_retention.quarantine DROP CONSTRAINT quarantine_resolution_check;
ALTER TABLE s3_retention.quarantine ADD CONSTRAINT quarantine_resolution_check
CHECK (resolution IN ('deleted', 'already_absent', 'changed', 'kept', 'waived'));
COMMENT ON COLUMN s3_retention.quarantine.resolution IS
'How it ended; waived: a person closed it undeleted, and its ledger entry is kept with that reason.';

ALTER TABLE s3_retention.quarantine_events DROP CONSTRAINT quarantine_events_event_check;
ALTER TABLE s3_retention.quarantine_events ADD CONSTRAINT quarantine_events_event_check
CHECK (event IN ('quarantined', 'redriven', 'returned', 'resolved', 'superseded', 'waived'));
ALTER TABLE s3_retention.quarantine_events ADD COLUMN note text CHECK (btrim(note) <> '');
COMMENT ON COLUMN s3_retention.quarantine_events.note IS 'What the person who acted wrote into the form.';
CREATE INDEX quarantine_events_run ON s3_retention.quarantine_events (run_id, dag_id);

-- Grants --------------------------------------------------------------------------------------------------
GRANT UPDATE (superseded_by) ON s3_retention.quarantine TO s3_retention_writer;
