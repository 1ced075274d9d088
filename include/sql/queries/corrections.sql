-- name: list_rereadable
-- Of these waiting commands, those of a policy whose rows are on record.
SELECT
    quarantine.quarantine_id,
    quarantine.command_id,
    quarantine.operation_id,
    quarantine.interval_id,
    quarantine.generation,
    quarantine.policy_version,
    quarantine.tenant,
    quarantine.bucket,
    quarantine.key,
    quarantine.version_id,
    quarantine.etag,
    quarantine.size,
    quarantine.last_modified_at,
    quarantine.due_at,
    quarantine.group_key,
    quarantine.num_attempts
FROM s3_retention.quarantine
INNER JOIN s3_retention.command_rows
    ON
        quarantine.interval_id = command_rows.interval_id
        AND quarantine.generation = command_rows.generation
        AND quarantine.command_id = command_rows.command_id
WHERE
    quarantine.quarantine_id = any(%(quarantine_ids)s::bigint[])
    AND quarantine.policy = %(policy)s
    AND quarantine.resolved_at IS NULL
    AND quarantine.redrive_batch_id IS NULL
ORDER BY quarantine.quarantine_id;

-- name: supersede_row
-- A command of a corrected row takes the place of the one that waits; append_kept ends that in the same
-- transaction. Nothing is done where a redrive has taken it meanwhile, a plan holds the new command already,
-- or another one waits for the same object.
WITH waiting AS (
    SELECT quarantine.* FROM s3_retention.quarantine
    WHERE
        quarantine.quarantine_id = %(quarantine_id)s
        AND quarantine.resolved_at IS NULL
        AND quarantine.redrive_batch_id IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM s3_retention.ledger_entries AS entry
            WHERE
                entry.interval_id = quarantine.interval_id
                AND entry.generation = quarantine.generation
                AND entry.command_id = %(command_id)s
        )
        AND NOT EXISTS (
            SELECT 1 FROM s3_retention.command_rows
            WHERE
                command_rows.interval_id = quarantine.interval_id
                AND command_rows.generation = quarantine.generation
                AND command_rows.command_id = %(command_id)s
        )
        AND NOT EXISTS (
            SELECT 1 FROM s3_retention.quarantine AS other
            WHERE
                other.policy = quarantine.policy
                AND other.bucket = %(bucket)s
                AND other.key = %(key)s
                AND other.resolved_at IS NULL
                AND other.quarantine_id <> quarantine.quarantine_id
        )
    FOR UPDATE SKIP LOCKED
),

superseding AS (
    INSERT INTO s3_retention.quarantine (
        policy, policy_version, interval_id, generation, command_id, operation_id, tenant, bucket, key, etag,
        size, last_modified_at, due_at, failure_class, code, message, num_attempts, dag_id, run_id, map_index,
        first_failed_at, last_failed_at, num_redrives, supersedes, is_unplanned
    )
    SELECT
        waiting.policy,
        waiting.policy_version,
        waiting.interval_id,
        waiting.generation,
        %(command_id)s AS command_id,
        %(operation_id)s AS operation_id,
        %(tenant)s AS tenant,
        %(bucket)s AS bucket,
        %(key)s AS key,
        %(etag)s AS etag,
        %(size)s AS size,
        %(last_modified_at)s AS last_modified_at,
        %(due_at)s AS due_at,
        waiting.failure_class,
        waiting.code,
        waiting.message,
        0 AS num_attempts,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        -1 AS map_index,
        waiting.first_failed_at,
        waiting.last_failed_at,
        waiting.num_redrives,
        waiting.command_id AS supersedes,
        TRUE AS is_unplanned
    FROM waiting
    ON CONFLICT DO NOTHING
    RETURNING quarantine_id, failure_class
),

superseded AS (
    UPDATE s3_retention.quarantine
    SET
        resolution = 'kept',
        resolved_at = s3_retention.clock(),
        superseded_by = %(command_id)s
    FROM superseding
    WHERE quarantine.quarantine_id = %(quarantine_id)s
    RETURNING quarantine.quarantine_id
),

events AS (
    INSERT INTO s3_retention.quarantine_events (
        quarantine_id, event, dag_id, run_id, acted_by, detail, note
    )
    SELECT
        superseded.quarantine_id,
        'superseded' AS event,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        %(acted_by)s AS acted_by,
        encode(%(command_id)s, 'hex') AS detail,
        %(note)s AS note
    FROM superseded
    UNION ALL
    SELECT
        superseding.quarantine_id,
        'quarantined' AS event,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        %(acted_by)s AS acted_by,
        superseding.failure_class AS detail,
        %(note)s AS note
    FROM superseding
)

SELECT superseded.quarantine_id FROM superseded;

-- name: list_successors
-- The operations that have taken the place of these, and wait.
SELECT newer.operation_id
FROM s3_retention.quarantine AS older
INNER JOIN s3_retention.quarantine AS newer
    ON
        older.interval_id = newer.interval_id
        AND older.generation = newer.generation
        AND older.superseded_by = newer.command_id
WHERE
    older.operation_id = any(%(operation_ids)s::bytea[])
    AND newer.supersedes = older.command_id
    AND newer.resolved_at IS NULL;

-- name: find_completed_interval
-- The newest interval of a policy that is completed: what an audit puts into quarantine counts there.
SELECT intervals.interval_id FROM s3_retention.intervals
WHERE intervals.policy = %(policy)s AND intervals.state = 'completed'
ORDER BY intervals.interval_id DESC
LIMIT 1;

-- name: park_unnamed
-- An object without a row, as a command that no plan holds: a redrive decides it anew. Nothing is done where
-- the object waits already, or the same command is there.
WITH parked AS (
    INSERT INTO s3_retention.quarantine (
        policy, policy_version, interval_id, generation, command_id, operation_id, tenant, bucket, key, etag,
        size, last_modified_at, due_at, failure_class, code, message, num_attempts, dag_id, run_id, map_index,
        first_failed_at, last_failed_at, is_unplanned
    )
    SELECT
        %(policy)s AS policy,
        %(policy_version)s AS policy_version,
        %(interval_id)s AS interval_id,
        0 AS generation,
        %(command_id)s AS command_id,
        %(operation_id)s AS operation_id,
        %(tenant)s::text AS tenant,
        %(bucket)s AS bucket,
        %(key)s AS key,
        %(etag)s::text AS etag,
        %(size)s AS size,
        %(last_modified_at)s::timestamptz AS last_modified_at,
        %(due_at)s::timestamptz AS due_at,
        'unknown' AS failure_class,
        %(code)s AS code,
        'an audit found no row that names this object; a redrive looks again, and deletes it' AS message,
        0 AS num_attempts,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        -1 AS map_index,
        s3_retention.clock() AS first_failed_at,
        s3_retention.clock() AS last_failed_at,
        TRUE AS is_unplanned
    WHERE
        NOT EXISTS (
            SELECT 1 FROM s3_retention.quarantine AS waiting
            WHERE
                waiting.policy = %(policy)s
                AND waiting.bucket = %(bucket)s
                AND waiting.key = %(key)s
                AND waiting.resolved_at IS NULL
        )
        AND NOT EXISTS (
            SELECT 1 FROM s3_retention.ledger_entries AS entry
            WHERE
                entry.interval_id = %(interval_id)s
                AND entry.generation = 0
                AND entry.command_id = %(command_id)s
        )
    ON CONFLICT DO NOTHING
    RETURNING quarantine_id, failure_class
),

events AS (
    INSERT INTO s3_retention.quarantine_events (
        quarantine_id, event, dag_id, run_id, acted_by, detail, note
    )
    SELECT
        parked.quarantine_id,
        'quarantined' AS event,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        %(acted_by)s AS acted_by,
        parked.failure_class AS detail,
        %(note)s AS note
    FROM parked
)

SELECT parked.quarantine_id FROM parked;
