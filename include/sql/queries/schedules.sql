-- name: insert_schedule
-- The first series of a policy, from this tick on; a policy that has one is left as it is (no row).
INSERT INTO s3_retention.schedules (
    policy, dag_id, timetable, last_tick_at, last_interval_starts_at, last_interval_ends_at
) VALUES (
    %(policy)s, %(dag_id)s, %(timetable)s, %(last_tick_at)s, %(interval_starts_at)s, %(interval_ends_at)s
)
ON CONFLICT DO NOTHING
RETURNING policy;

-- name: get_schedule
-- Up to which tick a policy is accounted for.
SELECT
    schedules.timetable,
    schedules.last_tick_at,
    schedules.last_interval_starts_at,
    schedules.last_interval_ends_at
FROM s3_retention.schedules
WHERE schedules.policy = %(policy)s;

-- name: lock_schedule
-- Flaggers of one policy queue up here: what one has accounted for, the next one does not flag.
SELECT
    schedules.timetable,
    schedules.last_tick_at,
    schedules.last_interval_starts_at,
    schedules.last_interval_ends_at
FROM s3_retention.schedules
WHERE schedules.policy = %(policy)s
FOR UPDATE;

-- name: start_series
-- A changed timetable counts from now on: what the old one had left is neither sought nor flagged.
UPDATE s3_retention.schedules
SET
    dag_id = %(dag_id)s,
    timetable = %(timetable)s,
    series_started_at = s3_retention.clock(),
    last_tick_at = %(last_tick_at)s,
    last_interval_starts_at = %(interval_starts_at)s,
    last_interval_ends_at = %(interval_ends_at)s,
    updated_at = s3_retention.clock()
WHERE policy = %(policy)s;

-- name: move_last_tick
-- Accounted for up to here; it never moves back, so that a cleared old run changes nothing.
UPDATE s3_retention.schedules
SET
    last_tick_at = %(last_tick_at)s,
    last_interval_starts_at = %(interval_starts_at)s,
    last_interval_ends_at = %(interval_ends_at)s,
    updated_at = s3_retention.clock()
WHERE policy = %(policy)s AND last_tick_at < %(last_tick_at)s;

-- name: list_known_policies
-- Every policy that the ledger has heard of, with its timetable where it has one: its file may be gone.
WITH used AS (
    SELECT DISTINCT policy_versions.policy FROM s3_retention.policy_versions
)

SELECT
    coalesce(schedules.policy, used.policy) AS policy,
    schedules.timetable
FROM s3_retention.schedules
FULL OUTER JOIN used ON schedules.policy = used.policy
ORDER BY 1;
