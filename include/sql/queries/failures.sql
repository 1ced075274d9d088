-- name: record_failures
-- The last cause of each command that did not end. Runs under the batch lock of settle_outcomes.
INSERT INTO s3_retention.failures (
    batch_id, command_id, failure_class, code, message, request_id, num_attempts, not_before
)
SELECT
    %(batch_id)s AS batch_id,
    failure.command_id,
    failure.failure_class,
    failure.code,
    failure.message,
    failure.request_id,
    failure.num_attempts,
    failure.not_before
FROM
    unnest(
        %(command_ids)b::bytea[],
        %(failure_classes)b::text[],
        %(codes)b::text[],
        %(messages)b::text[],
        %(request_ids)b::text[],
        %(attempts)b::integer[],
        %(not_befores)b::timestamptz[]
    ) AS failure (command_id, failure_class, code, message, request_id, num_attempts, not_before)
ORDER BY failure.command_id
ON CONFLICT (batch_id, command_id) DO UPDATE SET
    failure_class = excluded.failure_class,
    code = excluded.code,
    message = excluded.message,
    request_id = excluded.request_id,
    num_attempts = excluded.num_attempts,
    not_before = excluded.not_before,
    last_failed_at = s3_retention.clock();

-- name: delete_failures
-- A closed batch has no unfinished command: its causes stand in quarantine.
DELETE FROM s3_retention.failures
WHERE batch_id = %(batch_id)s;
