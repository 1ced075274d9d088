-- What audits have found: rows and objects held against each other, and objects past their deadline.
-- Alembic runs this file in one transaction.

-- Audits --------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.audits (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy text NOT NULL,
    policy_version text NOT NULL,
    started_at timestamptz NOT NULL,
    due_before timestamptz,
    num_rows bigint CHECK (num_rows >= 0),
    num_objects bigint NOT NULL CHECK (num_objects >= 0),
    counts jsonb NOT NULL CHECK (jsonb_typeof(counts) = 'object'),
    dag_id text NOT NULL,
    run_id text NOT NULL,
    acted_by text,
    note text,
    num_parked bigint NOT NULL DEFAULT 0 CHECK (num_parked >= 0),
    audited_at timestamptz NOT NULL DEFAULT s3_retention.clock()
);
CREATE INDEX audits_policy ON s3_retention.audits (policy, audit_id);
COMMENT ON TABLE s3_retention.audits IS
'What each audit has found, in counts. One that broke off has no row. Append-only.';
COMMENT ON COLUMN s3_retention.audits.due_before IS
'What was due before then and is still there is overdue; NULL: that could not be told.';
COMMENT ON COLUMN s3_retention.audits.num_rows IS
'Rows read of the table of the policy; NULL: its source has none.';
COMMENT ON COLUMN s3_retention.audits.num_parked IS
'Objects without a row that it has put into quarantine, since its form said so.';
COMMENT ON COLUMN s3_retention.audits.counts IS
'By kind: how many, and of those that were looked at again how many are confirmed, refuted and unknown.';

CREATE TABLE s3_retention.audit_findings (
    audit_id bigint NOT NULL REFERENCES s3_retention.audits (audit_id),
    kind text NOT NULL CHECK (
        kind IN (
            'object_without_row', 'row_without_object', 'overdue', 'row_malformed', 'row_without_key',
            'row_elsewhere'
        )
    ),
    place integer NOT NULL CHECK (place > 0),
    bucket text NOT NULL,
    key text COLLATE "C",
    version_id text,
    row_id text,
    since timestamptz,
    state text NOT NULL CHECK (state IN ('confirmed', 'unknown')),
    detail text,
    PRIMARY KEY (audit_id, kind, place),
    CHECK (key IS NOT NULL OR row_id IS NOT NULL)
);
COMMENT ON TABLE s3_retention.audit_findings IS
'The first 1,000 of each kind that an audit has found, less what a second look refuted. Append-only.';
COMMENT ON COLUMN s3_retention.audit_findings.key IS
'The key of the object; of a row that names none that can be told, what it says.';
COMMENT ON COLUMN s3_retention.audit_findings.since IS
'When the object was last modified; of one that is overdue, when it was due.';
COMMENT ON COLUMN s3_retention.audit_findings.state IS
'confirmed: so at the second look, too; unknown: the store would not say.';

CREATE TRIGGER audits_append_only BEFORE UPDATE OR DELETE ON s3_retention.audits
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER audits_not_truncated BEFORE TRUNCATE ON s3_retention.audits
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER audit_findings_append_only BEFORE UPDATE OR DELETE ON s3_retention.audit_findings
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER audit_findings_not_truncated BEFORE TRUNCATE ON s3_retention.audit_findings
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.audits, s3_retention.audit_findings TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.audits, s3_retention.audit_findings TO s3_retention_writer;
