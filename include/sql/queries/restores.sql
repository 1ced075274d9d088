-- name: list_restorable
-- Deleted objects that match all that is given, from a place in the ledger on; but for those that this run
-- has ended before it was cleared. What failed in it is given again.
SELECT
    entry.interval_id,
    entry.generation,
    entry.command_id,
    entry.operation_id,
    entry.bucket,
    entry.key,
    entry.version_id,
    entry.etag,
    entry.size,
    entry.last_modified_at,
    entry.marker_version_id
FROM s3_retention.ledger_entries AS entry
WHERE
    entry.outcome = 'deleted'
    AND (entry.interval_id, entry.generation, entry.command_id)
    > (%(after_interval_id)s::bigint, %(after_generation)s::integer, %(after_command_id)s::bytea)
    AND (%(operation_ids)s::bytea[] IS NULL OR entry.operation_id = any(%(operation_ids)s))
    AND (%(only_interval_id)s::bigint IS NULL OR entry.interval_id = %(only_interval_id)s)
    AND (%(only_bucket)s::text IS NULL OR entry.bucket = %(only_bucket)s)
    AND (%(only_prefix)s::text IS NULL OR starts_with(entry.key, %(only_prefix)s))
    AND (%(deleted_from)s::timestamptz IS NULL OR entry.settled_at >= %(deleted_from)s)
    AND (%(deleted_before)s::timestamptz IS NULL OR entry.settled_at < %(deleted_before)s)
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.restores
        WHERE
            restores.run_id = %(run_id)s
            AND restores.dag_id = %(dag_id)s
            AND restores.interval_id = entry.interval_id
            AND restores.generation = entry.generation
            AND restores.command_id = entry.command_id
            AND restores.outcome <> 'failed'
    )
ORDER BY entry.interval_id, entry.generation, entry.command_id
LIMIT %(max_rows)s;

-- name: lock_run
-- One try of a run writes at a time, and sees what another one has written: a late one may still be about.
SELECT pg_advisory_xact_lock(hashtextextended(%(dag_id)s || '/' || %(run_id)s, 0));

-- name: insert_restores
-- Appends what became of some entries. An entry is restored once: of two runs that removed the same marker
-- at once the later one has found it restored already. What another try of this run has ended is left as it
-- is, so that each entry counts once.
WITH wanted AS (
    SELECT
        one.interval_id,
        one.generation,
        one.command_id,
        one.operation_id,
        one.bucket,
        one.key,
        one.marker_version_id,
        one.outcome,
        one.failure_class,
        one.code,
        one.request_id
    FROM
        unnest(
            %(interval_ids)b::bigint[],
            %(generations)b::integer[],
            %(command_ids)b::bytea[],
            %(operation_ids)b::bytea[],
            %(buckets)b::text[],
            %(keys)b::text[],
            %(marker_version_ids)b::text[],
            %(outcomes)b::text[],
            %(failure_classes)b::text[],
            %(codes)b::text[],
            %(request_ids)b::text[]
        ) AS one (
            interval_id, generation, command_id, operation_id, bucket, key, marker_version_id, outcome,
            failure_class, code, request_id
        )
    WHERE
        NOT EXISTS (
            SELECT 1 FROM s3_retention.restores
            WHERE
                restores.run_id = %(run_id)s
                AND restores.dag_id = %(dag_id)s
                AND restores.interval_id = one.interval_id
                AND restores.generation = one.generation
                AND restores.command_id = one.command_id
                AND restores.outcome <> 'failed'
        )
),

appended AS (
    INSERT INTO s3_retention.restores (
        interval_id, generation, command_id, operation_id, bucket, key, marker_version_id, outcome,
        failure_class, code, request_id, dag_id, run_id, acted_by, note
    )
    SELECT
        wanted.interval_id,
        wanted.generation,
        wanted.command_id,
        wanted.operation_id,
        wanted.bucket,
        wanted.key,
        wanted.marker_version_id,
        wanted.outcome,
        wanted.failure_class,
        wanted.code,
        wanted.request_id,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        %(acted_by)s AS acted_by,
        %(note)s AS note
    FROM wanted
    ORDER BY wanted.interval_id, wanted.generation, wanted.command_id
    ON CONFLICT DO NOTHING
    RETURNING interval_id, generation, command_id, outcome
)

INSERT INTO s3_retention.restores (
    interval_id, generation, command_id, operation_id, bucket, key, marker_version_id, outcome, dag_id,
    run_id, acted_by, note
)
SELECT
    wanted.interval_id,
    wanted.generation,
    wanted.command_id,
    wanted.operation_id,
    wanted.bucket,
    wanted.key,
    wanted.marker_version_id,
    'already_restored' AS outcome,
    %(dag_id)s AS dag_id,
    %(run_id)s AS run_id,
    %(acted_by)s AS acted_by,
    %(note)s AS note
FROM wanted
WHERE
    wanted.outcome = 'restored'
    AND NOT EXISTS (
        SELECT 1 FROM appended
        WHERE
            appended.interval_id = wanted.interval_id
            AND appended.generation = wanted.generation
            AND appended.command_id = wanted.command_id
    )
ORDER BY wanted.interval_id, wanted.generation, wanted.command_id
ON CONFLICT DO NOTHING;

-- name: count_restores
-- What became of the entries of a run, by outcome. One that failed and was ended by a later try is no
-- failure.
SELECT
    restores.outcome,
    count(*) AS num_objects
FROM s3_retention.restores
WHERE
    restores.run_id = %(run_id)s
    AND restores.dag_id = %(dag_id)s
    AND (
        restores.outcome <> 'failed'
        OR NOT EXISTS (
            SELECT 1 FROM s3_retention.restores AS later
            WHERE
                later.run_id = restores.run_id
                AND later.dag_id = restores.dag_id
                AND later.interval_id = restores.interval_id
                AND later.generation = restores.generation
                AND later.command_id = restores.command_id
                AND later.outcome <> 'failed'
        )
    )
GROUP BY restores.outcome
ORDER BY restores.outcome;
