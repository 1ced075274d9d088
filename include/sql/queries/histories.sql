-- name: list_history
-- All that the ledger knows of one key, in order of time. No index leads from a key to its commands, which
-- would cost each settle: the plans and the ledger are read whole.
SELECT
    coalesce(replays.planned_at, intervals.planned_at) AS happened_at,
    'planned' AS event,
    concat_ws(
        ', ', 'due ' || to_char(one.due_at, 'YYYY-MM-DD HH24:MI'), 'version ' || one.version_id,
        'policy version ' || one.policy_version
    ) AS detail,
    one.policy,
    intervals.interval_key,
    NULL AS run,
    NULL AS acted_by,
    encode(one.operation_id, 'hex') AS operation_id
FROM s3_retention.chunks
INNER JOIN s3_retention.commands AS one
    ON chunks.chunk_id = one.chunk_id AND one.bucket = %(bucket)s AND one.key = %(key)s
INNER JOIN s3_retention.intervals ON chunks.interval_id = intervals.interval_id
LEFT JOIN s3_retention.replays
    ON chunks.interval_id = replays.interval_id AND chunks.generation = replays.generation
WHERE chunks.bucket = %(bucket)s AND %(key)s = any(chunks.keys)
UNION ALL
SELECT
    entry.settled_at AS happened_at,
    entry.outcome AS event,
    concat_ws(
        ', ', entry.reason, entry.num_attempts || ' attempts', 'request ' || entry.request_id,
        'marker ' || entry.marker_version_id
    ) AS detail,
    intervals.policy,
    intervals.interval_key,
    claimed.run,
    NULL AS acted_by,
    encode(entry.operation_id, 'hex') AS operation_id
FROM s3_retention.ledger_entries AS entry
INNER JOIN s3_retention.intervals ON entry.interval_id = intervals.interval_id
LEFT JOIN LATERAL (
    SELECT claims.dag_id || '/' || claims.run_id AS run FROM s3_retention.claims
    WHERE claims.batch_id = entry.batch_id AND claims.fence = entry.fence
    ORDER BY claims.claim_id
    LIMIT 1
) AS claimed ON TRUE
WHERE entry.bucket = %(bucket)s AND entry.key = %(key)s
UNION ALL
SELECT
    gone.settled_at AS happened_at,
    'row ' || gone.outcome AS event,
    'row ' || gone.row_id AS detail,
    intervals.policy,
    intervals.interval_key,
    claimed.run,
    NULL AS acted_by,
    encode(entry.operation_id, 'hex') AS operation_id
FROM s3_retention.ledger_entries AS entry
INNER JOIN s3_retention.intervals ON entry.interval_id = intervals.interval_id
INNER JOIN s3_retention.row_entries AS gone
    ON
        entry.interval_id = gone.interval_id
        AND entry.generation = gone.generation
        AND entry.command_id = gone.command_id
LEFT JOIN LATERAL (
    SELECT claims.dag_id || '/' || claims.run_id AS run FROM s3_retention.claims
    WHERE claims.batch_id = gone.batch_id AND claims.fence = gone.fence
    ORDER BY claims.claim_id
    LIMIT 1
) AS claimed ON TRUE
WHERE entry.bucket = %(bucket)s AND entry.key = %(key)s
UNION ALL
SELECT
    events.happened_at,
    events.event,
    concat_ws(
        ', ', events.detail,
        CASE WHEN events.event = 'quarantined' THEN concat_ws(': ', parked.code, parked.message) END,
        events.note
    ) AS detail,
    parked.policy,
    intervals.interval_key,
    events.dag_id || '/' || events.run_id AS run,
    events.acted_by,
    encode(parked.operation_id, 'hex') AS operation_id
FROM s3_retention.quarantine AS parked
INNER JOIN s3_retention.quarantine_events AS events ON parked.quarantine_id = events.quarantine_id
INNER JOIN s3_retention.intervals ON parked.interval_id = intervals.interval_id
WHERE parked.bucket = %(bucket)s AND parked.key = %(key)s
UNION ALL
SELECT
    restores.settled_at AS happened_at,
    CASE restores.outcome WHEN 'restored' THEN 'restored' ELSE 'not restored' END AS event,
    concat_ws(
        ', ', nullif(restores.outcome, 'restored'), restores.code, 'marker ' || restores.marker_version_id,
        restores.note
    ) AS detail,
    intervals.policy,
    intervals.interval_key,
    restores.dag_id || '/' || restores.run_id AS run,
    restores.acted_by,
    encode(restores.operation_id, 'hex') AS operation_id
FROM s3_retention.restores
INNER JOIN s3_retention.intervals ON restores.interval_id = intervals.interval_id
WHERE restores.bucket = %(bucket)s AND restores.key = %(key)s
UNION ALL
SELECT
    moment.happened_at,
    moment.event,
    concat_ws(', ', 'hold ' || holds.hold_id || ' of scope ' || holds.scope, moment.reason) AS detail,
    NULL AS policy,
    NULL AS interval_key,
    holds.dag_id || '/' || holds.run_id AS run,
    moment.acted_by,
    NULL AS operation_id
FROM s3_retention.legal_holds AS holds
CROSS JOIN
    LATERAL (
        VALUES
        (holds.placed_at, 'hold placed', holds.reason, holds.placed_by),
        (holds.lifted_at, 'hold lifted', holds.lift_reason, holds.lifted_by)
    ) AS moment (happened_at, event, reason, acted_by)
WHERE
    moment.happened_at IS NOT NULL
    AND holds.bucket = %(bucket)s
    AND (
        (holds.scope = 'key' AND holds.name = %(key)s)
        OR (holds.scope <> 'key' AND starts_with(%(key)s, holds.name))
    )
UNION ALL
SELECT
    moment.happened_at,
    moment.event,
    concat_ws(', ', 'tenant ' || pauses.tenant, moment.reason) AS detail,
    pauses.policy,
    NULL AS interval_key,
    pauses.dag_id || '/' || pauses.run_id AS run,
    moment.acted_by,
    NULL AS operation_id
FROM s3_retention.tenant_pauses AS pauses
CROSS JOIN
    LATERAL (
        VALUES
        (pauses.paused_at, 'tenant paused', pauses.reason, pauses.paused_by),
        (pauses.lifted_at, 'tenant resumed', pauses.lift_reason, pauses.lifted_by)
    ) AS moment (happened_at, event, reason, acted_by)
WHERE
    moment.happened_at IS NOT NULL
    AND pauses.tenant IN (
        SELECT chunks.tenant FROM s3_retention.chunks
        INNER JOIN s3_retention.intervals ON chunks.interval_id = intervals.interval_id
        WHERE
            chunks.bucket = %(bucket)s
            AND %(key)s = any(chunks.keys)
            AND (pauses.policy IS NULL OR pauses.policy = intervals.policy)
    )
ORDER BY happened_at, event;

-- name: list_status
-- How each policy stands: how far it is, what is open of it, and what waits.
SELECT
    watermarks.policy,
    watermarks.position,
    watermarks.completed_through,
    unfinished.interval_key AS open_interval,
    unfinished.state,
    unfinished.claimed_by,
    (
        SELECT count(*) FROM s3_retention.quarantine
        WHERE quarantine.policy = watermarks.policy AND quarantine.resolved_at IS NULL
    ) AS num_quarantined,
    (
        SELECT count(*) FROM s3_retention.missed_intervals
        WHERE missed_intervals.policy = watermarks.policy AND missed_intervals.resolved_at IS NULL
    ) AS num_missed,
    (
        SELECT count(*) FROM s3_retention.findings
        WHERE findings.policy = watermarks.policy AND findings.closed_at IS NULL
    ) AS num_findings,
    (
        SELECT min(switches.reason) FROM s3_retention.kill_switches AS switches
        WHERE
            switches.lifted_at IS NULL
            AND (switches.policy IS NULL OR switches.policy = watermarks.policy)
    ) AS stopped_for,
    (
        SELECT
            concat_ws(
                ', ',
                string_agg(
                    concat(
                        pauses.tenant, ' since ',
                        to_char(pauses.paused_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
                        ' by ', pauses.paused_by, ' (', pauses.reason, ')'
                    ), ', ' ORDER BY pauses.place
                ) FILTER (WHERE pauses.place <= 5),
                'and ' || nullif(greatest(count(*) - 5, 0), 0) || ' more'
            )
        FROM (
            SELECT
                tenant_pauses.*,
                row_number() OVER (ORDER BY tenant_pauses.pause_id) AS place
            FROM s3_retention.tenant_pauses
            WHERE
                tenant_pauses.lifted_at IS NULL
                AND (tenant_pauses.policy IS NULL OR tenant_pauses.policy = watermarks.policy)
        ) AS pauses
        HAVING count(*) > 0
    ) AS paused_tenants
FROM s3_retention.watermarks
LEFT JOIN s3_retention.intervals AS unfinished
    ON watermarks.policy = unfinished.policy AND unfinished.state <> 'completed'
ORDER BY watermarks.policy;

-- name: list_reports
-- What the runs on an interval, or the run of this id, have said, in order.
SELECT
    reports.dag_id,
    reports.run_id,
    reports.policy,
    intervals.interval_key,
    reports.reported_at,
    reports.is_balanced,
    reports.counts
FROM s3_retention.run_reports AS reports
LEFT JOIN s3_retention.intervals ON reports.interval_id = intervals.interval_id
WHERE reports.run_id = %(name)s OR intervals.interval_key = %(name)s
ORDER BY reports.report_id;
