-- name: add_attempts
-- Counts failed attempts of this claim by class. Runs under the batch lock of settle_outcomes.
INSERT INTO s3_retention.failed_attempts (batch_id, fence, failure_class, num_attempts)
SELECT
    %(batch_id)s AS batch_id,
    %(fence)s AS fence,
    failed.failure_class,
    failed.num_attempts
FROM unnest(%(failure_classes)b::text[], %(attempts)b::bigint[]) AS failed (failure_class, num_attempts)
ON CONFLICT (batch_id, fence, failure_class) DO UPDATE SET
    num_attempts = failed_attempts.num_attempts + excluded.num_attempts;

-- name: count_attempts
-- The failed attempts of one run by class, whichever of its claims they were made under.
SELECT
    failed_attempts.failure_class,
    sum(failed_attempts.num_attempts)::bigint AS num_attempts
FROM s3_retention.claims
INNER JOIN s3_retention.failed_attempts
    ON claims.batch_id = failed_attempts.batch_id AND claims.fence = failed_attempts.fence
WHERE claims.run_id = %(run_id)s AND claims.dag_id = %(dag_id)s
GROUP BY failed_attempts.failure_class
ORDER BY failed_attempts.failure_class;
