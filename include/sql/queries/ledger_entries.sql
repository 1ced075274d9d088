-- name: ensure_partition
-- The partition of an interval must be there before the first of its entries.
SELECT s3_retention.ensure_ledger_partition(%(interval_id)s::bigint);

-- name: settle_outcomes
-- Appends what is final. The batch row is locked and the fence repeated in this very statement: a worker
-- that lost its claim writes nothing (has_claim is false). What is there already is left as it is.
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
        entry.interval_id,
        entry.generation,
        entry.command_id,
        entry.operation_id,
        fenced.batch_id,
        fenced.fence,
        entry.tenant,
        entry.bucket,
        entry.key,
        entry.version_id,
        entry.etag,
        entry.size,
        entry.last_modified_at,
        entry.due_at,
        entry.outcome,
        entry.reason,
        entry.num_attempts,
        entry.request_id,
        entry.marker_version_id
    FROM fenced
    CROSS JOIN
        unnest(
            %(interval_ids)b::bigint[],
            %(generations)b::integer[],
            %(command_ids)b::bytea[],
            %(operation_ids)b::bytea[],
            %(tenants)b::text[],
            %(buckets)b::text[],
            %(keys)b::text[],
            %(version_ids)b::text[],
            %(etags)b::text[],
            %(sizes)b::bigint[],
            %(last_modified_ats)b::timestamptz[],
            %(due_ats)b::timestamptz[],
            %(outcomes)b::text[],
            %(reasons)b::text[],
            %(attempts)b::integer[],
            %(request_ids)b::text[],
            %(marker_version_ids)b::text[]
        )
            AS entry (
                interval_id,
                generation,
                command_id,
                operation_id,
                tenant,
                bucket,
                key,
                version_id,
                etag,
                size,
                last_modified_at, due_at, outcome, reason, num_attempts, request_id, marker_version_id
            )
    ORDER BY entry.interval_id, entry.generation, entry.command_id
    ON CONFLICT DO NOTHING
    RETURNING 1
)

SELECT
    exists(SELECT 1 FROM fenced) AS has_claim,
    (SELECT count(*) FROM appended) AS num_appended;
