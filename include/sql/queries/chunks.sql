-- name: list_open_chunks
-- The chunks of a batch that still hold unfinished commands, in order.
SELECT chunks.chunk_id FROM s3_retention.chunks
WHERE chunks.batch_id = %(batch_id)s AND chunks.closed_at IS NULL
ORDER BY chunks.chunk_number;

-- name: list_unfinished_commands
-- The anti-join with which every delivery begins: planned, and neither settled nor in quarantine.
SELECT
    todo.command_id,
    todo.operation_id,
    todo.interval_id,
    todo.generation,
    todo.policy_version,
    todo.tenant,
    todo.bucket,
    todo.key,
    todo.version_id,
    todo.etag,
    todo.size,
    todo.last_modified_at,
    todo.due_at,
    todo.group_key,
    coalesce(failures.num_attempts, 0) AS num_attempts
FROM s3_retention.unfinished_commands AS todo
LEFT JOIN s3_retention.failures
    ON todo.batch_id = failures.batch_id AND todo.command_id = failures.command_id
WHERE todo.chunk_id = %(chunk_id)s;

-- name: close_settled_chunks
-- A chunk closes when its anti-join is empty.
UPDATE s3_retention.chunks
SET closed_at = s3_retention.clock()
WHERE
    chunks.batch_id = %(batch_id)s
    AND chunks.closed_at IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.unfinished_commands AS todo
        WHERE todo.chunk_id = chunks.chunk_id
    );

-- name: list_keepers
-- The keepers of the groups of an interval that a chunk touches.
SELECT
    keepers.group_key,
    keepers.bucket,
    keepers.key
FROM s3_retention.keepers
INNER JOIN unnest(%(group_keys)s::text[]) AS wanted (group_key)
    ON
        hashtextextended(keepers.group_key, 0) = hashtextextended(wanted.group_key, 0)
        AND keepers.group_key = wanted.group_key
WHERE keepers.interval_id = %(interval_id)s AND keepers.generation = %(generation)s;
