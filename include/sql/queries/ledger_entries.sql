-- name: ensure_partition
-- The partition of an interval must be there before the first of its entries.
SELECT s3_retention.ensure_ledger_partition(%(interval_id)s::bigint);

-- name: settle_outcomes
-- Appends what is final of one chunk. The batch row is locked and the fence repeated in this very statement:
-- a worker that lost its claim writes nothing (has_claim is false). What is there already is left as it is;
-- where the caller says that nothing is, none is looked for: the key would refuse it all. OFFSET 0: by the
-- key, one by one, and never by all that the ledger holds.
-- A worker names a command by its place; all else of it is the chunk's. At each place stands the number of
-- the answer that it got, 0 for none, and its two ids, 64 bytes. A chunk of which nothing is left is closed.
WITH fenced AS (
    UPDATE s3_retention.batches
    SET claimed_until = s3_retention.clock() + %(lease)s
    WHERE batch_id = %(batch_id)s AND fence = %(fence)s AND closed_at IS NULL
    RETURNING batch_id, fence
),

closed AS (
    UPDATE s3_retention.chunks
    SET closed_at = s3_retention.clock()
    FROM fenced
    WHERE
        %(is_whole)s::boolean
        AND chunks.chunk_id = %(chunk_id)s
        AND chunks.batch_id = fenced.batch_id
        AND chunks.closed_at IS NULL
),

appended AS (
    INSERT INTO s3_retention.ledger_entries (
        interval_id, generation, command_id, operation_id, batch_id, fence, tenant, bucket, key, version_id,
        etag, size, last_modified_at, due_at, outcome, reason, num_attempts, request_id,
        marker_version_id
    )
    SELECT
        chunks.interval_id,
        chunks.generation,
        substring(%(ids)b::bytea FROM one.place::integer * 64 - 63 FOR 32) AS command_id,
        substring(%(ids)b::bytea FROM one.place::integer * 64 - 31 FOR 32) AS operation_id,
        fenced.batch_id,
        fenced.fence,
        chunks.tenant,
        chunks.bucket,
        one.key,
        one.version_id,
        one.etag,
        one.size,
        one.last_modified_at,
        one.due_at,
        (%(outcomes)s::text[])[one.answer] AS outcome,
        (%(reasons)s::text[])[one.answer] AS reason,
        (%(attempts)s::integer[])[one.answer] AS num_attempts,
        (%(request_ids)s::text[])[one.answer] AS request_id,
        one.marker_version_id
    FROM fenced
    INNER JOIN s3_retention.chunks
        ON fenced.batch_id = chunks.batch_id AND chunks.chunk_id = %(chunk_id)s
    CROSS JOIN
        LATERAL unnest(
            chunks.keys,
            chunks.version_ids,
            chunks.etags,
            chunks.sizes,
            chunks.last_modified_ats,
            chunks.due_ats,
            %(answers)s::integer[],
            %(marker_version_ids)s::text[]
        ) WITH ORDINALITY AS one (
            key, version_id, etag, size, last_modified_at, due_at, answer, marker_version_id, place
        )
    WHERE
        one.answer > 0
        AND (
            NOT %(may_be_there)s::boolean OR NOT EXISTS (
                SELECT 1 FROM s3_retention.ledger_entries AS entry
                WHERE
                    entry.interval_id = chunks.interval_id
                    AND entry.generation = chunks.generation
                    AND entry.command_id = substring(%(ids)b::bytea FROM one.place::integer * 64 - 63 FOR 32)
                OFFSET 0 -- noqa: AM09
            )
        )
    ORDER BY substring(%(ids)b::bytea FROM one.place::integer * 64 - 63 FOR 32)
    RETURNING 1
)

SELECT
    exists(SELECT 1 FROM fenced) AS has_claim,
    (SELECT count(*) FROM appended) AS num_appended;

-- name: settle_redriven
-- The same for commands of a redrive: what is to be known of one is in its quarantine row, which this batch
-- holds.
WITH fenced AS (
    UPDATE s3_retention.batches
    SET claimed_until = s3_retention.clock() + %(lease)s
    WHERE batch_id = %(batch_id)s AND fence = %(fence)s AND closed_at IS NULL
    RETURNING batch_id, fence
),

appended AS (
    INSERT INTO s3_retention.ledger_entries (
        interval_id, generation, command_id, operation_id, batch_id, fence, tenant, bucket, key, version_id,
        etag, size, last_modified_at, due_at, outcome, reason, num_attempts, request_id,
        marker_version_id
    )
    SELECT
        quarantine.interval_id,
        quarantine.generation,
        quarantine.command_id,
        quarantine.operation_id,
        fenced.batch_id,
        fenced.fence,
        quarantine.tenant,
        quarantine.bucket,
        quarantine.key,
        quarantine.version_id,
        quarantine.etag,
        quarantine.size,
        quarantine.last_modified_at,
        quarantine.due_at,
        done.outcome,
        done.reason,
        done.num_attempts,
        done.request_id,
        done.marker_version_id
    FROM fenced
    CROSS JOIN
        unnest(
            %(quarantine_ids)b::bigint[],
            %(outcomes)b::text[],
            %(reasons)b::text[],
            %(attempts)b::integer[],
            %(request_ids)b::text[],
            %(marker_version_ids)b::text[]
        ) AS done (quarantine_id, outcome, reason, num_attempts, request_id, marker_version_id)
    INNER JOIN s3_retention.quarantine
        ON
            done.quarantine_id = quarantine.quarantine_id
            AND fenced.batch_id = quarantine.redrive_batch_id
    WHERE quarantine.resolved_at IS NULL
    ORDER BY quarantine.interval_id, quarantine.generation, quarantine.command_id
    ON CONFLICT DO NOTHING
    RETURNING 1
)

SELECT
    exists(SELECT 1 FROM fenced) AS has_claim,
    (SELECT count(*) FROM appended) AS num_appended;

-- name: settle_rejected
-- Ends what is left of a batch as kept, under its lock and fence: where the plan was rejected, and nowhere
-- else. What is there already is left as it is.
WITH fenced AS (
    UPDATE s3_retention.batches
    SET claimed_until = s3_retention.clock() + %(lease)s
    WHERE batch_id = %(batch_id)s AND fence = %(fence)s AND closed_at IS NULL
    RETURNING batch_id, fence, interval_id, generation
),

appended AS (
    INSERT INTO s3_retention.ledger_entries (
        interval_id, generation, command_id, operation_id, batch_id, fence, tenant, bucket, key, version_id,
        etag, size, last_modified_at, due_at, outcome, reason, num_attempts
    )
    SELECT
        todo.interval_id,
        todo.generation,
        todo.command_id,
        todo.operation_id,
        fenced.batch_id,
        fenced.fence,
        todo.tenant,
        todo.bucket,
        todo.key,
        todo.version_id,
        todo.etag,
        todo.size,
        todo.last_modified_at,
        todo.due_at,
        'kept' AS outcome,
        'rejected' AS reason,
        0 AS num_attempts
    FROM fenced
    INNER JOIN s3_retention.approvals
        ON
            fenced.interval_id = approvals.interval_id
            AND fenced.generation = approvals.generation
            AND approvals.decision IN ('rejected', 'timed_out')
    INNER JOIN s3_retention.unfinished_commands AS todo ON fenced.batch_id = todo.batch_id
    ORDER BY todo.command_id
    ON CONFLICT DO NOTHING
    RETURNING 1
)

SELECT
    exists(SELECT 1 FROM fenced) AS has_claim,
    (SELECT count(*) FROM appended) AS num_appended;

-- name: append_kept
-- Ends the commands of quarantine rows that this transaction has closed undeleted, so that their intervals
-- balance. An entry names the batch that parked it, and its last fence.
INSERT INTO s3_retention.ledger_entries (
    interval_id, generation, command_id, operation_id, batch_id, fence, tenant, bucket, key, version_id,
    etag, size, last_modified_at, due_at, outcome, reason, num_attempts, request_id
)
SELECT
    parked.interval_id,
    parked.generation,
    parked.command_id,
    parked.operation_id,
    coalesce(parked_by.batch_id, 0) AS batch_id,
    coalesce(parked_by.fence, 0) AS fence,
    parked.tenant,
    parked.bucket,
    parked.key,
    parked.version_id,
    parked.etag,
    parked.size,
    parked.last_modified_at,
    parked.due_at,
    'kept' AS outcome,
    %(reason)s AS reason,
    parked.num_attempts,
    parked.request_id
FROM s3_retention.quarantine AS parked
LEFT JOIN LATERAL (
    SELECT
        batches.batch_id,
        batches.fence
    FROM s3_retention.batches
    WHERE
        batches.run_id = parked.run_id
        AND batches.dag_id = parked.dag_id
        AND batches.map_index = parked.map_index
    ORDER BY batches.batch_id DESC
    LIMIT 1
) AS parked_by ON TRUE
WHERE parked.quarantine_id = any(%(quarantine_ids)s::bigint[]) AND parked.resolved_at IS NOT NULL
ORDER BY parked.interval_id, parked.generation, parked.command_id;
