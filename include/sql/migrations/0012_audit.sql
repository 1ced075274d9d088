-- What an auditor asks, as views: where each command stands, what was deleted, and what people did.
-- Alembic runs this file in one transaction.

-- Commands ------------------------------------------------------------------------------------------------
CREATE VIEW s3_retention.command_outcomes AS
SELECT
    commands.interval_id,
    intervals.interval_key,
    commands.policy,
    commands.policy_version,
    commands.generation,
    commands.tenant,
    commands.bucket,
    commands.key,
    commands.version_id,
    commands.etag,
    commands.size,
    commands.last_modified_at,
    commands.due_at,
    commands.operation_id,
    commands.command_id,
    commands.batch_id,
    coalesce(
        entry.outcome,
        CASE
            WHEN parked.quarantine_id IS NOT NULL THEN 'quarantined'
            WHEN batches.stopped_class IS NOT NULL THEN 'stopped'
            ELSE 'pending'
        END
    ) AS outcome,
    CASE
        WHEN entry.outcome IS NULL THEN coalesce(parked.failure_class, batches.stopped_class)
        ELSE entry.reason
    END AS reason,
    coalesce(entry.num_attempts, parked.num_attempts, 0) AS num_attempts,
    coalesce(entry.request_id, parked.request_id) AS request_id,
    entry.marker_version_id,
    entry.settled_at
FROM s3_retention.commands
INNER JOIN s3_retention.intervals ON commands.interval_id = intervals.interval_id
INNER JOIN s3_retention.batches ON commands.batch_id = batches.batch_id
LEFT JOIN s3_retention.ledger_entries AS entry
    ON
        commands.interval_id = entry.interval_id
        AND commands.generation = entry.generation
        AND commands.command_id = entry.command_id
LEFT JOIN s3_retention.quarantine AS parked
    ON
        commands.interval_id = parked.interval_id
        AND commands.generation = parked.generation
        AND commands.command_id = parked.command_id
        AND parked.resolved_at IS NULL;
COMMENT ON VIEW s3_retention.command_outcomes IS
'Each command that was ever planned, once, and where it stands now. Ask for one interval_id: all is much.';
COMMENT ON COLUMN s3_retention.command_outcomes.generation IS
'0 for the first plan of an interval; a replay has the next one.';
COMMENT ON COLUMN s3_retention.command_outcomes.outcome IS
'deleted, already_absent, changed or kept; or quarantined, stopped or pending, which are no ends.';
COMMENT ON COLUMN s3_retention.command_outcomes.reason IS
'Why it was kept; of what is quarantined or stopped, the class of the failure.';
COMMENT ON COLUMN s3_retention.command_outcomes.settled_at IS
'When it came to its end; NULL while it has none.';

-- Deletions -----------------------------------------------------------------------------------------------
CREATE VIEW s3_retention.deleted_objects AS
SELECT
    entry.settled_at AS deleted_at,
    intervals.policy,
    coalesce(replays.policy_version, intervals.policy_version) AS policy_version,
    intervals.interval_key,
    entry.tenant,
    entry.bucket,
    entry.key,
    entry.version_id,
    entry.size,
    entry.last_modified_at,
    entry.due_at,
    entry.settled_at - entry.due_at AS late_by,
    entry.marker_version_id,
    entry.operation_id,
    claimed.dag_id,
    claimed.run_id,
    restored.settled_at AS restored_at,
    restored.acted_by AS restored_by
FROM s3_retention.ledger_entries AS entry
INNER JOIN s3_retention.intervals ON entry.interval_id = intervals.interval_id
LEFT JOIN s3_retention.replays
    ON entry.interval_id = replays.interval_id AND entry.generation = replays.generation
LEFT JOIN s3_retention.claims AS claimed
    ON entry.batch_id = claimed.batch_id AND entry.fence = claimed.fence
LEFT JOIN s3_retention.restores AS restored
    ON
        entry.interval_id = restored.interval_id
        AND entry.generation = restored.generation
        AND entry.command_id = restored.command_id
        AND restored.outcome = 'restored'
WHERE entry.outcome = 'deleted';
COMMENT ON VIEW s3_retention.deleted_objects IS
'Each object that this package has deleted: by which policy and run, how late, and if it came back since.';
COMMENT ON COLUMN s3_retention.deleted_objects.late_by IS
'How long it was there after it was due: the watermark, the safety delay and all waiting are in it.';
COMMENT ON COLUMN s3_retention.deleted_objects.marker_version_id IS
'The delete marker that hides it, in a bucket with versions; NULL: it is gone for good.';
COMMENT ON COLUMN s3_retention.deleted_objects.restored_at IS
'When a restore removed that marker; NULL: none has.';

-- People --------------------------------------------------------------------------------------------------
CREATE VIEW s3_retention.acts AS
SELECT
    holds.placed_at AS acted_at,
    holds.placed_by AS acted_by,
    'placed a hold' AS act,
    concat_ws(' ', holds.scope, concat('s3://', holds.bucket, '/', holds.name)) AS subject,
    holds.reason,
    holds.dag_id,
    holds.run_id,
    NULL::bigint AS num_objects
FROM s3_retention.legal_holds AS holds
UNION ALL
SELECT
    holds.lifted_at AS acted_at,
    holds.lifted_by AS acted_by,
    'lifted a hold' AS act,
    concat_ws(' ', holds.scope, concat('s3://', holds.bucket, '/', holds.name)) AS subject,
    holds.lift_reason AS reason,
    NULL AS dag_id,
    NULL AS run_id,
    NULL AS num_objects
FROM s3_retention.legal_holds AS holds
WHERE holds.lifted_at IS NOT NULL
UNION ALL
SELECT
    switches.set_at AS acted_at,
    switches.set_by AS acted_by,
    'stopped deletes' AS act,
    coalesce(switches.policy, 'every policy') AS subject,
    switches.reason,
    switches.dag_id,
    switches.run_id,
    NULL AS num_objects
FROM s3_retention.kill_switches AS switches
UNION ALL
SELECT
    switches.lifted_at AS acted_at,
    switches.lifted_by AS acted_by,
    'resumed deletes' AS act,
    coalesce(switches.policy, 'every policy') AS subject,
    switches.lift_reason AS reason,
    NULL AS dag_id,
    NULL AS run_id,
    NULL AS num_objects
FROM s3_retention.kill_switches AS switches
WHERE switches.lifted_at IS NOT NULL
UNION ALL
SELECT
    approvals.decided_at AS acted_at,
    approvals.decided_by AS acted_by,
    concat(approvals.decision, ' a plan') AS act,
    intervals.interval_key AS subject,
    encode(approvals.plan_hash, 'hex') AS reason,
    approvals.dag_id,
    approvals.decided_in_run AS run_id,
    intervals.num_discovered AS num_objects
FROM s3_retention.approvals
INNER JOIN s3_retention.intervals ON approvals.interval_id = intervals.interval_id
WHERE approvals.decision IN ('approved', 'rejected')
UNION ALL
SELECT
    min(events.happened_at) AS acted_at,
    events.acted_by,
    concat(events.event, ' commands') AS act,
    parked.policy AS subject,
    events.note AS reason,
    events.dag_id,
    events.run_id,
    count(*) AS num_objects
FROM s3_retention.quarantine_events AS events
INNER JOIN s3_retention.quarantine AS parked ON events.quarantine_id = parked.quarantine_id
WHERE events.event IN ('redriven', 'waived')
GROUP BY events.acted_by, events.event, parked.policy, events.note, events.dag_id, events.run_id
UNION ALL
SELECT
    replays.first_claimed_at AS acted_at,
    replays.acted_by,
    'replayed an interval' AS act,
    intervals.interval_key AS subject,
    NULL AS reason,
    NULL AS dag_id,
    NULL AS run_id,
    replays.num_discovered AS num_objects
FROM s3_retention.replays
INNER JOIN s3_retention.intervals ON replays.interval_id = intervals.interval_id
UNION ALL
SELECT
    min(restores.settled_at) AS acted_at,
    restores.acted_by,
    'restored objects' AS act,
    concat('s3://', restores.bucket) AS subject,
    restores.note AS reason,
    restores.dag_id,
    restores.run_id,
    count(*) AS num_objects
FROM s3_retention.restores
WHERE restores.outcome = 'restored'
GROUP BY restores.acted_by, restores.bucket, restores.note, restores.dag_id, restores.run_id;
COMMENT ON VIEW s3_retention.acts IS
'What people did, once for each run: holds, stops, answers to plans, redrives, waivers, replays, restores.';
COMMENT ON COLUMN s3_retention.acts.acted_by IS
'The user as Airflow knew them, or the role of the database; NULL where Airflow did not say.';
COMMENT ON COLUMN s3_retention.acts.reason IS
'What they wrote; of an answer to a plan, the hash of the plan that they were shown.';

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.command_outcomes, s3_retention.deleted_objects, s3_retention.acts
TO s3_retention_writer, s3_retention_reader;
