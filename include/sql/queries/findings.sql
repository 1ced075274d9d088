-- name: count_missed_open
-- Missed intervals that no later run has covered yet.
SELECT
    missed_intervals.policy,
    count(*) AS num_missed,
    min(missed_intervals.due_at) AS oldest_at,
    max(missed_intervals.due_at) AS newest_at,
    array_agg(DISTINCT missed_intervals.cause ORDER BY missed_intervals.cause) AS causes
FROM s3_retention.missed_intervals
WHERE missed_intervals.resolved_at IS NULL
GROUP BY missed_intervals.policy;

-- name: list_watermark_ages
-- How far each policy is, and when its first interval was claimed: before that it cannot be behind.
SELECT
    watermarks.policy,
    watermarks.completed_through,
    min(intervals.first_claimed_at) AS first_claimed_at
FROM s3_retention.watermarks
LEFT JOIN s3_retention.intervals ON watermarks.policy = intervals.policy
GROUP BY watermarks.policy;

-- name: count_quarantine_open
-- What waits in quarantine, by class.
SELECT
    quarantine.policy,
    quarantine.failure_class,
    count(*) AS num_commands,
    min(quarantine.first_failed_at) AS oldest_at
FROM s3_retention.quarantine
WHERE quarantine.resolved_at IS NULL
GROUP BY quarantine.policy, quarantine.failure_class;

-- name: list_last_planned
-- The last planned interval of each policy: the stragglers that it found, and from which due time on its
-- scan saw an object wait for a later one.
SELECT
    watermarks.policy,
    last_planned.interval_key,
    last_planned.num_stragglers,
    last_planned.next_due_at
FROM s3_retention.watermarks
CROSS JOIN LATERAL (
    SELECT
        intervals.interval_key,
        intervals.num_stragglers,
        intervals.next_due_at
    FROM s3_retention.intervals
    WHERE intervals.policy = watermarks.policy AND intervals.state <> 'claimed'
    ORDER BY intervals.interval_id DESC
    LIMIT 1
) AS last_planned;

-- name: list_stuck_intervals
-- Intervals whose scan has begun and is in nobody's hands: it failed, or its run died.
SELECT
    intervals.policy,
    intervals.interval_id,
    intervals.interval_key,
    intervals.claimed_by,
    intervals.first_claimed_at
FROM s3_retention.intervals
WHERE
    intervals.state = 'claimed'
    AND (intervals.claimed_until IS NULL OR intervals.claimed_until <= s3_retention.clock());

-- name: count_stopped_batches
-- Batches that a fault of the store, the identity or the policy stopped, and that no run has resumed.
SELECT
    batches.policy,
    batches.stopped_class,
    count(*) AS num_batches,
    sum(batches.num_commands) AS num_commands,
    min(batches.stopped_message) AS message
FROM s3_retention.batches
WHERE batches.closed_at IS NULL AND batches.stopped_class IS NOT NULL AND batches.kind = 'cleanup'
GROUP BY batches.policy, batches.stopped_class;

-- name: count_open_commands
-- Planned commands in batches that have not closed, and since when the oldest of them are planned.
SELECT
    batches.policy,
    count(*) AS num_batches,
    sum(batches.num_commands) AS num_commands,
    min(coalesce(replays.planned_at, intervals.planned_at)) AS oldest_at
FROM s3_retention.batches
INNER JOIN s3_retention.intervals ON batches.interval_id = intervals.interval_id
LEFT JOIN s3_retention.replays
    ON batches.interval_id = replays.interval_id AND batches.generation = replays.generation
WHERE batches.closed_at IS NULL
GROUP BY batches.policy;

-- name: count_quarantine_old
-- Rows that have waited in quarantine since before the time that is asked for, by policy. A lock that has not
-- ended is waited for, however long it is.
SELECT
    quarantine.policy,
    count(*) AS num_commands,
    min(quarantine.first_failed_at) AS oldest_at
FROM s3_retention.quarantine
INNER JOIN unnest(%(policies)s::text[], %(befores)s::timestamptz[]) AS asked (policy, before_at)
    ON quarantine.policy = asked.policy AND quarantine.first_failed_at <= asked.before_at
WHERE
    quarantine.resolved_at IS NULL
    AND (quarantine.not_before IS NULL OR quarantine.not_before <= s3_retention.clock())
GROUP BY quarantine.policy;

-- name: list_unfinished_replays
-- Replays that nobody holds: their runs are over, and what is left waits for the same replay to be asked for
-- again.
SELECT
    replays.policy,
    replays.interval_id,
    replays.generation,
    intervals.interval_key,
    replays.claimed_by,
    replays.first_claimed_at,
    open_batches.num_commands
FROM s3_retention.replays
INNER JOIN s3_retention.intervals ON replays.interval_id = intervals.interval_id
CROSS JOIN
    LATERAL (
        SELECT
            coalesce(sum(batches.num_commands), 0) AS num_commands,
            max(batches.claimed_until) AS held_until
        FROM s3_retention.batches
        WHERE
            batches.interval_id = replays.interval_id
            AND batches.generation = replays.generation
            AND batches.closed_at IS NULL
    ) AS open_batches
WHERE
    replays.state = 'planned'
    AND coalesce(greatest(replays.claimed_until, open_batches.held_until), '-infinity')
    <= s3_retention.clock();

-- name: list_waiting_plans
-- Plans over a limit that nobody has answered yet.
SELECT
    intervals.policy,
    intervals.interval_key,
    intervals.num_discovered,
    approvals.dag_id,
    approvals.run_id,
    approvals.asked_at
FROM s3_retention.approvals
INNER JOIN s3_retention.intervals ON approvals.interval_id = intervals.interval_id
WHERE approvals.decision IS NULL;

-- name: list_rejected_plans
-- Of each policy the last plan that was asked about, where the answer was no: healed when a later plan of the
-- policy was approved, or small.
SELECT DISTINCT ON (intervals.policy) -- noqa: LT09
    intervals.policy,
    intervals.interval_key,
    intervals.num_discovered,
    approvals.decision,
    approvals.decided_by,
    approvals.decided_at
FROM s3_retention.approvals
INNER JOIN s3_retention.intervals ON approvals.interval_id = intervals.interval_id
WHERE
    approvals.decision IN ('rejected', 'timed_out')
    AND NOT EXISTS (
        SELECT 1
        FROM s3_retention.intervals AS later
        LEFT JOIN s3_retention.approvals AS answer
            ON later.interval_id = answer.interval_id AND answer.generation = 0
        WHERE
            later.policy = intervals.policy
            AND later.interval_id > intervals.interval_id
            AND later.state <> 'claimed'
            AND (answer.interval_id IS NULL OR answer.decision = 'approved')
    )
ORDER BY intervals.policy ASC, intervals.interval_id DESC;

-- name: list_late_runs
-- Late runs that have not reported and whose time no later run has covered, and each that was never found
-- yet: one that has ended in the meantime is told, too.
SELECT
    late_runs.policy,
    late_runs.run_id,
    late_runs.due_at,
    late_runs.deadline_at,
    late_runs.state,
    ended.ended_at
FROM s3_retention.late_runs
INNER JOIN unnest(%(policies)s::text[], %(safety_delays)s::interval[]) AS asked (policy, safety_delay)
    ON late_runs.policy = asked.policy
LEFT JOIN s3_retention.watermarks ON late_runs.policy = watermarks.policy
CROSS JOIN
    LATERAL (
        SELECT min(run_reports.reported_at) AS ended_at
        FROM s3_retention.run_reports
        WHERE run_reports.run_id = late_runs.run_id AND run_reports.dag_id = late_runs.dag_id
    ) AS ended
WHERE
    (
        ended.ended_at IS NULL
        AND coalesce(watermarks.completed_through, '-infinity') < late_runs.due_at - asked.safety_delay
    )
    OR NOT EXISTS (
        SELECT 1 FROM s3_retention.findings
        WHERE
            findings.kind = 'late_run'
            AND findings.subject = late_runs.run_id
            AND findings.policy = late_runs.policy
    );

-- name: see_findings
-- Opens what is new and freshens what is open: one open row for each policy, kind and subject.
INSERT INTO s3_retention.findings (policy, kind, subject, detail, opened_at, last_seen_at)
SELECT
    seen.policy,
    seen.kind,
    seen.subject,
    seen.detail,
    %(now)s AS opened_at,
    %(now)s AS last_seen_at
FROM
    unnest(
        %(policies)s::text[], %(kinds)s::text[], %(subjects)s::text[], %(details)s::jsonb[]
    ) AS seen (policy, kind, subject, detail)
ORDER BY seen.policy, seen.kind, seen.subject
ON CONFLICT (coalesce(policy, ''), kind, subject) WHERE closed_at IS NULL
DO UPDATE
    SET
        detail = excluded.detail,
        last_seen_at = greatest(findings.last_seen_at, excluded.last_seen_at)
RETURNING finding_id, opened_at = %(now)s AS is_new;

-- name: close_healed
-- What is open and was not seen this time has healed.
UPDATE s3_retention.findings
SET closed_at = greatest(findings.last_seen_at, %(now)s)
WHERE findings.closed_at IS NULL AND findings.finding_id <> all(%(finding_ids)s::bigint[]);

-- name: list_unnotified
-- Open findings that no notifier has taken yet, oldest first.
SELECT
    findings.finding_id,
    findings.policy,
    findings.kind,
    findings.subject,
    findings.detail,
    findings.opened_at
FROM s3_retention.findings
WHERE findings.closed_at IS NULL AND findings.notified_at IS NULL
ORDER BY findings.finding_id;

-- name: mark_notified
-- The notifier has taken it.
UPDATE s3_retention.findings
SET notified_at = s3_retention.clock()
WHERE finding_id = %(finding_id)s;
