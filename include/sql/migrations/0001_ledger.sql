-- The ledger of S3 retention: intervals, plans as manifests, outcomes as rows, quarantine.
-- Alembic runs this file in one transaction; the schema s3_retention is there already.

-- Roles ---------------------------------------------------------------------------------------------------
-- Group roles without login: the operator makes login roles IN ROLE one of them (docs/deploy.md).
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 's3_retention_writer') THEN
        CREATE ROLE s3_retention_writer NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;

DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 's3_retention_reader') THEN
        CREATE ROLE s3_retention_reader NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;

-- Functions -----------------------------------------------------------------------------------------------
CREATE FUNCTION s3_retention.clock() RETURNS timestamptz
LANGUAGE sql VOLATILE
RETURN clock_timestamp();
COMMENT ON FUNCTION s3_retention.clock IS
'The only clock of the package. Every lease, cutoff and stamp comes from here, never from a worker.';

CREATE FUNCTION s3_retention.operation_id(bucket text, key text, policy_version text) RETURNS bytea
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN sha256(convert_to(bucket || E'\n' || key || E'\n' || policy_version, 'UTF8'));
COMMENT ON FUNCTION s3_retention.operation_id IS
'SHA-256 over bucket, key and policy version joined by newlines; the same as core.command.operation_id.';

CREATE FUNCTION s3_retention.command_id(
    operation_id bytea, version_id text, etag text, last_modified_at timestamptz, size bigint
) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN sha256(convert_to(
    encode(operation_id, 'hex') || E'\n' || CASE
        WHEN version_id IS NOT NULL THEN 'version:' || version_id
        ELSE
            'etag:' || coalesce(etag, '') || E'\n'
            || (extract(EPOCH FROM last_modified_at) * 1000000)::bigint::text || E'\n' || size::text
    END,
    'UTF8'
));
COMMENT ON FUNCTION s3_retention.command_id IS
'An operation and the incarnation it was planned for; the same as core.command.command_id.';

CREATE FUNCTION s3_retention.refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only: % is refused', tg_table_name, tg_op
    USING ERRCODE = 'restrict_violation';
END $$;

-- Policies ------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.policy_versions (
    policy text NOT NULL,
    policy_version text NOT NULL,
    rules_hash text NOT NULL CHECK (length(rules_hash) = 64),
    first_used_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    PRIMARY KEY (policy, policy_version)
);
COMMENT ON TABLE s3_retention.policy_versions IS
'The rules behind each version, as a hash stored at first use: rules never change under one version.';

CREATE TRIGGER policy_versions_append_only BEFORE UPDATE OR DELETE ON s3_retention.policy_versions
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER policy_versions_not_truncated BEFORE TRUNCATE ON s3_retention.policy_versions
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Time ----------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.watermarks (
    policy text PRIMARY KEY,
    position timestamptz NOT NULL,
    completed_through timestamptz NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    CHECK (completed_through <= position)
);
COMMENT ON COLUMN s3_retention.watermarks.position IS
'One complete scan has decided everything that was due before this time.';
COMMENT ON COLUMN s3_retention.watermarks.completed_through IS
'Every command of the intervals before this time is settled or in quarantine.';

CREATE FUNCTION s3_retention.watermark_forward_only() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF new.position < old.position OR new.completed_through < old.completed_through THEN
        RAISE EXCEPTION 'the watermark of policy % only moves forward', old.policy
        USING ERRCODE = 'check_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER watermarks_forward_only BEFORE UPDATE ON s3_retention.watermarks
FOR EACH ROW EXECUTE FUNCTION s3_retention.watermark_forward_only();

CREATE TABLE s3_retention.intervals (
    interval_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy text NOT NULL,
    policy_version text NOT NULL,
    interval_key text NOT NULL UNIQUE,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    follows timestamptz,
    state text NOT NULL DEFAULT 'claimed' CHECK (state IN ('claimed', 'planned', 'completed')),
    claimed_by text,
    claimed_until timestamptz,
    fence bigint NOT NULL DEFAULT 1,
    num_scanned bigint CHECK (num_scanned >= 0),
    num_discovered bigint CHECK (num_discovered >= 0),
    num_bytes numeric CHECK (num_bytes >= 0),
    num_stragglers bigint CHECK (num_stragglers >= 0),
    num_kept_by_reason jsonb,
    first_claimed_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    planned_at timestamptz,
    completed_at timestamptz,
    CHECK (starts_at < ends_at),
    CHECK (follows = starts_at),
    CHECK ((state = 'claimed') = (planned_at IS NULL)),
    CHECK ((state = 'completed') = (completed_at IS NOT NULL)),
    CHECK (state <> 'completed' OR claimed_until IS NULL),
    FOREIGN KEY (policy, policy_version) REFERENCES s3_retention.policy_versions (policy, policy_version),
    -- The chain: each interval starts where another one ends, and no two start or end together, so that
    -- neither a hole nor an overlap can be written.
    UNIQUE (policy, starts_at),
    UNIQUE (policy, ends_at),
    FOREIGN KEY (policy, follows) REFERENCES s3_retention.intervals (policy, ends_at)
);
CREATE UNIQUE INDEX intervals_one_root ON s3_retention.intervals (policy) WHERE follows IS NULL;
CREATE UNIQUE INDEX intervals_one_unfinished ON s3_retention.intervals (policy) WHERE state <> 'completed';
CREATE FUNCTION s3_retention.refuse_other_version() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'interval % is planned: its policy version is part of the id of each of its commands',
        old.interval_id
    USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER intervals_keep_their_version BEFORE UPDATE OF policy_version ON s3_retention.intervals
FOR EACH ROW WHEN (old.state <> 'claimed' AND new.policy_version <> old.policy_version)
EXECUTE FUNCTION s3_retention.refuse_other_version();

COMMENT ON COLUMN s3_retention.intervals.follows IS
'The end of the interval before, which is the start of this one; NULL for the first of a policy.';
COMMENT ON COLUMN s3_retention.intervals.num_stragglers IS
'Planned objects that were due before the interval starts: still present after their deadline.';

-- Plans are manifests -------------------------------------------------------------------------------------
CREATE TABLE s3_retention.batches (
    batch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('cleanup', 'redrive')),
    policy text NOT NULL,
    interval_id bigint REFERENCES s3_retention.intervals (interval_id),
    generation integer,
    batch_number integer NOT NULL CHECK (batch_number >= 1),
    num_commands integer NOT NULL CHECK (num_commands >= 1),
    num_bytes numeric NOT NULL CHECK (num_bytes >= 0),
    dag_id text,
    run_id text,
    map_index integer,
    claimed_by text,
    claimed_until timestamptz,
    fence bigint NOT NULL DEFAULT 0,
    stopped_class text,
    stopped_message text,
    closed_at timestamptz,
    UNIQUE (interval_id, generation, batch_number),
    CHECK ((kind = 'cleanup') = (interval_id IS NOT NULL)),
    CHECK ((interval_id IS NULL) = (generation IS NULL)),
    CHECK (closed_at IS NULL OR claimed_until IS NULL),
    CHECK (closed_at IS NULL OR stopped_class IS NULL OR kind = 'redrive'),
    CHECK ((stopped_class IS NULL) = (stopped_message IS NULL)),
    CHECK (num_nulls(dag_id, run_id, map_index) IN (0, 3))
);
CREATE INDEX batches_open ON s3_retention.batches (interval_id) WHERE closed_at IS NULL;
CREATE INDEX batches_run ON s3_retention.batches (run_id, dag_id);
COMMENT ON COLUMN s3_retention.batches.fence IS
'Grows with every claim; a settle that names an older fence writes nothing.';
COMMENT ON COLUMN s3_retention.batches.run_id IS
'The run to which the batch was dealt last, with its DAG and its place in the mapped task.';

CREATE TABLE s3_retention.chunks (
    chunk_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    batch_id bigint NOT NULL REFERENCES s3_retention.batches (batch_id),
    interval_id bigint NOT NULL REFERENCES s3_retention.intervals (interval_id),
    generation integer NOT NULL,
    chunk_number integer NOT NULL,
    tenant text,
    bucket text NOT NULL,
    keys text[] COLLATE "C" NOT NULL,
    version_ids text[] NOT NULL,
    etags text[] NOT NULL,
    sizes bigint[] NOT NULL,
    last_modified_ats timestamptz[] NOT NULL,
    due_ats timestamptz[] NOT NULL,
    group_keys text[] NOT NULL,
    num_commands integer NOT NULL CHECK (num_commands BETWEEN 1 AND 1000),
    closed_at timestamptz,
    UNIQUE (interval_id, generation, chunk_number),
    CHECK (cardinality(keys) = num_commands),
    CHECK (cardinality(version_ids) = num_commands),
    CHECK (cardinality(etags) = num_commands),
    CHECK (cardinality(sizes) = num_commands),
    CHECK (cardinality(last_modified_ats) = num_commands),
    CHECK (cardinality(due_ats) = num_commands),
    CHECK (cardinality(group_keys) = num_commands)
);
CREATE INDEX chunks_batch ON s3_retention.chunks (batch_id);
COMMENT ON TABLE s3_retention.chunks IS
'Up to 1,000 commands of one tenant, one request to the store, as arrays; the view commands shows each.';

CREATE TABLE s3_retention.keepers (
    interval_id bigint NOT NULL REFERENCES s3_retention.intervals (interval_id),
    generation integer NOT NULL,
    group_key text COLLATE "C" NOT NULL,
    bucket text NOT NULL,
    key text COLLATE "C" NOT NULL
);
-- By hash: a group's values and a key, 1,024 bytes each and more, do not fit into an index row.
CREATE INDEX keepers_group ON s3_retention.keepers (interval_id, generation, hashtextextended(group_key, 0));
COMMENT ON TABLE s3_retention.keepers IS
'Per group with a planned delete, the objects whose presence allows it; looked at again before each delete.';

-- Outcomes are rows ---------------------------------------------------------------------------------------
-- No foreign keys: the settle joins the batch row that it locks, and a check per row would double its cost.
CREATE TABLE s3_retention.ledger_entries (
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    command_id bytea NOT NULL CHECK (length(command_id) = 32),
    operation_id bytea NOT NULL CHECK (length(operation_id) = 32),
    batch_id bigint NOT NULL,
    fence bigint NOT NULL,
    tenant text,
    bucket text NOT NULL,
    key text COLLATE "C" NOT NULL,
    version_id text,
    etag text,
    size bigint NOT NULL,
    last_modified_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('deleted', 'already_absent', 'changed', 'kept')),
    reason text,
    num_attempts integer NOT NULL CHECK (num_attempts >= 0),
    request_id text,
    settled_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    PRIMARY KEY (interval_id, generation, command_id),
    CHECK ((outcome = 'kept') = (reason IS NOT NULL))
) PARTITION BY RANGE (interval_id);
COMMENT ON TABLE s3_retention.ledger_entries IS
'One row per settled command, append-only. The claims table tells who held the batch at that fence.';
CREATE INDEX ledger_entries_batch ON s3_retention.ledger_entries (batch_id, outcome);

CREATE TRIGGER ledger_entries_append_only BEFORE UPDATE OR DELETE ON s3_retention.ledger_entries
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER ledger_entries_not_truncated BEFORE TRUNCATE ON s3_retention.ledger_entries
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE FUNCTION s3_retention.ensure_ledger_partition(for_interval_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    width CONSTANT bigint := 1000;
    lower_bound CONSTANT bigint := for_interval_id / width * width;
    partition_name CONSTANT text := 'ledger_entries_' || lower_bound;
BEGIN
    IF to_regclass('s3_retention.' || partition_name) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('s3_retention.' || partition_name, 0));
    IF to_regclass('s3_retention.' || partition_name) IS NOT NULL THEN
        RETURN;
    END IF;
    -- Attached, not created in place: that needs no lock that stops the settles of running batches.
    EXECUTE format(
        'CREATE TABLE s3_retention.%I (LIKE s3_retention.ledger_entries INCLUDING ALL)', partition_name
    );
    EXECUTE format(
        'ALTER TABLE s3_retention.ledger_entries ATTACH PARTITION s3_retention.%I '
        'FOR VALUES FROM (%s) TO (%s)',
        partition_name, lower_bound, lower_bound + width
    );
    -- Row triggers come with the attachment, statement triggers do not.
    EXECUTE format(
        'CREATE TRIGGER not_truncated BEFORE TRUNCATE ON s3_retention.%I '
        'FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change()',
        partition_name
    );
END $$;
COMMENT ON FUNCTION s3_retention.ensure_ledger_partition IS
'Makes the partition of 1,000 intervals to which this one belongs; runs as the owner of the schema.';
REVOKE ALL ON FUNCTION s3_retention.ensure_ledger_partition FROM public;

CREATE TABLE s3_retention.failures (
    batch_id bigint NOT NULL REFERENCES s3_retention.batches (batch_id),
    command_id bytea NOT NULL CHECK (length(command_id) = 32),
    failure_class text NOT NULL,
    code text,
    message text,
    request_id text,
    num_attempts integer NOT NULL CHECK (num_attempts >= 1),
    first_failed_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    last_failed_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    PRIMARY KEY (batch_id, command_id)
);
COMMENT ON TABLE s3_retention.failures IS
'The last cause of each unfinished command of a batch, until it ends or goes to quarantine.';

-- Claims --------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.claims (
    claim_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    interval_id bigint REFERENCES s3_retention.intervals (interval_id),
    batch_id bigint REFERENCES s3_retention.batches (batch_id),
    fence bigint NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    task_id text NOT NULL,
    map_index integer NOT NULL,
    try_number integer NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    UNIQUE (interval_id, fence),
    UNIQUE (batch_id, fence),
    CHECK (num_nonnulls(interval_id, batch_id) = 1)
);
CREATE INDEX claims_run ON s3_retention.claims (run_id, dag_id);
COMMENT ON TABLE s3_retention.claims IS
'Who held an interval or a batch under which fence. Append-only.';

CREATE TRIGGER claims_append_only BEFORE UPDATE OR DELETE ON s3_retention.claims
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER claims_not_truncated BEFORE TRUNCATE ON s3_retention.claims
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Quarantine ----------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.quarantine (
    quarantine_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy text NOT NULL,
    policy_version text NOT NULL,
    interval_id bigint NOT NULL REFERENCES s3_retention.intervals (interval_id),
    generation integer NOT NULL,
    command_id bytea NOT NULL CHECK (length(command_id) = 32),
    operation_id bytea NOT NULL CHECK (length(operation_id) = 32),
    tenant text,
    bucket text NOT NULL,
    key text COLLATE "C" NOT NULL,
    version_id text,
    etag text,
    size bigint NOT NULL,
    last_modified_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    group_key text,
    failure_class text NOT NULL,
    code text,
    message text,
    request_id text,
    num_attempts integer NOT NULL CHECK (num_attempts >= 0),
    dag_id text NOT NULL,
    run_id text NOT NULL,
    map_index integer NOT NULL,
    first_failed_at timestamptz NOT NULL,
    last_failed_at timestamptz NOT NULL,
    not_before timestamptz,
    redrive_batch_id bigint REFERENCES s3_retention.batches (batch_id),
    num_redrives integer NOT NULL DEFAULT 0,
    resolution text CHECK (resolution IN ('deleted', 'already_absent', 'changed', 'kept')),
    resolved_at timestamptz,
    UNIQUE (interval_id, generation, command_id),
    CHECK ((resolution IS NULL) = (resolved_at IS NULL))
);
CREATE INDEX quarantine_open ON s3_retention.quarantine (policy, key) WHERE resolved_at IS NULL;
CREATE INDEX quarantine_redrive ON s3_retention.quarantine (redrive_batch_id);
COMMENT ON TABLE s3_retention.quarantine IS
'Commands that could not be ended, each with its cause and all that a redrive needs. Open until resolved.';
COMMENT ON COLUMN s3_retention.quarantine.redrive_batch_id IS
'The batch that holds the row now, or that resolved it; NULL while it waits.';

CREATE TABLE s3_retention.quarantine_events (
    event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    quarantine_id bigint NOT NULL REFERENCES s3_retention.quarantine (quarantine_id),
    event text NOT NULL CHECK (event IN ('quarantined', 'redriven', 'returned', 'resolved')),
    dag_id text NOT NULL,
    run_id text NOT NULL,
    acted_by text,
    detail text,
    happened_at timestamptz NOT NULL DEFAULT s3_retention.clock()
);
CREATE INDEX quarantine_events_row ON s3_retention.quarantine_events (quarantine_id);
COMMENT ON TABLE s3_retention.quarantine_events IS
'Every failure and return of a quarantine row. Append-only.';

CREATE TRIGGER quarantine_events_append_only BEFORE UPDATE OR DELETE ON s3_retention.quarantine_events
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER quarantine_events_not_truncated BEFORE TRUNCATE ON s3_retention.quarantine_events
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Reports -------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.run_reports (
    report_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    policy text,
    interval_id bigint REFERENCES s3_retention.intervals (interval_id),
    counts jsonb NOT NULL,
    is_balanced boolean NOT NULL,
    reported_at timestamptz NOT NULL DEFAULT s3_retention.clock()
);
CREATE INDEX run_reports_run ON s3_retention.run_reports (run_id, dag_id);
COMMENT ON TABLE s3_retention.run_reports IS
'What each run said at its end; a cleared run reports again. Append-only.';

CREATE TRIGGER run_reports_append_only BEFORE UPDATE OR DELETE ON s3_retention.run_reports
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER run_reports_not_truncated BEFORE TRUNCATE ON s3_retention.run_reports
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Views ---------------------------------------------------------------------------------------------------
CREATE VIEW s3_retention.commands AS
SELECT
    chunks.chunk_id,
    chunks.batch_id,
    chunks.interval_id,
    chunks.generation,
    intervals.policy,
    intervals.policy_version,
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
CROSS JOIN
    LATERAL unnest(
        chunks.keys, chunks.version_ids, chunks.etags, chunks.sizes,
        chunks.last_modified_ats, chunks.due_ats, chunks.group_keys
    ) AS one (key, version_id, etag, size, last_modified_at, due_at, group_key)
CROSS JOIN LATERAL ( -- noqa: ST05
    SELECT s3_retention.operation_id(chunks.bucket, one.key, intervals.policy_version) AS operation_id
) AS operation;
COMMENT ON VIEW s3_retention.commands IS 'The planned commands one by one, out of their chunks.';

-- OFFSET 0 keeps each look-up what it is, one descent of the unique index per command: as a join, the planner
-- may compare every command with every entry, since a partition is filled before it was ever analysed.
CREATE VIEW s3_retention.unfinished_commands AS
SELECT
    commands.chunk_id,
    commands.batch_id,
    commands.interval_id,
    commands.generation,
    commands.policy,
    commands.policy_version,
    commands.tenant,
    commands.bucket,
    commands.key,
    commands.version_id,
    commands.etag,
    commands.size,
    commands.last_modified_at,
    commands.due_at,
    commands.group_key,
    commands.operation_id,
    commands.command_id
FROM s3_retention.commands
WHERE
    NOT EXISTS (
        SELECT 1 FROM s3_retention.ledger_entries AS entry
        WHERE
            entry.interval_id = commands.interval_id
            AND entry.generation = commands.generation
            AND entry.command_id = commands.command_id
        OFFSET 0 -- noqa: AM09
    )
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.quarantine AS parked
        WHERE
            parked.interval_id = commands.interval_id
            AND parked.generation = commands.generation
            AND parked.command_id = commands.command_id
        OFFSET 0 -- noqa: AM09
    );
COMMENT ON VIEW s3_retention.unfinished_commands IS
'Planned, and neither in the ledger nor in quarantine.';

CREATE VIEW s3_retention.balance AS
SELECT
    intervals.interval_id,
    intervals.interval_key,
    intervals.policy,
    intervals.state,
    planned.num_discovered,
    ledger.num_deleted,
    ledger.num_already_absent,
    ledger.num_changed,
    ledger.num_kept,
    parked.num_quarantined,
    planned.num_discovered - ledger.num_settled - parked.num_quarantined AS num_pending
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
    SELECT count(*) AS num_quarantined
    FROM s3_retention.quarantine
    WHERE quarantine.interval_id = intervals.interval_id AND quarantine.resolved_at IS NULL
) AS parked;
COMMENT ON VIEW s3_retention.balance IS
'Per interval: discovered = deleted + already_absent + changed + kept + quarantined + pending.';

-- Grants --------------------------------------------------------------------------------------------------
GRANT USAGE ON SCHEMA s3_retention TO s3_retention_writer, s3_retention_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA s3_retention TO s3_retention_writer, s3_retention_reader;

GRANT INSERT ON
s3_retention.policy_versions, s3_retention.watermarks, s3_retention.intervals, s3_retention.batches,
s3_retention.chunks, s3_retention.keepers, s3_retention.ledger_entries, s3_retention.failures,
s3_retention.claims, s3_retention.quarantine, s3_retention.quarantine_events, s3_retention.run_reports
TO s3_retention_writer;

GRANT UPDATE (position, completed_through, updated_at) ON s3_retention.watermarks TO s3_retention_writer;
GRANT UPDATE (
    policy_version, state, claimed_by, claimed_until, fence, num_scanned, num_discovered, num_bytes,
    num_stragglers, num_kept_by_reason, planned_at, completed_at
) ON s3_retention.intervals TO s3_retention_writer;
GRANT UPDATE (
    dag_id, run_id, map_index, claimed_by, claimed_until, fence, stopped_class, stopped_message, closed_at
) ON s3_retention.batches TO s3_retention_writer;
GRANT UPDATE (closed_at) ON s3_retention.chunks TO s3_retention_writer;
GRANT UPDATE (failure_class, code, message, request_id, num_attempts, last_failed_at)
ON s3_retention.failures TO s3_retention_writer;
GRANT DELETE ON s3_retention.failures TO s3_retention_writer;
GRANT UPDATE (
    failure_class, code, message, request_id, num_attempts, dag_id, run_id, map_index, last_failed_at,
    not_before, redrive_batch_id, num_redrives, resolution, resolved_at
) ON s3_retention.quarantine TO s3_retention_writer;

GRANT EXECUTE ON FUNCTION s3_retention.ensure_ledger_partition TO s3_retention_writer;
