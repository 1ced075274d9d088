-- name: find_exported_interval
-- One interval, as its manifest describes it.
SELECT
    intervals.interval_id,
    intervals.interval_key,
    intervals.policy,
    intervals.policy_version,
    policy_versions.rules_hash,
    intervals.starts_at,
    intervals.ends_at,
    intervals.state,
    intervals.planned_at,
    intervals.completed_at,
    intervals.num_scanned,
    intervals.num_kept_by_reason,
    (
        SELECT balance.num_discovered::bigint FROM s3_retention.balance
        WHERE balance.interval_id = intervals.interval_id
    ) AS num_planned,
    s3_retention.clock() AS exported_at
FROM s3_retention.intervals
LEFT JOIN s3_retention.policy_versions
    ON
        intervals.policy = policy_versions.policy
        AND intervals.policy_version = policy_versions.policy_version
WHERE intervals.interval_key = %(interval_key)s;

-- name: list_exported_plans
-- The plans of an interval: its first, and one for each replay.
SELECT
    plans.generation,
    encode(s3_retention.plan_hash(%(interval_id)s, plans.generation), 'hex') AS plan_hash
FROM (
    SELECT DISTINCT chunks.generation FROM s3_retention.chunks
    WHERE chunks.interval_id = %(interval_id)s
) AS plans
ORDER BY plans.generation;

-- name: stream_command_outcomes
-- Every command of an interval, replays included; ids in hex, so that all formats write them alike.
-- Of a policy of rows, what became of each row.
WITH gone AS (
    SELECT
        row_entries.generation,
        row_entries.command_id,
        string_agg(
            row_entries.row_id || ' ' || row_entries.outcome, ', ' ORDER BY row_entries.row_id
        ) AS row_outcomes
    FROM s3_retention.row_entries
    WHERE row_entries.interval_id = %(interval_id)s
    GROUP BY row_entries.generation, row_entries.command_id
)

SELECT
    one.interval_key,
    one.policy,
    one.policy_version,
    one.generation,
    one.tenant,
    one.bucket,
    one.key,
    one.version_id,
    one.etag,
    one.size,
    one.last_modified_at,
    one.due_at,
    encode(one.operation_id, 'hex') AS operation_id,
    encode(one.command_id, 'hex') AS command_id,
    one.batch_id,
    one.outcome,
    one.reason,
    one.num_attempts,
    one.request_id,
    one.marker_version_id,
    one.settled_at,
    gone.row_outcomes
FROM s3_retention.command_outcomes AS one
LEFT JOIN gone ON one.generation = gone.generation AND one.command_id = gone.command_id
WHERE one.interval_id = %(interval_id)s;
