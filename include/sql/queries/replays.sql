-- name: find_unfinished_replay
-- The one unfinished replay of an interval, if any (unique by index); it is held while a lease on it or on
-- one of its batches runs.
SELECT
    replays.generation,
    replays.policy_version,
    replays.state,
    replays.fence,
    replays.claimed_by,
    greatest(replays.claimed_until, (
        SELECT max(batches.claimed_until) FROM s3_retention.batches
        WHERE
            batches.interval_id = replays.interval_id
            AND batches.generation = replays.generation
            AND batches.closed_at IS NULL
    )) AS held_until
FROM s3_retention.replays
WHERE replays.interval_id = %(interval_id)s AND replays.state <> 'completed'
FOR UPDATE;

-- name: find_replay_of_run
-- The replay that a run claimed: a cleared task gets it again, so that a run has one replay.
SELECT
    replays.interval_id,
    replays.generation,
    intervals.interval_key,
    replays.policy,
    replays.state
FROM s3_retention.claims
INNER JOIN s3_retention.replays
    ON claims.interval_id = replays.interval_id AND claims.generation = replays.generation
INNER JOIN s3_retention.intervals ON replays.interval_id = intervals.interval_id
WHERE claims.dag_id = %(dag_id)s AND claims.run_id = %(run_id)s
ORDER BY claims.claim_id DESC
LIMIT 1;

-- name: find_next_generation
-- The generation that a replay of the interval would have.
SELECT coalesce(max(replays.generation), 0) + 1 AS generation
FROM s3_retention.replays
WHERE replays.interval_id = %(interval_id)s;

-- name: insert_replay
-- The next generation of a completed interval. A second unfinished one is refused by index.
INSERT INTO s3_retention.replays (
    interval_id, generation, policy, policy_version, claimed_by, claimed_until, acted_by
)
SELECT
    intervals.interval_id,
    (
        SELECT coalesce(max(before.generation), 0) + 1 FROM s3_retention.replays AS before
        WHERE before.interval_id = intervals.interval_id
    ) AS generation,
    intervals.policy,
    %(policy_version)s AS policy_version,
    %(claimed_by)s AS claimed_by,
    s3_retention.clock() + %(lease)s AS claimed_until,
    %(acted_by)s AS acted_by
FROM s3_retention.intervals
WHERE intervals.interval_id = %(interval_id)s AND intervals.state = 'completed'
RETURNING generation, fence;

-- name: claim_replay
-- Takes an unfinished replay over under a new fence: what its last holder still writes finds no row.
UPDATE s3_retention.replays
SET
    claimed_by = %(claimed_by)s,
    claimed_until = s3_retention.clock() + %(lease)s,
    fence = fence + 1,
    policy_version = CASE WHEN state = 'claimed' THEN %(policy_version)s ELSE policy_version END
WHERE interval_id = %(interval_id)s AND generation = %(generation)s AND state <> 'completed'
RETURNING fence;

-- name: renew_replay
-- The heartbeat of a long scan, and the lock under which batches are dealt. No row: the claim is lost.
UPDATE s3_retention.replays
SET claimed_until = s3_retention.clock() + %(lease)s
WHERE
    interval_id = %(interval_id)s
    AND generation = %(generation)s
    AND fence = %(fence)s
    AND state <> 'completed'
RETURNING generation;

-- name: mark_replay_planned
-- The plan is stored whole, in the transaction of its chunks. No row: the claim is lost.
UPDATE s3_retention.replays
SET
    state = 'planned',
    planned_at = s3_retention.clock(),
    claimed_until = s3_retention.clock() + %(lease)s,
    num_scanned = %(num_scanned)s,
    num_discovered = %(num_discovered)s,
    num_bytes = %(num_bytes)s,
    num_kept_by_reason = %(num_kept_by_reason)s
WHERE
    interval_id = %(interval_id)s AND generation = %(generation)s AND fence = %(fence)s AND state = 'claimed'
RETURNING generation;

-- name: complete_replay
-- A replay ends when none of its batches is open; else no row.
UPDATE s3_retention.replays
SET state = 'completed', completed_at = s3_retention.clock(), claimed_until = NULL
WHERE
    interval_id = %(interval_id)s
    AND generation = %(generation)s
    AND state = 'planned'
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.batches
        WHERE
            batches.interval_id = replays.interval_id
            AND batches.generation = replays.generation
            AND batches.closed_at IS NULL
    )
RETURNING generation;

-- name: release_replay
-- A run that ends early gives its lease back at once.
UPDATE s3_retention.replays
SET claimed_until = NULL
WHERE
    interval_id = %(interval_id)s
    AND generation = %(generation)s
    AND claimed_by = %(claimed_by)s
    AND state <> 'completed';

-- name: get_replay
-- The counts of a replay's plan.
SELECT
    replays.state,
    replays.num_scanned,
    replays.num_discovered,
    replays.num_bytes,
    replays.num_kept_by_reason
FROM s3_retention.replays
WHERE replays.interval_id = %(interval_id)s AND replays.generation = %(generation)s;

-- name: release_expired_replays
-- A lease that has run out is given back, unless a worker still holds one of the batches. One that is locked
-- is just being renewed.
UPDATE s3_retention.replays
SET claimed_until = NULL
WHERE (replays.interval_id, replays.generation) IN (
    SELECT
        expired.interval_id,
        expired.generation
    FROM s3_retention.replays AS expired
    WHERE
        expired.state <> 'completed'
        AND expired.claimed_until <= s3_retention.clock()
        AND NOT EXISTS (
            SELECT 1 FROM s3_retention.batches
            WHERE
                batches.interval_id = expired.interval_id
                AND batches.generation = expired.generation
                AND batches.closed_at IS NULL
                AND batches.claimed_until > s3_retention.clock()
        )
    FOR UPDATE SKIP LOCKED
)
RETURNING interval_id;
