-- Audits: rows and objects held against each other, with what was found.
-- Alembic runs this file in one transaction.

CREATE TABLE s3_retention.audits (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy text NOT NULL,
    policy_version text NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    acted_by text,
    note text CHECK (btrim(note) <> ''),
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    num_objects bigint NOT NULL CHECK (num_objects >= 0),
    num_rows bigint NOT NULL CHECK (num_rows >= 0),
    counts jsonb NOT NULL,
    num_quarantined bigint NOT NULL CHECK (num_quarantined >= 0)
);
CREATE INDEX audits_policy ON s3_retention.audits (policy, audit_id);
CREATE INDEX audits_run ON s3_retention.audits (run_id, dag_id);
COMMENT ON TABLE s3_retention.audits IS
'Each audit of a policy: how much it saw, and how many differences of each kind. Append-only.';
COMMENT ON COLUMN s3_retention.audits.num_quarantined IS
'Objects without a row that it has put into quarantine, since its form said so.';

CREATE TABLE s3_retention.audit_differences (
    audit_id bigint NOT NULL REFERENCES s3_retention.audits (audit_id),
    kind text NOT NULL CHECK (
        kind IN ('object_without_row', 'row_without_object', 'row_malformed', 'row_without_key', 'overdue')
    ),
    bucket text NOT NULL,
    key text COLLATE "C",
    row_id text,
    size bigint,
    last_modified_at timestamptz,
    due_at timestamptz,
    CHECK (num_nonnulls(key, row_id) >= 1)
);
CREATE INDEX audit_differences_audit ON s3_retention.audit_differences (audit_id, kind);
COMMENT ON TABLE s3_retention.audit_differences IS
'The first differences of each kind that an audit found, and found again by a second look. Append-only.';
COMMENT ON COLUMN s3_retention.audit_differences.key IS
'Of the object; of a malformed row, what its key columns say.';

CREATE TRIGGER audits_append_only BEFORE UPDATE OR DELETE ON s3_retention.audits
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER audits_not_truncated BEFORE TRUNCATE ON s3_retention.audits
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER audit_differences_append_only BEFORE UPDATE OR DELETE ON s3_retention.audit_differences
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER audit_differences_not_truncated BEFORE TRUNCATE ON s3_retention.audit_differences
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.audits, s3_retention.audit_differences
TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.audits, s3_retention.audit_differences TO s3_retention_writer;
