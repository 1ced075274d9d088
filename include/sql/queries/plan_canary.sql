-- name: create_plan_canary
-- The first commands of a plan, which go alone.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_canary (LIKE plan_chunks) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_canary
-- A plan starts from nothing.
TRUNCATE plan_canary;

-- name: is_first_of_version
-- Whether no earlier plan of this version holds a command that may have been deleted.
SELECT NOT EXISTS (
    SELECT 1 FROM s3_retention.intervals
    WHERE
        intervals.policy = %(policy)s
        AND intervals.policy_version = %(policy_version)s
        AND intervals.interval_id IS DISTINCT FROM %(interval_id)s::bigint
        AND intervals.num_discovered > 0
        AND NOT EXISTS (
            SELECT 1 FROM s3_retention.approvals
            WHERE
                approvals.interval_id = intervals.interval_id
                AND approvals.generation = 0
                AND approvals.decision IN ('rejected', 'timed_out')
        )
) AS is_first;

-- name: take_canary
-- From the first chunk, which is one of a single request and of one tenant.
INSERT INTO plan_canary (
    chunk_place, tenant, bucket, keys, version_ids, etags, sizes, last_modified_ats, due_ats, group_keys,
    num_commands, num_bytes
)
SELECT
    first_chunk.chunk_place,
    first_chunk.tenant,
    first_chunk.bucket,
    first_chunk.keys[:%(num_commands)s::integer] AS keys,
    first_chunk.version_ids[:%(num_commands)s::integer] AS version_ids,
    first_chunk.etags[:%(num_commands)s::integer] AS etags,
    first_chunk.sizes[:%(num_commands)s::integer] AS sizes,
    first_chunk.last_modified_ats[:%(num_commands)s::integer] AS last_modified_ats,
    first_chunk.due_ats[:%(num_commands)s::integer] AS due_ats,
    first_chunk.group_keys[:%(num_commands)s::integer] AS group_keys,
    least(first_chunk.num_commands, %(num_commands)s::bigint) AS num_commands,
    (
        SELECT sum(one.size)
        FROM unnest(first_chunk.sizes[:%(num_commands)s::integer]) AS one (size)
    ) AS num_bytes
FROM plan_chunks AS first_chunk
ORDER BY first_chunk.chunk_place
LIMIT 1;

-- name: drop_taken_chunk
-- A chunk that is the canary as a whole.
DELETE FROM plan_chunks
USING plan_canary
WHERE
    plan_chunks.chunk_place = plan_canary.chunk_place
    AND plan_chunks.num_commands = plan_canary.num_commands;

-- name: shorten_taken_chunk
-- What is left of the first chunk.
UPDATE plan_chunks
SET
    keys = plan_chunks.keys[plan_canary.num_commands + 1:],
    version_ids = plan_chunks.version_ids[plan_canary.num_commands + 1:],
    etags = plan_chunks.etags[plan_canary.num_commands + 1:],
    sizes = plan_chunks.sizes[plan_canary.num_commands + 1:],
    last_modified_ats = plan_chunks.last_modified_ats[plan_canary.num_commands + 1:],
    due_ats = plan_chunks.due_ats[plan_canary.num_commands + 1:],
    group_keys = plan_chunks.group_keys[plan_canary.num_commands + 1:],
    num_commands = plan_chunks.num_commands - plan_canary.num_commands,
    num_bytes = plan_chunks.num_bytes - plan_canary.num_bytes
FROM plan_canary
WHERE plan_chunks.chunk_place = plan_canary.chunk_place;

-- name: insert_canary
-- Batch 0 with chunk 0. After insert_chunks, which counts the batches to which it deals.
WITH canary AS (
    INSERT INTO s3_retention.batches (
        kind, policy, interval_id, generation, batch_number, num_commands, num_bytes
    )
    SELECT
        'cleanup' AS kind,
        %(policy)s AS policy,
        %(interval_id)s AS interval_id,
        %(generation)s AS generation,
        0 AS batch_number,
        plan_canary.num_commands,
        plan_canary.num_bytes
    FROM plan_canary
    RETURNING batch_id, interval_id, generation
)

INSERT INTO s3_retention.chunks (
    batch_id, interval_id, generation, chunk_number, tenant, bucket, keys, version_ids, etags, sizes,
    last_modified_ats, due_ats, group_keys, num_commands
)
SELECT
    canary.batch_id,
    canary.interval_id,
    canary.generation,
    0 AS chunk_number,
    plan_canary.tenant,
    plan_canary.bucket,
    plan_canary.keys,
    plan_canary.version_ids,
    plan_canary.etags,
    plan_canary.sizes,
    plan_canary.last_modified_ats,
    plan_canary.due_ats,
    plan_canary.group_keys,
    plan_canary.num_commands
FROM canary
CROSS JOIN plan_canary;
