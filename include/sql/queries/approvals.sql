-- name: get_approval
-- The question about one plan, and its answer where there is one.
SELECT
    encode(approvals.plan_hash, 'hex') AS plan_hash,
    approvals.over_limits,
    approvals.asked_at,
    approvals.decision,
    approvals.decided_by
FROM s3_retention.approvals
WHERE approvals.interval_id = %(interval_id)s AND approvals.generation = %(generation)s;

-- name: was_plan_dealt
-- Whether anything of a plan was ever dealt to a run: a worker may have deleted it, settled or not.
SELECT exists(
    SELECT 1 FROM s3_retention.batches
    WHERE
        batches.interval_id = %(interval_id)s
        AND batches.generation = %(generation)s
        AND batches.dealt_at IS NOT NULL
) AS was_dealt;

-- name: insert_approval
-- Asks about the first plan of an interval: once, whatever number of runs come upon it, and before anything
-- of it was dealt.
INSERT INTO s3_retention.approvals (interval_id, generation, plan_hash, over_limits, dag_id, run_id)
SELECT
    intervals.interval_id,
    0 AS generation,
    s3_retention.plan_hash(intervals.interval_id, 0) AS plan_hash,
    %(over_limits)s AS over_limits,
    %(dag_id)s AS dag_id,
    %(run_id)s AS run_id
FROM s3_retention.intervals
WHERE
    intervals.interval_id = %(interval_id)s
    AND intervals.state = 'planned'
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.batches
        WHERE
            batches.interval_id = intervals.interval_id
            AND batches.generation = 0
            AND batches.dealt_at IS NOT NULL
    )
ON CONFLICT DO NOTHING;

-- name: decide_approval
-- The first answer stands; no row for any later one.
UPDATE s3_retention.approvals
SET
    decision = %(decision)s,
    decided_by = %(decided_by)s,
    decided_at = greatest(s3_retention.clock(), asked_at),
    decided_in_run = %(run_id)s
WHERE interval_id = %(interval_id)s AND generation = %(generation)s AND decision IS NULL
RETURNING interval_id;

-- name: sample_plan
-- The first keys of a plan, for a person to look at.
SELECT one.key
FROM s3_retention.chunks
CROSS JOIN LATERAL unnest(chunks.keys) WITH ORDINALITY AS one (key, place)
WHERE
    chunks.interval_id = %(interval_id)s
    AND chunks.generation = %(generation)s
    AND chunks.chunk_number <= 1
ORDER BY chunks.chunk_number, one.place
LIMIT %(max_rows)s;
