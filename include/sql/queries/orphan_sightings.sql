-- name: forget_sightings
-- A row that this scan has not seen orphaned, or that names another object, starts anew the next time.
DELETE FROM s3_retention.orphan_sightings
WHERE
    orphan_sightings.policy = %(policy)s
    AND NOT EXISTS (
        SELECT 1 FROM plan_rows
        WHERE plan_rows.row_id = orphan_sightings.row_id AND plan_rows.named = orphan_sightings.named
    );

-- name: insert_sightings
-- What is seen for the first time.
INSERT INTO s3_retention.orphan_sightings (policy, row_id, named, first_seen_at)
SELECT
    %(policy)s AS policy,
    plan_rows.row_id,
    plan_rows.named,
    %(now)s AS first_seen_at
FROM plan_rows
WHERE plan_rows.named IS NOT NULL AND plan_rows.kept_by IS NULL
ORDER BY plan_rows.row_id
ON CONFLICT DO NOTHING;

-- name: date_plan_rows
-- The rows of this scan are as old as the first sighting of each.
UPDATE plan_rows
SET detached_at = orphan_sightings.first_seen_at
FROM s3_retention.orphan_sightings
WHERE orphan_sightings.policy = %(policy)s AND orphan_sightings.row_id = plan_rows.row_id;
