-- name: find_evidence
-- What the ledger knows about ticks: whether a run of each left a trace, whether another run was under way
-- then, and whether the watch passed around that time (NULL where it had never passed before).
WITH tick AS (
    SELECT
        asked.due_at,
        asked.run_id,
        asked.due_at - %(heartbeat)s::interval AS heard_from,
        asked.due_at + %(heartbeat)s::interval AS heard_until
    FROM unnest(%(due_ats)s::timestamptz[], %(run_ids)s::text[]) AS asked (due_at, run_id)
),

active AS (
    SELECT
        min(claims.claimed_at) AS started_at,
        min(run_reports.reported_at) AS ended_at
    FROM s3_retention.run_reports
    INNER JOIN s3_retention.claims
        ON run_reports.run_id = claims.run_id AND run_reports.dag_id = claims.dag_id
    WHERE
        run_reports.policy = %(policy)s
        AND run_reports.dag_id = %(dag_id)s
        AND run_reports.reported_at >= (SELECT min(tick.due_at) FROM tick)
    GROUP BY run_reports.run_id
    UNION ALL
    SELECT
        claims.claimed_at AS started_at,
        'infinity' AS ended_at
    FROM s3_retention.intervals
    INNER JOIN s3_retention.claims
        ON intervals.interval_id = claims.interval_id AND intervals.fence = claims.fence
    WHERE
        intervals.policy = %(policy)s
        AND intervals.state <> 'completed'
        AND intervals.claimed_until > s3_retention.clock()
)

SELECT
    tick.due_at,
    (
        EXISTS (
            SELECT 1 FROM s3_retention.claims
            WHERE claims.run_id = tick.run_id AND claims.dag_id = %(dag_id)s
        )
        OR EXISTS (
            SELECT 1 FROM s3_retention.run_reports
            WHERE run_reports.run_id = tick.run_id AND run_reports.dag_id = %(dag_id)s
        )
    ) AS has_run,
    exists(
        SELECT 1 FROM active
        WHERE active.started_at <= tick.due_at AND active.ended_at >= tick.due_at
    ) AS had_active_run,
    CASE
        WHEN
            EXISTS (
                SELECT 1 FROM s3_retention.watch_passes
                WHERE watch_passes.passed_at <= tick.due_at
            )
            THEN EXISTS (
                SELECT 1 FROM s3_retention.watch_passes
                WHERE watch_passes.passed_at BETWEEN tick.heard_from AND tick.heard_until
            )
    END AS had_heartbeat
FROM tick
ORDER BY tick.due_at;

-- name: insert_missed
-- Flags ticks, each once: a row that is there is left as it is, and is not given back.
INSERT INTO s3_retention.missed_intervals (policy, due_at, cause, flagged_by)
SELECT
    %(policy)s AS policy,
    tick.due_at,
    tick.cause,
    %(flagged_by)s AS flagged_by
FROM unnest(%(due_ats)s::timestamptz[], %(causes)s::text[]) AS tick (due_at, cause)
ORDER BY tick.due_at
ON CONFLICT DO NOTHING
RETURNING due_at, cause;

-- name: resolve_covered
-- A later run has covered the time that a missed tick would have covered, and everything of it has ended.
UPDATE s3_retention.missed_intervals
SET resolved_at = s3_retention.clock()
FROM s3_retention.watermarks
WHERE
    missed_intervals.policy = %(policy)s
    AND missed_intervals.resolved_at IS NULL
    AND watermarks.policy = missed_intervals.policy
    AND watermarks.completed_through >= missed_intervals.due_at - %(safety_delay)s::interval;

-- name: resolve_late
-- The tick ran after all, later than the watch had waited for it.
UPDATE s3_retention.missed_intervals
SET resolved_at = s3_retention.clock()
WHERE policy = %(policy)s AND due_at = %(due_at)s AND resolved_at IS NULL;
