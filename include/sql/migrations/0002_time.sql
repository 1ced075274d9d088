-- Time: the ticks of each schedule, those that did not run, findings, and the passes of the watch.
-- Alembic runs this file in one transaction.

-- Batches -------------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.batches ADD COLUMN dealt_at timestamptz;
ALTER TABLE s3_retention.batches ADD COLUMN released_at timestamptz;
COMMENT ON COLUMN s3_retention.batches.dealt_at IS
'When the batch was dealt to the run that is named.';
COMMENT ON COLUMN s3_retention.batches.released_at IS
'When the last lease was given back, or had run out. With claimed_until: since when no one works on it.';

-- Schedules -----------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.schedules (
    policy text PRIMARY KEY,
    dag_id text NOT NULL,
    timetable text,
    series_started_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    last_tick_at timestamptz NOT NULL,
    last_interval_starts_at timestamptz NOT NULL,
    last_interval_ends_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    CHECK (last_interval_starts_at <= last_interval_ends_at)
);
COMMENT ON TABLE s3_retention.schedules IS
'Up to which tick each policy is accounted for. It outlives the runs that Airflow purges.';
COMMENT ON COLUMN s3_retention.schedules.timetable IS
'The cron fields and the time zone of the policy; NULL: no tick is expected (manual, or simulate).';
COMMENT ON COLUMN s3_retention.schedules.series_started_at IS
'Since when this timetable counts. A changed one starts anew: ticks before it are not looked for.';
COMMENT ON COLUMN s3_retention.schedules.last_tick_at IS
'run_after of the last tick that ran or was flagged; the start of the series before there is one.';

-- Missed intervals ----------------------------------------------------------------------------------------
CREATE TABLE s3_retention.missed_intervals (
    policy text NOT NULL,
    due_at timestamptz NOT NULL,
    cause text NOT NULL CHECK (
        cause IN ('paused', 'no_scheduler_heartbeat', 'max_active_runs', 'no_policy_file', 'unknown')
    ),
    flagged_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    flagged_by text NOT NULL,
    resolved_at timestamptz,
    PRIMARY KEY (policy, due_at)
);
CREATE INDEX missed_intervals_open ON s3_retention.missed_intervals (
    policy, due_at
) WHERE resolved_at IS NULL;
COMMENT ON TABLE s3_retention.missed_intervals IS
'Ticks that did not run. A row is written once; after that only resolved_at is set, once.';
COMMENT ON COLUMN s3_retention.missed_intervals.due_at IS 'run_after of the tick.';
COMMENT ON COLUMN s3_retention.missed_intervals.resolved_at IS
'When a later run had covered its time, or it had run late after all.';

CREATE FUNCTION s3_retention.missed_interval_resolves_once() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF tg_op = 'UPDATE' AND old.resolved_at IS NULL AND new.resolved_at IS NOT NULL
    AND (new.policy, new.due_at, new.cause, new.flagged_at, new.flagged_by)
    = (old.policy, old.due_at, old.cause, old.flagged_at, old.flagged_by) THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION 'table % only takes resolved_at, once: % is refused', tg_table_name, tg_op
    USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER missed_intervals_resolve_once BEFORE UPDATE OR DELETE ON s3_retention.missed_intervals
FOR EACH ROW EXECUTE FUNCTION s3_retention.missed_interval_resolves_once();
CREATE TRIGGER missed_intervals_not_truncated BEFORE TRUNCATE ON s3_retention.missed_intervals
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Findings ------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.findings (
    finding_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy text,
    kind text NOT NULL,
    subject text NOT NULL DEFAULT '',
    detail jsonb NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    last_seen_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    notified_at timestamptz,
    closed_at timestamptz,
    CHECK (opened_at <= last_seen_at),
    CHECK (last_seen_at <= closed_at)
);
CREATE UNIQUE INDEX findings_one_open ON s3_retention.findings (coalesce(policy, ''), kind, subject)
WHERE closed_at IS NULL;
COMMENT ON TABLE s3_retention.findings IS
'What the watch found that a person should know. Opened once, closed by the watch when it has healed.';
COMMENT ON COLUMN s3_retention.findings.subject IS
'What it is about within policy and kind, such as a failure class; empty where there is but one.';
COMMENT ON COLUMN s3_retention.findings.notified_at IS
'When [s3_retention] on_finding had taken it; NULL: not yet, or no notifier is set.';

-- Passes of the watch -------------------------------------------------------------------------------------
CREATE TABLE s3_retention.watch_passes (
    pass_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL,
    did jsonb NOT NULL,
    passed_at timestamptz NOT NULL DEFAULT s3_retention.clock()
);
CREATE INDEX watch_passes_time ON s3_retention.watch_passes (passed_at);
COMMENT ON TABLE s3_retention.watch_passes IS
'What each pass of the watch did. A gap in it says that nothing was scheduled then. Append-only.';

CREATE TRIGGER watch_passes_append_only BEFORE UPDATE OR DELETE ON s3_retention.watch_passes
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER watch_passes_not_truncated BEFORE TRUNCATE ON s3_retention.watch_passes
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON
s3_retention.schedules, s3_retention.missed_intervals, s3_retention.findings, s3_retention.watch_passes
TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON
s3_retention.schedules, s3_retention.missed_intervals, s3_retention.findings, s3_retention.watch_passes
TO s3_retention_writer;
GRANT UPDATE (dealt_at, released_at) ON s3_retention.batches TO s3_retention_writer;
GRANT UPDATE (
    dag_id,
    timetable,
    series_started_at,
    last_tick_at,
    last_interval_starts_at,
    last_interval_ends_at,
    updated_at
) ON s3_retention.schedules TO s3_retention_writer;
GRANT UPDATE (resolved_at) ON s3_retention.missed_intervals TO s3_retention_writer;
GRANT UPDATE (detail, last_seen_at, notified_at, closed_at) ON s3_retention.findings TO s3_retention_writer;
