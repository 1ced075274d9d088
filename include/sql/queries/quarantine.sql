-- name: quarantine_unfinished
-- Every unfinished command of a batch goes to quarantine with its last cause; without one, the worker is
-- what was lost. A lock without an end is looked at again after a day. Runs under the batch lock of
-- take_from_worker.
WITH parked AS (
    INSERT INTO s3_retention.quarantine (
        policy, policy_version, interval_id, generation, command_id, operation_id, tenant, bucket, key,
        version_id, etag, size, last_modified_at, due_at, group_key, failure_class, code, message, request_id,
        num_attempts, dag_id, run_id, map_index, first_failed_at, last_failed_at, not_before
    )
    SELECT
        todo.policy,
        todo.policy_version,
        todo.interval_id,
        todo.generation,
        todo.command_id,
        todo.operation_id,
        todo.tenant,
        todo.bucket,
        todo.key,
        todo.version_id,
        todo.etag,
        todo.size,
        todo.last_modified_at,
        todo.due_at,
        todo.group_key,
        coalesce(failures.failure_class, 'worker_lost') AS failure_class,
        failures.code,
        coalesce(
            failures.message,
            'no word about this object: the task was killed, out of memory, or failed before it; see its log'
        ) AS message,
        failures.request_id,
        coalesce(failures.num_attempts, 0) AS num_attempts,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        batches.map_index,
        coalesce(failures.first_failed_at, s3_retention.clock()) AS first_failed_at,
        coalesce(failures.last_failed_at, s3_retention.clock()) AS last_failed_at,
        CASE
            WHEN failures.failure_class = 'locked'
                THEN coalesce(failures.not_before, s3_retention.clock() + interval '1 day')
        END AS not_before
    FROM s3_retention.batches
    INNER JOIN s3_retention.unfinished_commands AS todo ON batches.batch_id = todo.batch_id
    LEFT JOIN s3_retention.failures
        ON todo.batch_id = failures.batch_id AND todo.command_id = failures.command_id
    WHERE batches.batch_id = %(batch_id)s
    ORDER BY todo.command_id
    RETURNING quarantine_id, failure_class
),

events AS (
    INSERT INTO s3_retention.quarantine_events (quarantine_id, event, dag_id, run_id, detail)
    SELECT
        parked.quarantine_id,
        'quarantined' AS event,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        parked.failure_class
    FROM parked
)

SELECT
    parked.failure_class,
    count(*) AS num_objects
FROM parked
GROUP BY parked.failure_class
ORDER BY parked.failure_class;

-- name: select_for_redrive
-- Open rows that match, the oldest of all policies; rows that another redrive holds or is just taking are
-- passed over, and of one command that waits twice the younger one: a request must not name it twice. So is
-- what was redriven as often as its policy allows, unless its operation is named. They are given by policy,
-- since a batch has one.
WITH oldest AS (
    SELECT
        quarantine.quarantine_id,
        quarantine.policy,
        quarantine.size
    FROM s3_retention.quarantine
    LEFT JOIN
        unnest(%(policies)s::text[], %(max_redrives)s::integer[]) AS limits (policy, max_redrives)
        ON quarantine.policy = limits.policy
    WHERE
        quarantine.resolved_at IS NULL
        AND quarantine.redrive_batch_id IS NULL
        AND (quarantine.not_before IS NULL OR quarantine.not_before <= s3_retention.clock())
        AND (%(policy)s::text IS NULL OR quarantine.policy = %(policy)s)
        AND (%(failure_classes)s::text[] IS NULL OR quarantine.failure_class = any(%(failure_classes)s))
        AND (%(operation_ids)s::bytea[] IS NULL OR quarantine.operation_id = any(%(operation_ids)s))
        AND (%(tenant)s::text IS NULL OR quarantine.tenant = %(tenant)s)
        AND (%(code)s::text IS NULL OR quarantine.code = %(code)s)
        AND (
            %(older_than)s::interval IS NULL
            OR s3_retention.clock() - quarantine.last_failed_at >= %(older_than)s::interval
        )
        AND (
            %(interval_key)s::text IS NULL
            OR quarantine.interval_id = (
                SELECT intervals.interval_id FROM s3_retention.intervals
                WHERE intervals.interval_key = %(interval_key)s
            )
        )
        AND (
            %(operation_ids)s::bytea[] IS NOT NULL
            OR limits.max_redrives IS NULL
            OR quarantine.num_redrives < limits.max_redrives
        )
        AND NOT EXISTS (
            SELECT 1 FROM s3_retention.quarantine AS older
            WHERE
                older.resolved_at IS NULL
                AND older.policy = quarantine.policy
                AND older.key = quarantine.key
                AND older.command_id = quarantine.command_id
                AND older.quarantine_id < quarantine.quarantine_id
        )
    ORDER BY quarantine.quarantine_id
    LIMIT %(max_commands)s
    FOR UPDATE OF quarantine SKIP LOCKED
)

SELECT
    oldest.quarantine_id,
    oldest.policy,
    oldest.size
FROM oldest
ORDER BY oldest.policy, oldest.quarantine_id;

-- name: sum_by_cause
-- What rows wait for, and since when the oldest of each failed last.
SELECT
    quarantine.policy,
    quarantine.failure_class,
    coalesce(quarantine.code, 'no code') AS code,
    count(*) AS num_commands,
    min(quarantine.last_failed_at) AS oldest_at
FROM s3_retention.quarantine
WHERE quarantine.quarantine_id = any(%(quarantine_ids)s::bigint[])
GROUP BY quarantine.policy, quarantine.failure_class, coalesce(quarantine.code, 'no code')
ORDER BY quarantine.policy, quarantine.failure_class, coalesce(quarantine.code, 'no code');

-- name: list_rows
-- Some rows, for a person to look at.
SELECT
    quarantine.bucket,
    quarantine.key,
    quarantine.failure_class,
    encode(quarantine.operation_id, 'hex') AS operation_id
FROM s3_retention.quarantine
WHERE quarantine.quarantine_id = any(%(quarantine_ids)s::bigint[])
ORDER BY quarantine.policy, quarantine.quarantine_id;

-- name: count_redriven_too_often
-- What only its operation id takes any more.
SELECT count(*) AS num_commands
FROM s3_retention.quarantine
INNER JOIN
    unnest(%(policies)s::text[], %(max_redrives)s::integer[]) AS limits (policy, max_redrives)
    ON quarantine.policy = limits.policy
WHERE
    quarantine.resolved_at IS NULL
    AND quarantine.redrive_batch_id IS NULL
    AND quarantine.num_redrives >= limits.max_redrives
    AND (%(policy)s::text IS NULL OR quarantine.policy = %(policy)s);

-- name: list_intervals_of_rows
-- The intervals to which these rows belong.
SELECT DISTINCT quarantine.interval_id FROM s3_retention.quarantine
WHERE quarantine.quarantine_id = any(%(quarantine_ids)s::bigint[]);

-- name: waive_rows
-- A person closes rows undeleted, under the row locks of select_for_redrive; append_kept ends their commands
-- in the same transaction.
WITH waived AS (
    UPDATE s3_retention.quarantine
    SET resolution = 'waived', resolved_at = s3_retention.clock()
    WHERE
        quarantine.quarantine_id = any(%(quarantine_ids)s::bigint[])
        AND quarantine.resolved_at IS NULL
        AND quarantine.redrive_batch_id IS NULL
    RETURNING quarantine.quarantine_id, quarantine.failure_class
)

INSERT INTO s3_retention.quarantine_events (quarantine_id, event, dag_id, run_id, acted_by, detail, note)
SELECT
    waived.quarantine_id,
    'waived' AS event,
    %(dag_id)s AS dag_id,
    %(run_id)s AS run_id,
    %(acted_by)s AS acted_by,
    waived.failure_class AS detail,
    %(note)s AS note
FROM waived
RETURNING quarantine_id;

-- name: count_waived_of_run
-- What a run has waived before it was cleared.
SELECT count(*) AS num_commands FROM s3_retention.quarantine_events
WHERE
    quarantine_events.run_id = %(run_id)s
    AND quarantine_events.dag_id = %(dag_id)s
    AND quarantine_events.event = 'waived';

-- name: count_redriven_by_class
-- What a run took out of quarantine, by the class it had waited with, and how much of that it has ended.
SELECT
    taken.detail AS failure_class,
    count(*) AS num_selected,
    count(*) FILTER (WHERE ended.quarantine_id IS NOT NULL) AS num_resolved
FROM s3_retention.quarantine_events AS taken
LEFT JOIN s3_retention.quarantine_events AS ended
    ON
        taken.quarantine_id = ended.quarantine_id
        AND taken.run_id = ended.run_id
        AND taken.dag_id = ended.dag_id
        AND ended.event = 'resolved'
WHERE taken.run_id = %(run_id)s AND taken.dag_id = %(dag_id)s AND taken.event = 'redriven'
GROUP BY taken.detail
ORDER BY taken.detail;

-- name: assign_to_redrive
-- The rows belong to this redrive batch until it resolves or returns them. OFFSET 0 keeps the ids the outer
-- side: each is one descent of the primary key, also before the table was ever analysed.
WITH taken AS (
    UPDATE s3_retention.quarantine
    SET redrive_batch_id = %(batch_id)s, num_redrives = num_redrives + 1
    FROM (
        SELECT wanted.quarantine_id FROM unnest(%(quarantine_ids)s::bigint[]) AS wanted (quarantine_id)
        OFFSET 0 -- noqa: AM09
    ) AS chosen
    WHERE
        quarantine.quarantine_id = chosen.quarantine_id
        AND quarantine.resolved_at IS NULL
        AND quarantine.redrive_batch_id IS NULL
    RETURNING quarantine.quarantine_id, quarantine.failure_class
)

INSERT INTO s3_retention.quarantine_events (quarantine_id, event, dag_id, run_id, acted_by, detail, note)
SELECT
    taken.quarantine_id,
    'redriven' AS event,
    %(dag_id)s AS dag_id,
    %(run_id)s AS run_id,
    %(acted_by)s AS acted_by,
    taken.failure_class AS detail,
    %(note)s AS note
FROM taken;

-- name: list_redriven_commands
-- The unfinished commands of a redrive batch: its rows that are still open, a part at a time.
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
WHERE
    quarantine.redrive_batch_id = %(batch_id)s
    AND quarantine.resolved_at IS NULL
    AND quarantine.quarantine_id > %(after_id)s
ORDER BY quarantine.quarantine_id
LIMIT 1000;

-- name: resolve_redriven
-- The rows whose final entry was appended close in the same transaction.
WITH resolved AS (
    UPDATE s3_retention.quarantine
    SET resolution = done.outcome, resolved_at = s3_retention.clock()
    FROM unnest(%(quarantine_ids)s::bigint[], %(outcomes)s::text[]) AS done (quarantine_id, outcome)
    WHERE
        quarantine.quarantine_id = done.quarantine_id
        AND quarantine.redrive_batch_id = %(batch_id)s
        AND quarantine.resolved_at IS NULL
    RETURNING quarantine.quarantine_id, quarantine.resolution
)

INSERT INTO s3_retention.quarantine_events (quarantine_id, event, dag_id, run_id, detail)
SELECT
    resolved.quarantine_id,
    'resolved' AS event,
    %(dag_id)s AS dag_id,
    %(run_id)s AS run_id,
    resolved.resolution
FROM resolved;

-- name: return_redriven
-- What a redrive could not end waits again, with its newest cause; where the redrive left none, the cause
-- before stands, and the event says what stopped the batch, or worker_lost. Runs under the batch lock.
WITH returned AS (
    UPDATE s3_retention.quarantine
    SET
        redrive_batch_id = NULL,
        failure_class = coalesce(latest.failure_class, parked.failure_class),
        code = CASE WHEN latest.batch_id IS NULL THEN parked.code ELSE latest.code END,
        message = CASE WHEN latest.batch_id IS NULL THEN parked.message ELSE latest.message END,
        request_id = CASE WHEN latest.batch_id IS NULL THEN parked.request_id ELSE latest.request_id END,
        num_attempts = coalesce(latest.num_attempts, parked.num_attempts),
        dag_id = %(dag_id)s,
        run_id = %(run_id)s,
        map_index = batches.map_index,
        last_failed_at = coalesce(latest.last_failed_at, s3_retention.clock()),
        not_before = CASE
            WHEN latest.batch_id IS NULL THEN parked.not_before
            WHEN latest.failure_class = 'locked'
                THEN coalesce(latest.not_before, s3_retention.clock() + interval '1 day')
        END
    FROM s3_retention.batches
    INNER JOIN s3_retention.quarantine AS parked ON batches.batch_id = parked.redrive_batch_id
    LEFT JOIN s3_retention.failures AS latest
        ON
            parked.redrive_batch_id = latest.batch_id
            AND parked.command_id = latest.command_id
    WHERE
        quarantine.quarantine_id = parked.quarantine_id
        AND batches.batch_id = %(batch_id)s
        AND parked.resolved_at IS NULL
    RETURNING
        quarantine.quarantine_id,
        coalesce(latest.failure_class, batches.stopped_class, 'worker_lost') AS failure_class
),

events AS (
    INSERT INTO s3_retention.quarantine_events (quarantine_id, event, dag_id, run_id, detail)
    SELECT
        returned.quarantine_id,
        'returned' AS event,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        returned.failure_class
    FROM returned
)

SELECT
    returned.failure_class,
    count(*) AS num_objects
FROM returned
GROUP BY returned.failure_class
ORDER BY returned.failure_class;
