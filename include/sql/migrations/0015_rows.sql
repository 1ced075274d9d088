-- Commands for objects of which rows of a database are orphaned: these rows, and what became of them.
-- Alembic runs this file in one transaction.

-- Rows ----------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.command_rows (
    interval_id bigint NOT NULL REFERENCES s3_retention.intervals (interval_id),
    generation integer NOT NULL,
    command_id bytea NOT NULL CHECK (length(command_id) = 32),
    named text COLLATE "C" NOT NULL,
    row_ids text[] NOT NULL,
    detached_ats timestamptz[] NOT NULL CHECK (cardinality(detached_ats) = cardinality(row_ids)),
    PRIMARY KEY (interval_id, generation, command_id)
);
COMMENT ON TABLE s3_retention.command_rows IS
'Per command of a policy of rows, all orphaned rows of its object as they were seen. Append-only.';
COMMENT ON COLUMN s3_retention.command_rows.named IS
'What the key columns of the rows said.';

CREATE TRIGGER command_rows_append_only BEFORE UPDATE OR DELETE ON s3_retention.command_rows
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER command_rows_not_truncated BEFORE TRUNCATE ON s3_retention.command_rows
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TABLE s3_retention.row_entries (
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    command_id bytea NOT NULL CHECK (length(command_id) = 32),
    row_id text NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('deleted', 'already_absent', 'left')),
    batch_id bigint NOT NULL REFERENCES s3_retention.batches (batch_id),
    fence bigint NOT NULL,
    settled_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    PRIMARY KEY (interval_id, generation, command_id, row_id)
);
CREATE INDEX row_entries_batch ON s3_retention.row_entries (batch_id, outcome);
CREATE INDEX row_entries_left ON s3_retention.row_entries (settled_at) WHERE outcome = 'left';
COMMENT ON TABLE s3_retention.row_entries IS
'What became of each row of a command whose object is gone. Append-only.';
COMMENT ON COLUMN s3_retention.row_entries.outcome IS
'left: it was attached or changed while its object was being deleted: it names an object that is gone.';

CREATE TRIGGER row_entries_append_only BEFORE UPDATE OR DELETE ON s3_retention.row_entries
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER row_entries_not_truncated BEFORE TRUNCATE ON s3_retention.row_entries
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TABLE s3_retention.orphan_sightings (
    policy text NOT NULL,
    row_id text NOT NULL,
    named text COLLATE "C" NOT NULL,
    first_seen_at timestamptz NOT NULL,
    PRIMARY KEY (policy, row_id)
);
COMMENT ON TABLE s3_retention.orphan_sightings IS
'Since when each scan of a policy has seen a row orphaned, where its table does not tell.';

-- Quarantine ----------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.quarantine ADD COLUMN supersedes bytea CHECK (length(supersedes) = 32);
COMMENT ON COLUMN s3_retention.quarantine.supersedes IS
'The command in whose place a redrive has made this one, since its row was corrected.';
ALTER TABLE s3_retention.quarantine ADD COLUMN is_unplanned boolean NOT NULL DEFAULT FALSE;
COMMENT ON COLUMN s3_retention.quarantine.is_unplanned IS
'No plan holds it: it was made for a corrected row, or for an object without a row that an audit found.';

CREATE OR REPLACE VIEW s3_retention.balance AS
SELECT
    intervals.interval_id,
    intervals.interval_key,
    intervals.policy,
    intervals.state,
    planned.num_discovered + parked.num_unplanned AS num_discovered,
    ledger.num_deleted,
    ledger.num_already_absent,
    ledger.num_changed,
    ledger.num_kept,
    parked.num_quarantined,
    planned.num_discovered + parked.num_unplanned
    - ledger.num_settled - parked.num_quarantined AS num_pending
FROM s3_retention.intervals
CROSS JOIN
    LATERAL (
        SELECT coalesce(sum(chunks.num_commands), 0) AS num_discovered
        FROM s3_retention.chunks
        WHERE chunks.interval_id = intervals.interval_id
    ) AS planned
CROSS JOIN
    LATERAL (
        SELECT
            count(*) AS num_settled,
            count(*) FILTER (WHERE entry.outcome = 'deleted') AS num_deleted,
            count(*) FILTER (WHERE entry.outcome = 'already_absent') AS num_already_absent,
            count(*) FILTER (WHERE entry.outcome = 'changed') AS num_changed,
            count(*) FILTER (WHERE entry.outcome = 'kept') AS num_kept
        FROM s3_retention.ledger_entries AS entry
        WHERE entry.interval_id = intervals.interval_id
    ) AS ledger
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE quarantine.resolved_at IS NULL) AS num_quarantined,
        count(*) FILTER (WHERE quarantine.is_unplanned) AS num_unplanned
    FROM s3_retention.quarantine
    WHERE quarantine.interval_id = intervals.interval_id
) AS parked;
COMMENT ON VIEW s3_retention.balance IS
'Per interval: discovered = deleted + already_absent + changed + kept + quarantined + pending.';

-- Each command that no plan holds, too.
CREATE OR REPLACE VIEW s3_retention.command_outcomes AS
SELECT
    commands.interval_id,
    intervals.interval_key,
    commands.policy,
    commands.policy_version,
    commands.generation,
    commands.tenant,
    commands.bucket,
    commands.key,
    commands.version_id,
    commands.etag,
    commands.size,
    commands.last_modified_at,
    commands.due_at,
    commands.operation_id,
    commands.command_id,
    commands.batch_id,
    coalesce(
        entry.outcome,
        CASE
            WHEN parked.quarantine_id IS NOT NULL THEN 'quarantined'
            WHEN batches.stopped_class IS NOT NULL THEN 'stopped'
            ELSE 'pending'
        END
    ) AS outcome,
    CASE
        WHEN entry.outcome IS NULL THEN coalesce(parked.failure_class, batches.stopped_class)
        ELSE entry.reason
    END AS reason,
    coalesce(entry.num_attempts, parked.num_attempts, 0) AS num_attempts,
    coalesce(entry.request_id, parked.request_id) AS request_id,
    entry.marker_version_id,
    entry.settled_at
FROM s3_retention.commands
INNER JOIN s3_retention.intervals ON commands.interval_id = intervals.interval_id
INNER JOIN s3_retention.batches ON commands.batch_id = batches.batch_id
LEFT JOIN s3_retention.ledger_entries AS entry
    ON
        commands.interval_id = entry.interval_id
        AND commands.generation = entry.generation
        AND commands.command_id = entry.command_id
LEFT JOIN s3_retention.quarantine AS parked
    ON
        commands.interval_id = parked.interval_id
        AND commands.generation = parked.generation
        AND commands.command_id = parked.command_id
        AND parked.resolved_at IS NULL
UNION ALL
SELECT
    parked.interval_id,
    intervals.interval_key,
    parked.policy,
    parked.policy_version,
    parked.generation,
    parked.tenant,
    parked.bucket,
    parked.key,
    parked.version_id,
    parked.etag,
    parked.size,
    parked.last_modified_at,
    parked.due_at,
    parked.operation_id,
    parked.command_id,
    parked.redrive_batch_id AS batch_id,
    coalesce(entry.outcome, 'quarantined') AS outcome,
    CASE WHEN entry.outcome IS NULL THEN parked.failure_class ELSE entry.reason END AS reason,
    coalesce(entry.num_attempts, parked.num_attempts) AS num_attempts,
    coalesce(entry.request_id, parked.request_id) AS request_id,
    entry.marker_version_id,
    entry.settled_at
FROM s3_retention.quarantine AS parked
INNER JOIN s3_retention.intervals ON parked.interval_id = intervals.interval_id
LEFT JOIN s3_retention.ledger_entries AS entry
    ON
        parked.interval_id = entry.interval_id
        AND parked.generation = entry.generation
        AND parked.command_id = entry.command_id
WHERE parked.is_unplanned;

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.command_rows, s3_retention.row_entries, s3_retention.orphan_sightings
TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.command_rows, s3_retention.row_entries, s3_retention.orphan_sightings
TO s3_retention_writer;
GRANT DELETE ON s3_retention.orphan_sightings TO s3_retention_writer;
