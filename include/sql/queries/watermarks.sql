-- name: insert_watermark
-- A policy's first claim sets its watermark; a later one finds it.
INSERT INTO s3_retention.watermarks (policy, position, completed_through)
VALUES (%(policy)s, %(start_at)s, %(start_at)s)
ON CONFLICT DO NOTHING;

-- name: lock_watermark
-- Claims of one policy queue up here: whoever holds this row decides alone. Gives the ledger's time too.
SELECT
    watermarks.position,
    s3_retention.clock() AS now
FROM s3_retention.watermarks
WHERE policy = %(policy)s
FOR UPDATE;

-- name: move_position
-- A complete scan has decided everything due before the end of this interval.
UPDATE s3_retention.watermarks
SET
    position = greatest(watermarks.position, intervals.ends_at),
    updated_at = s3_retention.clock()
FROM s3_retention.intervals
WHERE intervals.interval_id = %(interval_id)s AND watermarks.policy = intervals.policy;

-- name: move_completed_through
-- Every command before the end of this interval is settled or in quarantine.
UPDATE s3_retention.watermarks
SET
    completed_through = greatest(watermarks.completed_through, intervals.ends_at),
    updated_at = s3_retention.clock()
FROM s3_retention.intervals
WHERE intervals.interval_id = %(interval_id)s AND watermarks.policy = intervals.policy;

-- name: read_clock
-- The ledger's time, for decisions that need no claim.
SELECT s3_retention.clock() AS now;

-- name: count_claim_conflict
-- Another live run held the interval that this one wanted.
UPDATE s3_retention.watermarks
SET num_claim_conflicts = num_claim_conflicts + 1
WHERE policy = %(policy)s;

-- name: find_position
-- How far a policy is; no row while it never was enforced. Nothing is locked.
SELECT watermarks.position
FROM s3_retention.watermarks
WHERE watermarks.policy = %(policy)s;
