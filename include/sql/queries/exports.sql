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
        SELECT coalesce(sum(chunks.num_commands), 0)::bigint FROM s3_retention.chunks
        WHERE chunks.interval_id = intervals.interval_id
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
    one.settled_at
FROM s3_retention.command_outcomes AS one
WHERE one.interval_id = %(interval_id)s;
