-- name: deal_batches
-- Open batches of one plan of an interval go to this run, in order and up to its limits; a stop of an
-- earlier run is wiped, since a new run may try again. The first batch goes even when it is over the limit
-- alone. While a canary is open, it goes alone; while the plan waits for an answer, nothing goes.
WITH open_batch AS (
    SELECT
        batches.batch_id,
        min(batches.batch_number) OVER () AS first_number,
        row_number() OVER (ORDER BY batches.batch_number) AS place,
        sum(batches.num_commands) OVER (ORDER BY batches.batch_number) AS running_total
    FROM s3_retention.batches
    WHERE
        batches.interval_id = %(interval_id)s
        AND batches.generation = %(generation)s
        AND batches.closed_at IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM s3_retention.approvals
            WHERE
                approvals.interval_id = batches.interval_id
                AND approvals.generation = batches.generation
                AND approvals.decision IS NULL
        )
)

UPDATE s3_retention.batches
SET
    dag_id = %(dag_id)s,
    run_id = %(run_id)s,
    map_index = open_batch.place - 1,
    dealt_at = s3_retention.clock(),
    stopped_class = NULL,
    stopped_message = NULL
FROM open_batch
WHERE
    batches.batch_id = open_batch.batch_id
    AND open_batch.place <= %(max_batches)s
    AND (open_batch.running_total <= %(max_commands)s OR open_batch.place = 1)
    AND (open_batch.first_number > 0 OR open_batch.place = 1)
RETURNING batches.batch_id, batches.batch_number, batches.num_commands, batches.map_index;

-- name: insert_redrive_batch
-- One batch of a redrive; its commands are the quarantine rows that it claims.
INSERT INTO s3_retention.batches (
    kind, policy, batch_number, num_commands, num_bytes, dag_id, run_id, map_index, dealt_at
) VALUES (
    'redrive', %(policy)s, %(batch_number)s, %(num_commands)s, %(num_bytes)s,
    %(dag_id)s, %(run_id)s, %(map_index)s, s3_retention.clock()
)
RETURNING batch_id;

-- name: list_batches_of_run
-- What was dealt to a run, in the order of its mapped task, and whether a worker of this run ever had it.
SELECT
    batches.batch_id,
    batches.batch_number,
    batches.kind,
    batches.policy,
    batches.interval_id,
    batches.generation,
    batches.map_index,
    batches.num_commands,
    batches.stopped_class,
    batches.stopped_message,
    batches.closed_at,
    exists(
        SELECT 1 FROM s3_retention.claims
        WHERE
            claims.batch_id = batches.batch_id
            AND claims.run_id = batches.run_id
            AND claims.dag_id = batches.dag_id
    ) AS was_claimed
FROM s3_retention.batches
WHERE batches.run_id = %(run_id)s AND batches.dag_id = %(dag_id)s
ORDER BY batches.map_index, batches.batch_id;

-- name: count_remaining
-- Planned commands in batches of one plan of an interval that no run has been dealt, or that are still open.
SELECT coalesce(sum(batches.num_commands), 0) AS num_commands FROM s3_retention.batches
WHERE
    batches.interval_id = %(interval_id)s
    AND batches.generation = %(generation)s
    AND batches.closed_at IS NULL;

-- name: claim_batch
-- A new try takes the batch at once, under a new fence, without waiting for the lease of the try before it.
-- One that comes late, after a newer try or when the batch is dealt to another run, takes nothing.
UPDATE s3_retention.batches
SET
    claimed_by = %(claimed_by)s,
    claimed_until = s3_retention.clock() + %(lease)s,
    fence = fence + 1,
    stopped_class = NULL,
    stopped_message = NULL
WHERE
    batch_id = %(batch_id)s
    AND closed_at IS NULL
    AND dag_id = %(dag_id)s
    AND run_id = %(run_id)s
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.claims
        WHERE
            claims.batch_id = batches.batch_id
            AND claims.run_id = batches.run_id
            AND claims.dag_id = batches.dag_id
            AND claims.task_id = %(task_id)s
            AND claims.map_index = %(map_index)s
            AND claims.try_number > %(try_number)s
    )
RETURNING batch_id, kind, policy, interval_id, generation, num_commands, fence;

-- name: get_batch
-- Whose batch it is, and whether anything of it is left.
SELECT
    batches.policy,
    batches.closed_at
FROM s3_retention.batches
WHERE batches.batch_id = %(batch_id)s;

-- name: stop_batch
-- The store, not an object, is at fault: what is left stays pending for the next run. No row: claim lost.
UPDATE s3_retention.batches
SET
    stopped_class = %(stopped_class)s,
    stopped_message = %(stopped_message)s,
    claimed_until = NULL,
    released_at = s3_retention.clock()
WHERE batch_id = %(batch_id)s AND fence = %(fence)s AND closed_at IS NULL
RETURNING batch_id;

-- name: renew_batch
-- The heartbeat of a worker that waits for the store. No row: the claim is lost.
UPDATE s3_retention.batches
SET claimed_until = s3_retention.clock() + %(lease)s
WHERE batch_id = %(batch_id)s AND fence = %(fence)s AND closed_at IS NULL
RETURNING batch_id;

-- name: release_batch
-- A try that leaves failures behind gives its lease back: another try or the sweep follows.
UPDATE s3_retention.batches
SET claimed_until = NULL, released_at = s3_retention.clock()
WHERE batch_id = %(batch_id)s AND fence = %(fence)s AND closed_at IS NULL;

-- name: take_from_worker
-- The sweep raises the fence before it moves anything: a worker that still lives can settle no more. What has
-- been dealt to another run meanwhile is not touched, nor is a stopped cleanup batch: a later run resumes it.
UPDATE s3_retention.batches
SET fence = fence + 1, claimed_by = %(claimed_by)s, claimed_until = NULL
WHERE
    batch_id = %(batch_id)s
    AND dag_id = %(dag_id)s
    AND run_id = %(run_id)s
    AND closed_at IS NULL
    AND (stopped_class IS NULL OR kind = 'redrive')
RETURNING batch_id, fence;

-- name: close_batch
-- A batch closes when every command of its chunks is settled or in quarantine. No row: something is left.
-- A redrive that was stopped keeps the reason, since no later run resumes its batch.
UPDATE s3_retention.batches
SET closed_at = s3_retention.clock(), claimed_until = NULL
WHERE
    batch_id = %(batch_id)s
    AND fence = %(fence)s
    AND closed_at IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.chunks
        WHERE chunks.batch_id = batches.batch_id AND chunks.closed_at IS NULL
    )
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.quarantine
        WHERE
            batches.kind = 'redrive'
            AND quarantine.redrive_batch_id = batches.batch_id AND quarantine.resolved_at IS NULL
    )
RETURNING batch_id;

-- name: release_expired_batches
-- A lease that has run out is given back for a worker that did not. It may still settle: its fence stands.
-- One that is locked is just being settled.
UPDATE s3_retention.batches
SET released_at = claimed_until, claimed_until = NULL
WHERE
    batches.batch_id IN (
        SELECT expired.batch_id FROM s3_retention.batches AS expired
        WHERE expired.closed_at IS NULL AND expired.claimed_until <= s3_retention.clock()
        FOR UPDATE SKIP LOCKED
    )
RETURNING batch_id;

-- name: list_abandoned_batches
-- Open batches of runs that are over: for rescue_after, no batch of the run had a lease, was dealt or closed,
-- and nobody holds the interval or its replay. Of a cleanup only what its run had claimed: what none had, and
-- what was stopped, is resumed by the next run. No other run resumes a redrive: of it, everything.
SELECT
    batches.batch_id,
    batches.kind,
    batches.dag_id,
    batches.run_id,
    batches.map_index,
    batches.fence
FROM s3_retention.batches
WHERE
    batches.policy = %(policy)s
    AND batches.closed_at IS NULL
    AND batches.run_id IS NOT NULL
    AND (
        batches.kind = 'redrive'
        OR (
            batches.stopped_class IS NULL
            AND EXISTS (
                SELECT 1 FROM s3_retention.claims
                WHERE
                    claims.batch_id = batches.batch_id
                    AND claims.run_id = batches.run_id
                    AND claims.dag_id = batches.dag_id
            )
        )
    )
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.batches AS of_run
        WHERE
            of_run.run_id = batches.run_id
            AND of_run.dag_id = batches.dag_id
            AND greatest(of_run.claimed_until, of_run.released_at, of_run.dealt_at, of_run.closed_at)
            > s3_retention.clock() - %(rescue_after)s::interval
    )
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.intervals
        WHERE
            intervals.interval_id = batches.interval_id
            AND intervals.claimed_until > s3_retention.clock()
    )
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.replays
        WHERE
            replays.interval_id = batches.interval_id
            AND replays.generation = batches.generation
            AND replays.claimed_until > s3_retention.clock()
    )
ORDER BY batches.batch_id;

-- name: take_abandoned_batch
-- Raises the fence over a worker that is not heard of. No row: it was heard of meanwhile, or another run has
-- the batch.
UPDATE s3_retention.batches
SET fence = fence + 1, claimed_by = %(claimed_by)s, claimed_until = NULL
WHERE
    batch_id = %(batch_id)s
    AND fence = %(fence)s
    AND dag_id = %(dag_id)s
    AND run_id = %(run_id)s
    AND closed_at IS NULL
    AND (claimed_until IS NULL OR claimed_until <= s3_retention.clock())
    AND (stopped_class IS NULL OR kind = 'redrive')
RETURNING batch_id, fence;
