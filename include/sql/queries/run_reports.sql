-- name: insert_report
-- What a run says at its end.
INSERT INTO s3_retention.run_reports (
    dag_id, run_id, policy, interval_id, counts, is_balanced, unclaimed_since, num_drained, num_remaining
) VALUES (
    %(dag_id)s,
    %(run_id)s,
    %(policy)s,
    %(interval_id)s,
    %(counts)s,
    %(is_balanced)s,
    %(unclaimed_since)s,
    %(num_drained)s,
    %(num_remaining)s
);

-- name: time_run
-- When a run did what.
WITH claimed AS (
    SELECT min(claims.claimed_at) AS claimed_at FROM s3_retention.claims
    WHERE claims.run_id = %(run_id)s AND claims.dag_id = %(dag_id)s
),

dealt AS (
    SELECT
        min(batches.dealt_at) AS dealt_at,
        max(greatest(batches.closed_at, batches.released_at)) AS drained_at
    FROM s3_retention.batches
    WHERE batches.run_id = %(run_id)s AND batches.dag_id = %(dag_id)s
)

SELECT
    claimed.claimed_at,
    dealt.dealt_at,
    dealt.drained_at,
    s3_retention.clock() AS reported_at
FROM claimed
CROSS JOIN dealt;

-- name: hash_stored_plan
-- What a plan was, when it was stored, and by which rules. Of generation 0 there is no replay.
SELECT
    s3_retention.plan_hash(intervals.interval_id, %(generation)s) AS plan_hash,
    policy_versions.rules_hash,
    CASE WHEN %(generation)s = 0 THEN intervals.planned_at ELSE replays.planned_at END AS planned_at
FROM s3_retention.intervals
LEFT JOIN s3_retention.replays
    ON intervals.interval_id = replays.interval_id AND replays.generation = %(generation)s
LEFT JOIN s3_retention.policy_versions
    ON
        intervals.policy = policy_versions.policy
        AND coalesce(replays.policy_version, intervals.policy_version) = policy_versions.policy_version
WHERE intervals.interval_id = %(interval_id)s;

-- name: list_last_figures
-- What the last cleanup runs of a policy said at their ends, the newest first; of a run that reported again,
-- the last word.
SELECT
    latest.reported_at,
    latest.unclaimed_since,
    latest.num_drained,
    latest.num_remaining
FROM (
    SELECT
        run_reports.*,
        row_number() OVER (PARTITION BY run_reports.run_id ORDER BY run_reports.report_id DESC) AS place
    FROM s3_retention.run_reports
    WHERE
        run_reports.policy = %(policy)s
        AND run_reports.interval_id IS NOT NULL
        AND run_reports.unclaimed_since IS NOT NULL
        AND run_reports.report_id > coalesce((
            SELECT older.report_id FROM s3_retention.run_reports AS older
            WHERE older.policy = %(policy)s AND older.interval_id IS NOT NULL
            ORDER BY 1 DESC
            LIMIT 1 OFFSET 10 * %(max_rows)s::bigint
        ), 0)
) AS latest
WHERE latest.place = 1
ORDER BY 1 DESC
LIMIT %(max_rows)s;

-- name: count_cleanup_commands
-- Where each command dealt to a cleanup run stands: the left side of the balance is what the plan put into
-- the batch, the right side comes from ledger and quarantine. A batch whose own entries are as many as its
-- commands is counted by them; in any other each command is looked up: a redrive may have settled it.
-- Drained is what has ended since the batch was dealt to the run. OFFSET 0: see the view unfinished_commands.
WITH dealt AS (
    SELECT
        batches.batch_id,
        batches.interval_id,
        batches.num_commands,
        batches.dealt_at,
        batches.stopped_class
    FROM s3_retention.batches
    WHERE batches.run_id = %(run_id)s AND batches.dag_id = %(dag_id)s AND batches.kind = 'cleanup'
),

own AS (
    SELECT
        dealt.batch_id,
        found.*,
        sum(found.num_objects) OVER (PARTITION BY dealt.batch_id) = dealt.num_commands AS is_whole
    FROM dealt
    CROSS JOIN
        LATERAL (
            SELECT
                entry.outcome,
                entry.reason,
                count(*) AS num_objects,
                sum(entry.size) AS num_bytes,
                count(*) FILTER (WHERE entry.settled_at >= dealt.dealt_at) AS num_drained
            FROM s3_retention.ledger_entries AS entry
            WHERE entry.batch_id = dealt.batch_id AND entry.interval_id = dealt.interval_id
            GROUP BY 1, 2
        ) AS found
),

others AS MATERIALIZED (
    SELECT dealt.*
    FROM dealt
    LEFT JOIN own ON dealt.batch_id = own.batch_id AND own.is_whole
    WHERE own.batch_id IS NULL
),

standing AS (
    SELECT
        own.outcome,
        own.reason AS detail,
        own.num_objects,
        own.num_bytes,
        own.num_drained
    FROM own
    WHERE own.is_whole
    UNION ALL
    SELECT
        coalesce(
            entry.outcome,
            CASE
                WHEN parked.failure_class IS NOT NULL THEN 'quarantined'
                WHEN others.stopped_class IS NOT NULL THEN 'stopped'
                ELSE 'pending'
            END
        ) AS outcome,
        CASE
            WHEN entry.outcome IS NULL THEN coalesce(parked.failure_class, others.stopped_class)
            ELSE entry.reason
        END AS detail,
        1 AS num_objects,
        commands.size AS num_bytes,
        CASE
            WHEN parked.failure_class IS NOT NULL OR entry.settled_at >= others.dealt_at THEN 1
            ELSE 0
        END AS num_drained
    FROM others
    INNER JOIN s3_retention.commands ON others.batch_id = commands.batch_id
    LEFT JOIN LATERAL (
        SELECT
            settled.outcome,
            settled.reason,
            settled.settled_at
        FROM s3_retention.ledger_entries AS settled
        WHERE
            settled.interval_id = commands.interval_id
            AND settled.generation = commands.generation
            AND settled.command_id = commands.command_id
        OFFSET 0 -- noqa: AM09
    ) AS entry ON TRUE
    LEFT JOIN LATERAL (
        SELECT quarantine.failure_class
        FROM s3_retention.quarantine
        WHERE
            quarantine.interval_id = commands.interval_id
            AND quarantine.generation = commands.generation
            AND quarantine.command_id = commands.command_id
            AND quarantine.resolved_at IS NULL
        OFFSET 0 -- noqa: AM09
    ) AS parked ON TRUE
)

SELECT
    standing.outcome,
    standing.detail,
    sum(standing.num_objects)::bigint AS num_objects,
    sum(standing.num_bytes) AS num_bytes,
    sum(standing.num_drained)::bigint AS num_drained
FROM standing
GROUP BY 1, 2
ORDER BY 1, 2;

-- name: count_tenants
-- What became of each tenant in a cleanup run, and what of it waits: those that are paused first, then the
-- largest; the rest in one row without a name. Where no chunk of the run has a tenant, no entry is read. As
-- in count_cleanup_commands, only a batch with fewer entries of its own than commands is asked for what is in
-- quarantine.
WITH dealt AS (
    SELECT
        batches.batch_id,
        batches.interval_id,
        batches.num_commands
    FROM s3_retention.batches
    WHERE
        batches.run_id = %(run_id)s
        AND batches.dag_id = %(dag_id)s
        AND batches.kind = 'cleanup'
        AND EXISTS (
            SELECT 1
            FROM s3_retention.batches AS one
            INNER JOIN s3_retention.chunks ON one.batch_id = chunks.batch_id
            WHERE one.run_id = %(run_id)s AND one.dag_id = %(dag_id)s AND chunks.tenant IS NOT NULL
        )
),

own AS MATERIALIZED (
    SELECT
        dealt.batch_id,
        entry.tenant,
        count(*) AS num_entries,
        count(*) FILTER (WHERE entry.outcome = 'deleted') AS num_deleted,
        count(*) FILTER (WHERE entry.reason = 'tenant_paused') AS num_paused
    FROM dealt
    INNER JOIN s3_retention.ledger_entries AS entry
        ON dealt.batch_id = entry.batch_id AND dealt.interval_id = entry.interval_id
    GROUP BY 1, 2
),

others AS MATERIALIZED (
    SELECT
        dealt.batch_id,
        dealt.num_commands
    FROM dealt
    LEFT JOIN own ON dealt.batch_id = own.batch_id
    GROUP BY 1, 2
    HAVING coalesce(sum(own.num_entries), 0) < dealt.num_commands
),

parts AS (
    SELECT
        own.tenant,
        own.num_deleted,
        0 AS num_quarantined,
        own.num_paused,
        0 AS num_over_cap
    FROM own
    UNION ALL
    SELECT
        commands.tenant,
        0 AS num_deleted,
        1 AS num_quarantined,
        0 AS num_paused,
        0 AS num_over_cap
    FROM others
    INNER JOIN s3_retention.commands ON others.batch_id = commands.batch_id
    INNER JOIN LATERAL (
        SELECT 1
        FROM s3_retention.quarantine
        WHERE
            quarantine.interval_id = commands.interval_id
            AND quarantine.generation = commands.generation
            AND quarantine.command_id = commands.command_id
            AND quarantine.resolved_at IS NULL
        OFFSET 0 -- noqa: AM09
    ) AS parked ON TRUE
    UNION ALL
    SELECT
        tenant_waits.tenant,
        0 AS num_deleted,
        0 AS num_quarantined,
        tenant_waits.num_paused,
        tenant_waits.num_over_cap
    FROM s3_retention.tenant_waits
    WHERE tenant_waits.interval_id = %(interval_id)s AND tenant_waits.generation = %(generation)s
),

summed AS (
    SELECT
        parts.tenant,
        sum(parts.num_deleted)::bigint AS num_deleted,
        sum(parts.num_quarantined)::bigint AS num_quarantined,
        sum(parts.num_paused)::bigint AS num_paused,
        sum(parts.num_over_cap)::bigint AS num_over_cap
    FROM parts
    WHERE parts.tenant IS NOT NULL
    GROUP BY 1
    HAVING sum(parts.num_deleted + parts.num_quarantined + parts.num_paused + parts.num_over_cap) > 0
),

ranked AS (
    SELECT
        summed.*,
        row_number() OVER (
            ORDER BY
                summed.num_paused = 0,
                summed.num_deleted + summed.num_quarantined + summed.num_paused + summed.num_over_cap DESC,
                summed.tenant
        ) AS place
    FROM summed
)

SELECT
    CASE WHEN min(ranked.place) <= %(max_rows)s::bigint THEN min(ranked.tenant) END AS tenant,
    count(*) AS num_tenants,
    sum(ranked.num_deleted)::bigint AS num_deleted,
    sum(ranked.num_quarantined)::bigint AS num_quarantined,
    sum(ranked.num_paused)::bigint AS num_paused,
    sum(ranked.num_over_cap)::bigint AS num_over_cap
FROM ranked
GROUP BY least(ranked.place, %(max_rows)s::bigint + 1) -- noqa: AM06
ORDER BY min(ranked.place); -- noqa: AM06

-- name: count_redriven_commands
-- Where each row that a redrive run took stands; what it returned is told by its own events.
SELECT
    coalesce(
        quarantine.resolution, CASE WHEN batches.stopped_class IS NULL THEN 'pending' ELSE 'stopped' END
    ) AS outcome,
    CASE
        WHEN quarantine.resolution = 'kept' THEN entry.reason
        WHEN quarantine.resolution IS NULL THEN batches.stopped_class
    END AS detail,
    count(*) AS num_objects,
    sum(quarantine.size) AS num_bytes,
    0 AS num_drained
FROM s3_retention.batches
INNER JOIN s3_retention.quarantine ON batches.batch_id = quarantine.redrive_batch_id
LEFT JOIN s3_retention.ledger_entries AS entry
    ON
        quarantine.interval_id = entry.interval_id
        AND quarantine.generation = entry.generation
        AND quarantine.command_id = entry.command_id
WHERE batches.run_id = %(run_id)s AND batches.dag_id = %(dag_id)s AND batches.kind = 'redrive'
GROUP BY 1, 2
UNION ALL
SELECT
    'quarantined' AS outcome,
    events.detail,
    count(*) AS num_objects,
    sum(quarantine.size) AS num_bytes,
    0 AS num_drained
FROM s3_retention.quarantine_events AS events
INNER JOIN s3_retention.quarantine ON events.quarantine_id = quarantine.quarantine_id
WHERE events.run_id = %(run_id)s AND events.dag_id = %(dag_id)s AND events.event = 'returned'
GROUP BY 1, 2
ORDER BY 1, 2;

-- name: list_pending_commands
-- Commands dealt to a run that are neither settled, in quarantine nor stopped: why it does not balance.
SELECT
    todo.bucket,
    todo.key,
    encode(todo.operation_id, 'hex') AS operation_id,
    batches.batch_id,
    batches.map_index
FROM s3_retention.batches
INNER JOIN s3_retention.unfinished_commands AS todo ON batches.batch_id = todo.batch_id
WHERE
    batches.run_id = %(run_id)s
    AND batches.dag_id = %(dag_id)s
    AND batches.stopped_class IS NULL
UNION ALL
SELECT
    held.bucket,
    held.key,
    encode(held.operation_id, 'hex') AS operation_id,
    batches.batch_id,
    batches.map_index
FROM s3_retention.batches
INNER JOIN s3_retention.quarantine AS held ON batches.batch_id = held.redrive_batch_id
WHERE
    batches.run_id = %(run_id)s
    AND batches.dag_id = %(dag_id)s
    AND batches.stopped_class IS NULL
    AND held.resolved_at IS NULL
ORDER BY 1, 2
LIMIT %(max_rows)s;
