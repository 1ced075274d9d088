-- name: list_open_chunks
-- The chunks of a batch that still hold unfinished commands, in order.
SELECT
    chunks.chunk_id,
    chunks.tenant
FROM s3_retention.chunks
WHERE chunks.batch_id = %(batch_id)s AND chunks.closed_at IS NULL
ORDER BY chunks.chunk_number;

-- name: load_unfinished_commands
-- The anti-join with which every delivery begins: planned, and neither settled nor in quarantine. While the
-- first fence of a batch stands, nothing can be: only a claim or a sweep settles or parks, and each raises
-- it. The batch is asked for it, too: a worker that stood still does not know that it was swept meanwhile.
-- The chunk as it is, with the places of what is unfinished in it: a row for each command would cost the
-- worker more than the delete.
SELECT
    chunks.interval_id,
    chunks.generation,
    chunks.tenant,
    chunks.bucket,
    chunks.keys,
    chunks.version_ids,
    chunks.etags,
    chunks.sizes,
    chunks.last_modified_ats,
    chunks.due_ats,
    chunks.group_keys,
    coalesce(replays.policy_version, intervals.policy_version) AS policy_version,
    (%(fence)s::bigint = 1 AND batches.fence = 1) AS is_first_delivery,
    todo.places,
    todo.failed_places,
    todo.attempts
FROM s3_retention.chunks
INNER JOIN s3_retention.batches ON chunks.batch_id = batches.batch_id
INNER JOIN s3_retention.intervals ON chunks.interval_id = intervals.interval_id
LEFT JOIN s3_retention.replays
    ON chunks.interval_id = replays.interval_id AND chunks.generation = replays.generation
CROSS JOIN
    LATERAL (
        SELECT
            array_agg(unfinished.place ORDER BY unfinished.place) AS places,
            array_agg(unfinished.place ORDER BY unfinished.place)
            FILTER (WHERE failures.num_attempts IS NOT NULL) AS failed_places,
            array_agg(failures.num_attempts ORDER BY unfinished.place)
            FILTER (WHERE failures.num_attempts IS NOT NULL) AS attempts
        FROM s3_retention.unfinished_commands AS unfinished
        LEFT JOIN s3_retention.failures
            ON unfinished.batch_id = failures.batch_id AND unfinished.command_id = failures.command_id
        WHERE
            unfinished.chunk_id = chunks.chunk_id
            AND NOT (%(fence)s::bigint = 1 AND batches.fence = 1)
    ) AS todo
WHERE chunks.chunk_id = %(chunk_id)s;

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
