-- Replays of one interval, late runs, and the figures by which one sees that a policy falls behind.
-- Alembic runs this file in one transaction.

-- Claims --------------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.watermarks ADD COLUMN num_claim_conflicts bigint NOT NULL DEFAULT 0
CHECK (num_claim_conflicts >= 0);
COMMENT ON COLUMN s3_retention.watermarks.num_claim_conflicts IS
'How often a run wanted the interval of this policy while another live run held it.';

ALTER TABLE s3_retention.claims ADD COLUMN generation integer NOT NULL DEFAULT 0 CHECK (generation >= 0);
COMMENT ON COLUMN s3_retention.claims.generation IS
'Of a claim on the replay of an interval, its generation; else 0.';
ALTER TABLE s3_retention.claims DROP CONSTRAINT claims_interval_id_fence_key;
ALTER TABLE s3_retention.claims ADD UNIQUE (interval_id, generation, fence);

-- Intervals -----------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.intervals ADD COLUMN next_due_at timestamptz CHECK (next_due_at >= ends_at);
COMMENT ON COLUMN s3_retention.intervals.next_due_at IS
'The first due time at or after the end that the scan saw: then an object waits for a later interval.';

CREATE INDEX intervals_policy ON s3_retention.intervals (policy, interval_id);

-- Reports -------------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.run_reports ADD COLUMN unclaimed_since timestamptz;
ALTER TABLE s3_retention.run_reports ADD COLUMN num_drained bigint CHECK (num_drained >= 0);
ALTER TABLE s3_retention.run_reports ADD COLUMN num_remaining bigint CHECK (num_remaining >= 0);
COMMENT ON COLUMN s3_retention.run_reports.unclaimed_since IS
'Of a cleanup: the due time from which on, at the report, no interval had claimed what was due.';
COMMENT ON COLUMN s3_retention.run_reports.num_drained IS
'Of a cleanup: the commands of the run that ended, in the ledger or in quarantine.';
COMMENT ON COLUMN s3_retention.run_reports.num_remaining IS
'Of a cleanup: the planned commands of the interval that wait for the next run.';
CREATE INDEX run_reports_policy ON s3_retention.run_reports (policy, report_id) WHERE interval_id IS NOT NULL;

-- Replays -------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.replays (
    interval_id bigint NOT NULL REFERENCES s3_retention.intervals (interval_id),
    generation integer NOT NULL CHECK (generation >= 1),
    policy text NOT NULL,
    policy_version text NOT NULL,
    state text NOT NULL DEFAULT 'claimed' CHECK (state IN ('claimed', 'planned', 'completed')),
    claimed_by text,
    claimed_until timestamptz,
    fence bigint NOT NULL DEFAULT 1,
    acted_by text,
    num_scanned bigint CHECK (num_scanned >= 0),
    num_discovered bigint CHECK (num_discovered >= 0),
    num_bytes numeric CHECK (num_bytes >= 0),
    num_kept_by_reason jsonb,
    first_claimed_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    planned_at timestamptz,
    completed_at timestamptz,
    PRIMARY KEY (interval_id, generation),
    CHECK ((state = 'claimed') = (planned_at IS NULL)),
    CHECK ((state = 'completed') = (completed_at IS NOT NULL)),
    CHECK (state <> 'completed' OR claimed_until IS NULL),
    FOREIGN KEY (policy, policy_version) REFERENCES s3_retention.policy_versions (policy, policy_version)
);
CREATE UNIQUE INDEX replays_one_unfinished ON s3_retention.replays (interval_id) WHERE state <> 'completed';
COMMENT ON TABLE s3_retention.replays IS
'Second and later plans of a completed interval, bounded on both sides. The first plan is generation 0.';
COMMENT ON COLUMN s3_retention.replays.acted_by IS
'Who asked for it, as Airflow knows; NULL where it does not.';

CREATE TRIGGER replays_keep_their_version BEFORE UPDATE OF policy_version ON s3_retention.replays
FOR EACH ROW WHEN (old.state <> 'claimed' AND new.policy_version <> old.policy_version)
EXECUTE FUNCTION s3_retention.refuse_other_version();

-- A replay is made under today's version of the policy, which may not be that of the interval.
CREATE OR REPLACE VIEW s3_retention.commands AS
SELECT
    chunks.chunk_id,
    chunks.batch_id,
    chunks.interval_id,
    chunks.generation,
    intervals.policy,
    coalesce(replays.policy_version, intervals.policy_version) AS policy_version,
    chunks.tenant,
    chunks.bucket,
    one.key,
    one.version_id,
    one.etag,
    one.size,
    one.last_modified_at,
    one.due_at,
    one.group_key,
    operation.operation_id,
    s3_retention.command_id(
        operation.operation_id, one.version_id, one.etag, one.last_modified_at, one.size
    ) AS command_id
FROM s3_retention.chunks
INNER JOIN s3_retention.intervals ON chunks.interval_id = intervals.interval_id
LEFT JOIN s3_retention.replays
    ON chunks.interval_id = replays.interval_id AND chunks.generation = replays.generation
CROSS JOIN
    LATERAL unnest(
        chunks.keys, chunks.version_ids, chunks.etags, chunks.sizes,
        chunks.last_modified_ats, chunks.due_ats, chunks.group_keys
    ) AS one (key, version_id, etag, size, last_modified_at, due_at, group_key)
CROSS JOIN LATERAL ( -- noqa: ST05
    SELECT
        s3_retention.operation_id(
            chunks.bucket, one.key, coalesce(replays.policy_version, intervals.policy_version)
        ) AS operation_id
) AS operation;

-- Late runs -----------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.late_runs (
    policy text NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    due_at timestamptz NOT NULL,
    deadline_at timestamptz NOT NULL,
    state text NOT NULL,
    flagged_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    PRIMARY KEY (dag_id, run_id)
);
CREATE INDEX findings_subject ON s3_retention.findings (kind, subject);
CREATE INDEX late_runs_time ON s3_retention.late_runs (policy, due_at);
COMMENT ON TABLE s3_retention.late_runs IS
'Runs that had not succeeded at the deadline of their policy. One row each, however often Airflow says so.';
COMMENT ON COLUMN s3_retention.late_runs.due_at IS 'The tick that the run is for.';
COMMENT ON COLUMN s3_retention.late_runs.state IS 'What Airflow said of the run when its deadline passed.';

CREATE TRIGGER late_runs_append_only BEFORE UPDATE OR DELETE ON s3_retention.late_runs
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER late_runs_not_truncated BEFORE TRUNCATE ON s3_retention.late_runs
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.replays, s3_retention.late_runs TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.replays, s3_retention.late_runs TO s3_retention_writer;
GRANT UPDATE (
    policy_version, state, claimed_by, claimed_until, fence, num_scanned, num_discovered, num_bytes,
    num_kept_by_reason, planned_at, completed_at
) ON s3_retention.replays TO s3_retention_writer;
GRANT UPDATE (num_claim_conflicts) ON s3_retention.watermarks TO s3_retention_writer;
GRANT UPDATE (next_due_at) ON s3_retention.intervals TO s3_retention_writer;
