-- name: insert_hold
-- Places a hold; a run that placed one before gets none. Without a start it holds from now on.
INSERT INTO s3_retention.legal_holds (
    bucket, scope, name, reason, ends_at, placed_by, dag_id, run_id
)
VALUES (
    %(bucket)s, %(scope)s, %(name)s, %(reason)s, %(ends_at)s, %(acted_by)s, %(dag_id)s, %(run_id)s
)
ON CONFLICT (dag_id, run_id) DO NOTHING
RETURNING hold_id;

-- name: find_hold_of_run
-- What a run has placed before it was cleared.
SELECT legal_holds.hold_id FROM s3_retention.legal_holds
WHERE legal_holds.dag_id = %(dag_id)s AND legal_holds.run_id = %(run_id)s;

-- name: lift_hold
-- Lifts a hold, once.
UPDATE s3_retention.legal_holds
SET lifted_by = %(acted_by)s, lifted_at = s3_retention.clock(), lift_reason = %(reason)s
WHERE legal_holds.hold_id = %(hold_id)s AND legal_holds.lifted_at IS NULL;

-- name: get_hold
-- One hold, in force or not.
SELECT legal_holds.lifted_by
FROM s3_retention.legal_holds
WHERE legal_holds.hold_id = %(hold_id)s;

-- name: list_held
-- The places, from 1, of those of these objects that a hold is in force on: by the whole key, and by its
-- beginning of each length that a held prefix has; a bucket's is 0.
WITH held_lengths AS MATERIALIZED (
    SELECT DISTINCT length(active_holds.name) AS num_characters
    FROM s3_retention.active_holds
    WHERE active_holds.scope <> 'key'
)

SELECT wanted.place
FROM unnest(%(buckets)s::text[], %(keys)s::text[]) WITH ORDINALITY AS wanted (bucket, key, place)
WHERE
    (wanted.bucket, wanted.key COLLATE "C") IN (
        SELECT
            active_holds.bucket,
            active_holds.name
        FROM s3_retention.active_holds
        WHERE active_holds.scope = 'key'
    )
    OR (
        SELECT
            bool_or((wanted.bucket, left(wanted.key, held_lengths.num_characters) COLLATE "C") IN (
                SELECT
                    active_holds.bucket,
                    active_holds.name
                FROM s3_retention.active_holds
                WHERE active_holds.scope <> 'key'
            ))
        FROM held_lengths
    )
ORDER BY wanted.place;
