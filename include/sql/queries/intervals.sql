-- name: get_interval
-- One interval; it is held while a lease on it or on one of its batches runs.
SELECT
    intervals.interval_id,
    intervals.policy,
    intervals.policy_version,
    intervals.starts_at,
    intervals.ends_at,
    intervals.state,
    intervals.fence,
    intervals.claimed_by,
    intervals.num_scanned,
    intervals.num_discovered,
    intervals.num_bytes,
    intervals.num_stragglers,
    intervals.num_kept_by_reason,
    intervals.next_due_at,
    intervals.largest_tenant_share,
    greatest(intervals.claimed_until, (
        SELECT max(batches.claimed_until) FROM s3_retention.batches
        WHERE batches.interval_id = intervals.interval_id AND batches.closed_at IS NULL
    )) AS held_until
FROM s3_retention.intervals
WHERE intervals.interval_id = %(interval_id)s;

-- name: find_interval_by_key
-- The interval of this name, whatever its state.
SELECT intervals.interval_id FROM s3_retention.intervals
WHERE intervals.interval_key = %(interval_key)s;

-- name: find_unfinished_interval
-- The one unfinished interval of a policy, if any (unique by index).
SELECT intervals.interval_id FROM s3_retention.intervals
WHERE intervals.policy = %(policy)s AND intervals.state <> 'completed'
FOR UPDATE;

-- name: find_interval_of_run
-- The interval that a run held last: a cleared task gets it again, so that a run has one interval.
SELECT claims.interval_id
FROM s3_retention.claims
INNER JOIN s3_retention.intervals ON claims.interval_id = intervals.interval_id
WHERE
    claims.dag_id = %(dag_id)s
    AND claims.run_id = %(run_id)s
    AND claims.generation = 0
    AND intervals.policy = %(policy)s
ORDER BY claims.claim_id DESC
LIMIT 1;

-- name: insert_interval
-- Cuts the next slice. The chain of the schema refuses a hole, an overlap and a second unfinished one.
INSERT INTO s3_retention.intervals (
    policy, policy_version, interval_key, starts_at, ends_at, follows, claimed_by, claimed_until
)
SELECT
    %(policy)s AS policy,
    %(policy_version)s AS policy_version,
    %(interval_key)s AS interval_key,
    %(starts_at)s::timestamptz AS starts_at,
    %(ends_at)s::timestamptz AS ends_at,
    (
        SELECT before.ends_at FROM s3_retention.intervals AS before
        WHERE before.policy = %(policy)s AND before.ends_at = %(starts_at)s
    ) AS follows,
    %(claimed_by)s AS claimed_by,
    s3_retention.clock() + %(lease)s AS claimed_until
RETURNING interval_id, fence;

-- name: claim_interval
-- Takes an unfinished interval over under a new fence: what its last holder still writes finds no row.
UPDATE s3_retention.intervals
SET
    claimed_by = %(claimed_by)s,
    claimed_until = s3_retention.clock() + %(lease)s,
    fence = fence + 1,
    policy_version = CASE WHEN state = 'claimed' THEN %(policy_version)s ELSE policy_version END
WHERE interval_id = %(interval_id)s AND state <> 'completed'
RETURNING interval_id, fence;

-- name: renew_interval
-- The heartbeat of a long scan, and the lock under which batches are dealt. No row: the claim is lost.
UPDATE s3_retention.intervals
SET claimed_until = s3_retention.clock() + %(lease)s
WHERE interval_id = %(interval_id)s AND fence = %(fence)s AND state <> 'completed'
RETURNING interval_id;

-- name: mark_planned
-- The plan is stored whole, in the transaction of its chunks. No row: the claim is lost.
UPDATE s3_retention.intervals
SET
    state = 'planned',
    planned_at = s3_retention.clock(),
    claimed_until = s3_retention.clock() + %(lease)s,
    num_scanned = %(num_scanned)s,
    num_discovered = %(num_discovered)s,
    num_bytes = %(num_bytes)s,
    num_stragglers = %(num_stragglers)s,
    num_kept_by_reason = %(num_kept_by_reason)s,
    next_due_at = %(next_due_at)s,
    largest_tenant_share = %(largest_tenant_share)s
WHERE interval_id = %(interval_id)s AND fence = %(fence)s AND state = 'claimed'
RETURNING interval_id;

-- name: complete_interval
-- An interval ends when none of its batches is open; else no row.
UPDATE s3_retention.intervals
SET state = 'completed', completed_at = s3_retention.clock(), claimed_until = NULL
WHERE
    interval_id = %(interval_id)s
    AND state = 'planned'
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.batches
        WHERE batches.interval_id = intervals.interval_id AND batches.closed_at IS NULL
    )
RETURNING interval_id;

-- name: release_interval
-- A run that ends early gives its lease back at once, so that the next one need not wait for it.
UPDATE s3_retention.intervals
SET claimed_until = NULL
WHERE interval_id = %(interval_id)s AND claimed_by = %(claimed_by)s AND state <> 'completed';

-- name: release_expired_intervals
-- A lease that has run out is given back, unless a worker still holds one of the batches. It is not adopted:
-- that is for the next cleanup run. One that is locked is just being renewed.
UPDATE s3_retention.intervals
SET claimed_until = NULL
WHERE
    intervals.interval_id IN (
        SELECT expired.interval_id FROM s3_retention.intervals AS expired
        WHERE
            expired.state <> 'completed'
            AND expired.claimed_until <= s3_retention.clock()
            AND NOT EXISTS (
                SELECT 1 FROM s3_retention.batches
                WHERE
                    batches.interval_id = expired.interval_id
                    AND batches.closed_at IS NULL
                    AND batches.claimed_until > s3_retention.clock()
            )
        FOR UPDATE SKIP LOCKED
    )
RETURNING interval_id;

-- name: find_live_lease
-- Whether a run of this policy is under way: a live lease on its interval or on a batch.
SELECT exists(
    SELECT 1 FROM s3_retention.intervals
    WHERE
        intervals.policy = %(policy)s
        AND intervals.state <> 'completed'
        AND (
            intervals.claimed_until > s3_retention.clock()
            OR EXISTS (
                SELECT 1 FROM s3_retention.batches
                WHERE
                    batches.interval_id = intervals.interval_id
                    AND batches.closed_at IS NULL
                    AND batches.claimed_until > s3_retention.clock()
            )
        )
) AS is_live;

-- name: find_unclaimed_since
-- From which due time on nothing is claimed: that of the first object which the last scan saw waiting, or,
-- where it saw none, the watermark. What has appeared since is not known before the next scan.
SELECT coalesce(last_planned.next_due_at, watermarks.position) AS unclaimed_since
FROM s3_retention.watermarks
LEFT JOIN LATERAL (
    SELECT intervals.next_due_at
    FROM s3_retention.intervals
    WHERE intervals.policy = watermarks.policy AND intervals.state <> 'claimed'
    ORDER BY intervals.interval_id DESC
    LIMIT 1
) AS last_planned ON TRUE
WHERE watermarks.policy = %(policy)s;

-- name: count_arrivals
-- How many commands the last slices of due time brought, stragglers apart. The first interval reaches back
-- to the beginning: its years say nothing about what a period brings.
SELECT
    sum(planned.num_discovered - planned.num_stragglers) AS num_commands,
    sum(planned.ends_at - planned.starts_at) AS due_time
FROM (
    SELECT
        intervals.num_discovered,
        intervals.num_stragglers,
        intervals.starts_at,
        intervals.ends_at
    FROM s3_retention.intervals
    WHERE
        intervals.policy = %(policy)s
        AND intervals.follows IS NOT NULL
        AND intervals.state <> 'claimed'
    ORDER BY intervals.interval_id DESC
    LIMIT %(max_rows)s
) AS planned
HAVING count(*) > 0;
