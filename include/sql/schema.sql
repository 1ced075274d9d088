-- The ledger schema as the migrations make it. Nothing runs this file: it is written by
-- `python -m sandbox.snapshot`, and a test holds it against the migrations.

CREATE SCHEMA s3_retention;

CREATE FUNCTION s3_retention.approval_decides_once() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF tg_op = 'UPDATE' AND old.decision IS NULL AND new.decision IS NOT NULL
    AND (new.interval_id, new.generation, new.plan_hash, new.over_limits, new.dag_id, new.run_id, new.asked_at)
    = (old.interval_id, old.generation, old.plan_hash, old.over_limits, old.dag_id, old.run_id, old.asked_at)
    THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION 'table % only takes a decision, once: % is refused', tg_table_name, tg_op
    USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION s3_retention.chunk_hash(bucket text, keys text[], version_ids text[], etags text[], sizes bigint[], last_modified_ats timestamp with time zone[], due_ats timestamp with time zone[]) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN sha256(((convert_to((((((array_to_json(ARRAY[bucket]))::text || (array_to_json(keys))::text) || (array_to_json(version_ids))::text) || (array_to_json(etags))::text) || (array_to_json(sizes))::text), 'UTF8'::name) || array_send(last_modified_ats)) || array_send(due_ats)));

COMMENT ON FUNCTION s3_retention.chunk_hash(bucket text, keys text[], version_ids text[], etags text[], sizes bigint[], last_modified_ats timestamp with time zone[], due_ats timestamp with time zone[]) IS 'SHA-256 of one chunk: bucket, keys, version ids, ETags, sizes, last-modified times and due times.';

CREATE FUNCTION s3_retention.clock() RETURNS timestamp with time zone
    LANGUAGE sql
    RETURN clock_timestamp();

COMMENT ON FUNCTION s3_retention.clock() IS 'The only clock of the package. Every lease, cutoff and stamp comes from here, never from a worker.';

CREATE FUNCTION s3_retention.command_id(operation_id bytea, version_id text, etag text, last_modified_at timestamp with time zone, size bigint) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN sha256(convert_to(((encode(operation_id, 'hex'::text) || '
'::text) || CASE WHEN (version_id IS NOT NULL) THEN ('version:'::text || version_id) ELSE ((((('etag:'::text || COALESCE(etag, ''::text)) || '
'::text) || (((EXTRACT(epoch FROM last_modified_at) * (1000000)::numeric))::bigint)::text) || '
'::text) || (size)::text) END), 'UTF8'::name));

COMMENT ON FUNCTION s3_retention.command_id(operation_id bytea, version_id text, etag text, last_modified_at timestamp with time zone, size bigint) IS 'An operation and the incarnation it was planned for; the same as core.command.command_id.';

CREATE FUNCTION s3_retention.ensure_ledger_partition(for_interval_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    width CONSTANT bigint := 1000;
    lower_bound CONSTANT bigint := for_interval_id / width * width;
    partition_name CONSTANT text := 'ledger_entries_' || lower_bound;
BEGIN
    IF to_regclass('s3_retention.' || partition_name) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('s3_retention.' || partition_name, 0));
    IF to_regclass('s3_retention.' || partition_name) IS NOT NULL THEN
        RETURN;
    END IF;
    -- Attached, not created in place: that needs no lock that stops the settles of running batches.
    EXECUTE format(
        'CREATE TABLE s3_retention.%I (LIKE s3_retention.ledger_entries INCLUDING ALL)', partition_name
    );
    EXECUTE format(
        'ALTER TABLE s3_retention.ledger_entries ATTACH PARTITION s3_retention.%I '
        'FOR VALUES FROM (%s) TO (%s)',
        partition_name, lower_bound, lower_bound + width
    );
    -- Row triggers come with the attachment, statement triggers do not.
    EXECUTE format(
        'CREATE TRIGGER not_truncated BEFORE TRUNCATE ON s3_retention.%I '
        'FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change()',
        partition_name
    );
END $$;

COMMENT ON FUNCTION s3_retention.ensure_ledger_partition(for_interval_id bigint) IS 'Makes the partition of 1,000 intervals to which this one belongs; runs as the owner of the schema.';

CREATE FUNCTION s3_retention.is_lifted_once() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF tg_op = 'UPDATE' AND old.lifted_at IS NULL AND new.lifted_at IS NOT NULL
    AND (to_jsonb(new) - '{lifted_by,lifted_at,lift_reason}'::text[])
    = (to_jsonb(old) - '{lifted_by,lifted_at,lift_reason}'::text[]) THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION 'table % is only written and lifted, each once: % is refused', tg_table_name, tg_op
    USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION s3_retention.missed_interval_resolves_once() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF tg_op = 'UPDATE' AND old.resolved_at IS NULL AND new.resolved_at IS NOT NULL
    AND (new.policy, new.due_at, new.cause, new.flagged_at, new.flagged_by)
    = (old.policy, old.due_at, old.cause, old.flagged_at, old.flagged_by) THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION 'table % only takes resolved_at, once: % is refused', tg_table_name, tg_op
    USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION s3_retention.operation_id(bucket text, key text, policy_version text) RETURNS bytea
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN sha256(convert_to(((((bucket || '
'::text) || key) || '
'::text) || policy_version), 'UTF8'::name));

COMMENT ON FUNCTION s3_retention.operation_id(bucket text, key text, policy_version text) IS 'SHA-256 over bucket, key and policy version joined by newlines; the same as core.command.operation_id.';

CREATE TABLE s3_retention.chunks (
    chunk_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    chunk_number integer NOT NULL,
    tenant text,
    bucket text NOT NULL,
    keys text[] NOT NULL COLLATE pg_catalog."C",
    version_ids text[] NOT NULL,
    etags text[] NOT NULL,
    sizes bigint[] NOT NULL,
    last_modified_ats timestamp with time zone[] NOT NULL,
    due_ats timestamp with time zone[] NOT NULL,
    group_keys text[] NOT NULL,
    num_commands integer NOT NULL,
    closed_at timestamp with time zone,
    CONSTRAINT chunks_check CHECK ((cardinality(keys) = num_commands)),
    CONSTRAINT chunks_check1 CHECK ((cardinality(version_ids) = num_commands)),
    CONSTRAINT chunks_check2 CHECK ((cardinality(etags) = num_commands)),
    CONSTRAINT chunks_check3 CHECK ((cardinality(sizes) = num_commands)),
    CONSTRAINT chunks_check4 CHECK ((cardinality(last_modified_ats) = num_commands)),
    CONSTRAINT chunks_check5 CHECK ((cardinality(due_ats) = num_commands)),
    CONSTRAINT chunks_check6 CHECK ((cardinality(group_keys) = num_commands)),
    CONSTRAINT chunks_num_commands_check CHECK (((num_commands >= 1) AND (num_commands <= 1000)))
);
ALTER TABLE ONLY s3_retention.chunks ALTER COLUMN etags SET STORAGE EXTERNAL;

COMMENT ON TABLE s3_retention.chunks IS 'Up to 1,000 commands of one tenant, one request to the store, as arrays; the view commands shows each.';

CREATE FUNCTION s3_retention.plan_hash(of_interval_id bigint, of_generation integer) RETURNS bytea
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT sha256(COALESCE(string_agg(s3_retention.chunk_hash(chunks.bucket, chunks.keys, chunks.version_ids, chunks.etags, chunks.sizes, chunks.last_modified_ats, chunks.due_ats), '\x'::bytea ORDER BY chunks.chunk_number), '\x'::bytea)) AS plan_hash
    FROM s3_retention.chunks
   WHERE ((chunks.interval_id = plan_hash.of_interval_id) AND (chunks.generation = plan_hash.of_generation));
END;

COMMENT ON FUNCTION s3_retention.plan_hash(of_interval_id bigint, of_generation integer) IS 'SHA-256 over the hashes of the chunks of a plan, in the order of their numbers.';

CREATE FUNCTION s3_retention.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only: % is refused', tg_table_name, tg_op
    USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION s3_retention.refuse_other_version() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'interval % is planned: its policy version is part of the id of each of its commands',
        old.interval_id
    USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION s3_retention.watermark_forward_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF new.position < old.position OR new.completed_through < old.completed_through THEN
        RAISE EXCEPTION 'the watermark of policy % only moves forward', old.policy
        USING ERRCODE = 'check_violation';
    END IF;
    RETURN new;
END $$;

CREATE TABLE s3_retention.aborted_uploads (
    bucket text NOT NULL,
    upload_id text NOT NULL,
    policy text NOT NULL,
    interval_id bigint NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    initiated_at timestamp with time zone NOT NULL,
    outcome text NOT NULL,
    request_id text,
    aborted_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    CONSTRAINT aborted_uploads_outcome_check CHECK ((outcome = ANY (ARRAY['aborted'::text, 'already_absent'::text])))
);

COMMENT ON TABLE s3_retention.aborted_uploads IS 'One row per unfinished multipart upload that a run has aborted. Append-only.';

COMMENT ON COLUMN s3_retention.aborted_uploads.outcome IS 'already_absent: it had ended, or been aborted, between the listing and the abort.';

CREATE TABLE s3_retention.legal_holds (
    hold_id bigint NOT NULL,
    bucket text NOT NULL,
    scope text NOT NULL,
    name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL,
    starts_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    ends_at timestamp with time zone,
    placed_by text DEFAULT CURRENT_USER NOT NULL,
    placed_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    dag_id text,
    run_id text,
    lifted_by text,
    lifted_at timestamp with time zone,
    lift_reason text,
    CONSTRAINT legal_holds_bucket_check CHECK ((bucket <> ''::text)),
    CONSTRAINT legal_holds_check CHECK (((scope = 'bucket'::text) = (name = ''::text))),
    CONSTRAINT legal_holds_check1 CHECK ((ends_at > starts_at)),
    CONSTRAINT legal_holds_check2 CHECK ((num_nulls(dag_id, run_id) = ANY (ARRAY[0, 2]))),
    CONSTRAINT legal_holds_check3 CHECK ((num_nulls(lifted_by, lifted_at, lift_reason) = ANY (ARRAY[0, 3]))),
    CONSTRAINT legal_holds_lift_reason_check CHECK ((btrim(lift_reason) <> ''::text)),
    CONSTRAINT legal_holds_reason_check CHECK ((btrim(reason) <> ''::text)),
    CONSTRAINT legal_holds_scope_check CHECK ((scope = ANY (ARRAY['bucket'::text, 'prefix'::text, 'key'::text])))
);

COMMENT ON TABLE s3_retention.legal_holds IS 'Objects that no policy may delete, until ends_at or until lifted. Written once, lifted once.';

COMMENT ON COLUMN s3_retention.legal_holds.name IS 'The key or the prefix, byte for byte; empty for a whole bucket.';

COMMENT ON COLUMN s3_retention.legal_holds.ends_at IS 'NULL: until it is lifted.';

CREATE VIEW s3_retention.active_holds AS
 SELECT hold_id,
    bucket,
    scope,
    name,
    reason,
    starts_at,
    ends_at,
    placed_by,
    placed_at
   FROM s3_retention.legal_holds
  WHERE ((lifted_at IS NULL) AND (starts_at <= s3_retention.clock()) AND ((ends_at IS NULL) OR (ends_at > s3_retention.clock())));

COMMENT ON VIEW s3_retention.active_holds IS 'The legal holds in force at this moment, by the clock of the ledger.';

CREATE TABLE s3_retention.approvals (
    interval_id bigint NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    plan_hash bytea NOT NULL,
    over_limits jsonb NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    asked_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    decision text,
    decided_by text,
    decided_at timestamp with time zone,
    decided_in_run text,
    CONSTRAINT approvals_check CHECK ((num_nulls(decision, decided_at, decided_in_run) = ANY (ARRAY[0, 3]))),
    CONSTRAINT approvals_check1 CHECK (((decided_by IS NULL) OR (decision = ANY (ARRAY['approved'::text, 'rejected'::text])))),
    CONSTRAINT approvals_check2 CHECK ((asked_at <= decided_at)),
    CONSTRAINT approvals_decision_check CHECK ((decision = ANY (ARRAY['approved'::text, 'rejected'::text, 'timed_out'::text]))),
    CONSTRAINT approvals_generation_check CHECK ((generation >= 0)),
    CONSTRAINT approvals_over_limits_check CHECK ((jsonb_array_length(over_limits) >= 1)),
    CONSTRAINT approvals_plan_hash_check CHECK ((length(plan_hash) = 32))
);

COMMENT ON TABLE s3_retention.approvals IS 'Plans over a limit: asked once, decided once. While one is open, nothing of its plan is dealt.';

COMMENT ON COLUMN s3_retention.approvals.plan_hash IS 'What was asked about: plan_hash(interval_id, generation) computes it anew.';

COMMENT ON COLUMN s3_retention.approvals.over_limits IS 'Each limit that the plan exceeds: its name, the value of the plan, and the bound of the policy.';

COMMENT ON COLUMN s3_retention.approvals.decided_by IS 'Who answered, as Airflow knows; NULL where it does not, and where nobody did in time.';

COMMENT ON COLUMN s3_retention.approvals.decided_in_run IS 'The run of the same DAG in which it was answered; a later run may ask again.';

CREATE TABLE s3_retention.intervals (
    interval_id bigint NOT NULL,
    policy text NOT NULL,
    policy_version text NOT NULL,
    interval_key text NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    follows timestamp with time zone,
    state text DEFAULT 'claimed'::text NOT NULL,
    claimed_by text,
    claimed_until timestamp with time zone,
    fence bigint DEFAULT 1 NOT NULL,
    num_scanned bigint,
    num_discovered bigint,
    num_bytes numeric,
    num_stragglers bigint,
    num_kept_by_reason jsonb,
    first_claimed_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    planned_at timestamp with time zone,
    completed_at timestamp with time zone,
    next_due_at timestamp with time zone,
    largest_tenant_share double precision,
    CONSTRAINT intervals_check CHECK ((starts_at < ends_at)),
    CONSTRAINT intervals_check1 CHECK ((follows = starts_at)),
    CONSTRAINT intervals_check2 CHECK (((state = 'claimed'::text) = (planned_at IS NULL))),
    CONSTRAINT intervals_check3 CHECK (((state = 'completed'::text) = (completed_at IS NOT NULL))),
    CONSTRAINT intervals_check4 CHECK (((state <> 'completed'::text) OR (claimed_until IS NULL))),
    CONSTRAINT intervals_check5 CHECK ((next_due_at >= ends_at)),
    CONSTRAINT intervals_largest_tenant_share_check CHECK (((largest_tenant_share >= (0)::double precision) AND (largest_tenant_share <= (1)::double precision))),
    CONSTRAINT intervals_num_bytes_check CHECK ((num_bytes >= (0)::numeric)),
    CONSTRAINT intervals_num_discovered_check CHECK ((num_discovered >= 0)),
    CONSTRAINT intervals_num_scanned_check CHECK ((num_scanned >= 0)),
    CONSTRAINT intervals_num_stragglers_check CHECK ((num_stragglers >= 0)),
    CONSTRAINT intervals_state_check CHECK ((state = ANY (ARRAY['claimed'::text, 'planned'::text, 'completed'::text])))
);

COMMENT ON COLUMN s3_retention.intervals.follows IS 'The end of the interval before, which is the start of this one; NULL for the first of a policy.';

COMMENT ON COLUMN s3_retention.intervals.num_stragglers IS 'Planned objects that were due before the interval starts: still present after their deadline.';

COMMENT ON COLUMN s3_retention.intervals.next_due_at IS 'The first due time at or after the end that the scan saw: then an object waits for a later interval.';

COMMENT ON COLUMN s3_retention.intervals.largest_tenant_share IS 'Of the objects of one tenant, the part that the plan takes, where it is the largest; NULL: no tenants.';

CREATE TABLE s3_retention.kill_switches (
    switch_id bigint NOT NULL,
    policy text,
    reason text NOT NULL,
    set_by text DEFAULT CURRENT_USER NOT NULL,
    set_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    dag_id text,
    run_id text,
    lifted_by text,
    lifted_at timestamp with time zone,
    lift_reason text,
    CONSTRAINT kill_switches_check CHECK ((num_nulls(dag_id, run_id) = ANY (ARRAY[0, 2]))),
    CONSTRAINT kill_switches_check1 CHECK ((num_nulls(lifted_by, lifted_at, lift_reason) = ANY (ARRAY[0, 3]))),
    CONSTRAINT kill_switches_lift_reason_check CHECK ((btrim(lift_reason) <> ''::text)),
    CONSTRAINT kill_switches_policy_check CHECK ((policy <> ''::text)),
    CONSTRAINT kill_switches_reason_check CHECK ((btrim(reason) <> ''::text))
);

COMMENT ON TABLE s3_retention.kill_switches IS 'While a row is not lifted, nothing is deleted: running batches stop between two requests.';

COMMENT ON COLUMN s3_retention.kill_switches.policy IS 'NULL: every policy.';

CREATE TABLE s3_retention.quarantine (
    quarantine_id bigint NOT NULL,
    policy text NOT NULL,
    policy_version text NOT NULL,
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    command_id bytea NOT NULL,
    operation_id bytea NOT NULL,
    tenant text,
    bucket text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    version_id text,
    etag text,
    size bigint NOT NULL,
    last_modified_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    group_key text,
    failure_class text NOT NULL,
    code text,
    message text,
    request_id text,
    num_attempts integer NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    map_index integer NOT NULL,
    first_failed_at timestamp with time zone NOT NULL,
    last_failed_at timestamp with time zone NOT NULL,
    not_before timestamp with time zone,
    redrive_batch_id bigint,
    num_redrives integer DEFAULT 0 NOT NULL,
    resolution text,
    resolved_at timestamp with time zone,
    superseded_by bytea,
    supersedes bytea,
    is_unplanned boolean DEFAULT false NOT NULL,
    CONSTRAINT quarantine_check CHECK (((resolution IS NULL) = (resolved_at IS NULL))),
    CONSTRAINT quarantine_command_id_check CHECK ((length(command_id) = 32)),
    CONSTRAINT quarantine_num_attempts_check CHECK ((num_attempts >= 0)),
    CONSTRAINT quarantine_operation_id_check CHECK ((length(operation_id) = 32)),
    CONSTRAINT quarantine_resolution_check CHECK ((resolution = ANY (ARRAY['deleted'::text, 'already_absent'::text, 'changed'::text, 'kept'::text, 'waived'::text]))),
    CONSTRAINT quarantine_superseded_by_check CHECK ((length(superseded_by) = 32)),
    CONSTRAINT quarantine_supersedes_check CHECK ((length(supersedes) = 32))
);

COMMENT ON TABLE s3_retention.quarantine IS 'Commands that could not be ended, each with its cause and all that a redrive needs. Open until resolved.';

COMMENT ON COLUMN s3_retention.quarantine.not_before IS 'Of class locked: the plan that sees the version after this time closes the row and plans it anew.';

COMMENT ON COLUMN s3_retention.quarantine.redrive_batch_id IS 'The batch that holds the row now, or that resolved it; NULL while it waits.';

COMMENT ON COLUMN s3_retention.quarantine.resolution IS 'How it ended; waived: a person closed it undeleted, and its ledger entry is kept with that reason.';

COMMENT ON COLUMN s3_retention.quarantine.superseded_by IS 'The command that was planned in its place, by which the row was closed.';

COMMENT ON COLUMN s3_retention.quarantine.supersedes IS 'The command in whose place a redrive has made this one, since its row was corrected.';

COMMENT ON COLUMN s3_retention.quarantine.is_unplanned IS 'No plan holds it: it was made for a corrected row, or for an object without a row that an audit found.';

CREATE TABLE s3_retention.quarantine_events (
    event_id bigint NOT NULL,
    quarantine_id bigint NOT NULL,
    event text NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    acted_by text,
    detail text,
    happened_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    note text,
    CONSTRAINT quarantine_events_event_check CHECK ((event = ANY (ARRAY['quarantined'::text, 'redriven'::text, 'returned'::text, 'resolved'::text, 'superseded'::text, 'waived'::text]))),
    CONSTRAINT quarantine_events_note_check CHECK ((btrim(note) <> ''::text))
);

COMMENT ON TABLE s3_retention.quarantine_events IS 'Every failure and return of a quarantine row. Append-only.';

COMMENT ON COLUMN s3_retention.quarantine_events.note IS 'What the person who acted wrote into the form.';

CREATE TABLE s3_retention.replays (
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    policy text NOT NULL,
    policy_version text NOT NULL,
    state text DEFAULT 'claimed'::text NOT NULL,
    claimed_by text,
    claimed_until timestamp with time zone,
    fence bigint DEFAULT 1 NOT NULL,
    acted_by text,
    num_scanned bigint,
    num_discovered bigint,
    num_bytes numeric,
    num_kept_by_reason jsonb,
    first_claimed_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    planned_at timestamp with time zone,
    completed_at timestamp with time zone,
    CONSTRAINT replays_check CHECK (((state = 'claimed'::text) = (planned_at IS NULL))),
    CONSTRAINT replays_check1 CHECK (((state = 'completed'::text) = (completed_at IS NOT NULL))),
    CONSTRAINT replays_check2 CHECK (((state <> 'completed'::text) OR (claimed_until IS NULL))),
    CONSTRAINT replays_generation_check CHECK ((generation >= 1)),
    CONSTRAINT replays_num_bytes_check CHECK ((num_bytes >= (0)::numeric)),
    CONSTRAINT replays_num_discovered_check CHECK ((num_discovered >= 0)),
    CONSTRAINT replays_num_scanned_check CHECK ((num_scanned >= 0)),
    CONSTRAINT replays_state_check CHECK ((state = ANY (ARRAY['claimed'::text, 'planned'::text, 'completed'::text])))
);

COMMENT ON TABLE s3_retention.replays IS 'Second and later plans of a completed interval, bounded on both sides. The first plan is generation 0.';

COMMENT ON COLUMN s3_retention.replays.acted_by IS 'Who asked for it, as Airflow knows; NULL where it does not.';

CREATE TABLE s3_retention.restores (
    restore_id bigint NOT NULL,
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    command_id bytea NOT NULL,
    operation_id bytea NOT NULL,
    bucket text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    marker_version_id text,
    outcome text NOT NULL,
    failure_class text,
    code text,
    request_id text,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    acted_by text NOT NULL,
    note text,
    settled_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    CONSTRAINT restores_check CHECK (((outcome = 'failed'::text) = (failure_class IS NOT NULL))),
    CONSTRAINT restores_check1 CHECK (((outcome <> 'restored'::text) OR (marker_version_id IS NOT NULL))),
    CONSTRAINT restores_command_id_check CHECK ((length(command_id) = 32)),
    CONSTRAINT restores_operation_id_check CHECK ((length(operation_id) = 32)),
    CONSTRAINT restores_outcome_check CHECK ((outcome = ANY (ARRAY['restored'::text, 'already_restored'::text, 'newer_version'::text, 'marker_gone'::text, 'purged'::text, 'bucket_unversioned'::text, 'null_marker'::text, 'no_marker_recorded'::text, 'failed'::text])))
);

COMMENT ON TABLE s3_retention.restores IS 'What a restore did about each ledger entry that it selected. An entry is restored once. Append-only.';

COMMENT ON COLUMN s3_retention.restores.marker_version_id IS 'The delete marker that the ledger entry had recorded.';

CREATE TABLE s3_retention.tenant_pauses (
    pause_id bigint NOT NULL,
    policy text,
    tenant text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL,
    paused_by text DEFAULT CURRENT_USER NOT NULL,
    paused_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    dag_id text,
    run_id text,
    lifted_by text,
    lifted_at timestamp with time zone,
    lift_reason text,
    CONSTRAINT tenant_pauses_check CHECK ((num_nulls(dag_id, run_id) = ANY (ARRAY[0, 2]))),
    CONSTRAINT tenant_pauses_check1 CHECK ((num_nulls(lifted_by, lifted_at, lift_reason) = ANY (ARRAY[0, 3]))),
    CONSTRAINT tenant_pauses_lift_reason_check CHECK ((btrim(lift_reason) <> ''::text)),
    CONSTRAINT tenant_pauses_policy_check CHECK ((policy <> ''::text)),
    CONSTRAINT tenant_pauses_reason_check CHECK ((btrim(reason) <> ''::text)),
    CONSTRAINT tenant_pauses_tenant_check CHECK (((tenant <> ''::text) AND (octet_length(tenant) <= 1024)))
);

COMMENT ON TABLE s3_retention.tenant_pauses IS 'While a row is not lifted, nothing of its tenant is deleted; what is due waits. Written once, lifted once.';

COMMENT ON COLUMN s3_retention.tenant_pauses.policy IS 'NULL: every policy that tells tenants.';

COMMENT ON COLUMN s3_retention.tenant_pauses.tenant IS 'As the policy reads it, byte for byte.';

CREATE VIEW s3_retention.acts AS
 SELECT holds.placed_at AS acted_at,
    holds.placed_by AS acted_by,
    'placed a hold'::text AS act,
    concat_ws(' '::text, holds.scope, concat('s3://', holds.bucket, '/', holds.name)) AS subject,
    holds.reason,
    holds.dag_id,
    holds.run_id,
    NULL::bigint AS num_objects
   FROM s3_retention.legal_holds holds
UNION ALL
 SELECT holds.lifted_at AS acted_at,
    holds.lifted_by AS acted_by,
    'lifted a hold'::text AS act,
    concat_ws(' '::text, holds.scope, concat('s3://', holds.bucket, '/', holds.name)) AS subject,
    holds.lift_reason AS reason,
    NULL::text AS dag_id,
    NULL::text AS run_id,
    NULL::bigint AS num_objects
   FROM s3_retention.legal_holds holds
  WHERE (holds.lifted_at IS NOT NULL)
UNION ALL
 SELECT switches.set_at AS acted_at,
    switches.set_by AS acted_by,
    'stopped deletes'::text AS act,
    COALESCE(switches.policy, 'every policy'::text) AS subject,
    switches.reason,
    switches.dag_id,
    switches.run_id,
    NULL::bigint AS num_objects
   FROM s3_retention.kill_switches switches
UNION ALL
 SELECT switches.lifted_at AS acted_at,
    switches.lifted_by AS acted_by,
    'resumed deletes'::text AS act,
    COALESCE(switches.policy, 'every policy'::text) AS subject,
    switches.lift_reason AS reason,
    NULL::text AS dag_id,
    NULL::text AS run_id,
    NULL::bigint AS num_objects
   FROM s3_retention.kill_switches switches
  WHERE (switches.lifted_at IS NOT NULL)
UNION ALL
 SELECT approvals.decided_at AS acted_at,
    approvals.decided_by AS acted_by,
    concat(approvals.decision, ' a plan') AS act,
    intervals.interval_key AS subject,
    encode(approvals.plan_hash, 'hex'::text) AS reason,
    approvals.dag_id,
    approvals.decided_in_run AS run_id,
    intervals.num_discovered AS num_objects
   FROM (s3_retention.approvals
     JOIN s3_retention.intervals ON ((approvals.interval_id = intervals.interval_id)))
  WHERE (approvals.decision = ANY (ARRAY['approved'::text, 'rejected'::text]))
UNION ALL
 SELECT min(events.happened_at) AS acted_at,
    events.acted_by,
    concat(events.event, ' commands') AS act,
    parked.policy AS subject,
    events.note AS reason,
    events.dag_id,
    events.run_id,
    count(*) AS num_objects
   FROM (s3_retention.quarantine_events events
     JOIN s3_retention.quarantine parked ON ((events.quarantine_id = parked.quarantine_id)))
  WHERE (events.event = ANY (ARRAY['redriven'::text, 'waived'::text]))
  GROUP BY events.acted_by, events.event, parked.policy, events.note, events.dag_id, events.run_id
UNION ALL
 SELECT replays.first_claimed_at AS acted_at,
    replays.acted_by,
    'replayed an interval'::text AS act,
    intervals.interval_key AS subject,
    NULL::text AS reason,
    NULL::text AS dag_id,
    NULL::text AS run_id,
    replays.num_discovered AS num_objects
   FROM (s3_retention.replays
     JOIN s3_retention.intervals ON ((replays.interval_id = intervals.interval_id)))
UNION ALL
 SELECT min(restores.settled_at) AS acted_at,
    restores.acted_by,
    'restored objects'::text AS act,
    concat('s3://', restores.bucket) AS subject,
    restores.note AS reason,
    restores.dag_id,
    restores.run_id,
    count(*) AS num_objects
   FROM s3_retention.restores
  WHERE (restores.outcome = 'restored'::text)
  GROUP BY restores.acted_by, restores.bucket, restores.note, restores.dag_id, restores.run_id
UNION ALL
 SELECT pauses.paused_at AS acted_at,
    pauses.paused_by AS acted_by,
    'paused a tenant'::text AS act,
    concat_ws(' of '::text, pauses.tenant, COALESCE(pauses.policy, 'every policy'::text)) AS subject,
    pauses.reason,
    pauses.dag_id,
    pauses.run_id,
    NULL::bigint AS num_objects
   FROM s3_retention.tenant_pauses pauses
UNION ALL
 SELECT pauses.lifted_at AS acted_at,
    pauses.lifted_by AS acted_by,
    'resumed a tenant'::text AS act,
    concat_ws(' of '::text, pauses.tenant, COALESCE(pauses.policy, 'every policy'::text)) AS subject,
    pauses.lift_reason AS reason,
    NULL::text AS dag_id,
    NULL::text AS run_id,
    NULL::bigint AS num_objects
   FROM s3_retention.tenant_pauses pauses
  WHERE (pauses.lifted_at IS NOT NULL);

COMMENT ON VIEW s3_retention.acts IS 'What people did, once for each run: holds, stops, answers to plans, redrives, waivers, replays, restores.';

COMMENT ON COLUMN s3_retention.acts.acted_by IS 'The user as Airflow knew them, or the role of the database; NULL where Airflow did not say.';

COMMENT ON COLUMN s3_retention.acts.reason IS 'What they wrote; of an answer to a plan, the hash of the plan that they were shown.';

CREATE TABLE s3_retention.alembic_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE s3_retention.audit_findings (
    audit_id bigint NOT NULL,
    kind text NOT NULL,
    place integer NOT NULL,
    bucket text NOT NULL,
    key text COLLATE pg_catalog."C",
    version_id text,
    row_id text,
    since timestamp with time zone,
    state text NOT NULL,
    detail text,
    CONSTRAINT audit_findings_check CHECK (((key IS NOT NULL) OR (row_id IS NOT NULL))),
    CONSTRAINT audit_findings_kind_check CHECK ((kind = ANY (ARRAY['object_without_row'::text, 'row_without_object'::text, 'overdue'::text, 'row_malformed'::text, 'row_without_key'::text, 'row_elsewhere'::text]))),
    CONSTRAINT audit_findings_place_check CHECK ((place > 0)),
    CONSTRAINT audit_findings_state_check CHECK ((state = ANY (ARRAY['confirmed'::text, 'unknown'::text])))
);

COMMENT ON TABLE s3_retention.audit_findings IS 'The first 1,000 of each kind that an audit has found, less what a second look refuted. Append-only.';

COMMENT ON COLUMN s3_retention.audit_findings.key IS 'The key of the object; of a row that names none that can be told, what it says.';

COMMENT ON COLUMN s3_retention.audit_findings.since IS 'When the object was last modified; of one that is overdue, when it was due.';

COMMENT ON COLUMN s3_retention.audit_findings.state IS 'confirmed: so at the second look, too; unknown: the store would not say.';

CREATE TABLE s3_retention.audits (
    audit_id bigint NOT NULL,
    policy text NOT NULL,
    policy_version text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    due_before timestamp with time zone,
    num_rows bigint,
    num_objects bigint NOT NULL,
    counts jsonb NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    acted_by text,
    note text,
    num_parked bigint DEFAULT 0 NOT NULL,
    audited_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    CONSTRAINT audits_counts_check CHECK ((jsonb_typeof(counts) = 'object'::text)),
    CONSTRAINT audits_num_objects_check CHECK ((num_objects >= 0)),
    CONSTRAINT audits_num_parked_check CHECK ((num_parked >= 0)),
    CONSTRAINT audits_num_rows_check CHECK ((num_rows >= 0))
);

COMMENT ON TABLE s3_retention.audits IS 'What each audit has found, in counts. One that broke off has no row. Append-only.';

COMMENT ON COLUMN s3_retention.audits.due_before IS 'What was due before then and is still there is overdue; NULL: that could not be told.';

COMMENT ON COLUMN s3_retention.audits.num_rows IS 'Rows read of the table of the policy; NULL: its source has none.';

COMMENT ON COLUMN s3_retention.audits.counts IS 'By kind: how many, and of those that were looked at again how many are confirmed, refuted and unknown.';

COMMENT ON COLUMN s3_retention.audits.num_parked IS 'Objects without a row that it has put into quarantine, since its form said so.';

ALTER TABLE s3_retention.audits ALTER COLUMN audit_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.audits_audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.ledger_entries (
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    command_id bytea NOT NULL,
    operation_id bytea NOT NULL,
    batch_id bigint NOT NULL,
    fence bigint NOT NULL,
    tenant text,
    bucket text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    version_id text,
    etag text,
    size bigint NOT NULL,
    last_modified_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    outcome text NOT NULL,
    reason text,
    num_attempts integer NOT NULL,
    request_id text,
    settled_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    marker_version_id text,
    CONSTRAINT ledger_entries_check CHECK (((outcome = 'kept'::text) = (reason IS NOT NULL))),
    CONSTRAINT ledger_entries_check1 CHECK (((marker_version_id IS NULL) OR ((outcome = 'deleted'::text) AND (version_id IS NULL)))),
    CONSTRAINT ledger_entries_command_id_check CHECK ((length(command_id) = 32)),
    CONSTRAINT ledger_entries_num_attempts_check CHECK ((num_attempts >= 0)),
    CONSTRAINT ledger_entries_operation_id_check CHECK ((length(operation_id) = 32)),
    CONSTRAINT ledger_entries_outcome_check CHECK ((outcome = ANY (ARRAY['deleted'::text, 'already_absent'::text, 'changed'::text, 'kept'::text])))
)
PARTITION BY RANGE (interval_id);

COMMENT ON TABLE s3_retention.ledger_entries IS 'One row per settled command, append-only. The claims table tells who held the batch at that fence.';

COMMENT ON COLUMN s3_retention.ledger_entries.marker_version_id IS 'The delete marker that the delete has put on top of the key; removing it brings the object back.';

CREATE VIEW s3_retention.balance AS
 SELECT intervals.interval_id,
    intervals.interval_key,
    intervals.policy,
    intervals.state,
    (planned.num_discovered + parked.num_unplanned) AS num_discovered,
    ledger.num_deleted,
    ledger.num_already_absent,
    ledger.num_changed,
    ledger.num_kept,
    parked.num_quarantined,
    (((planned.num_discovered + parked.num_unplanned) - ledger.num_settled) - parked.num_quarantined) AS num_pending
   FROM (((s3_retention.intervals
     CROSS JOIN LATERAL ( SELECT COALESCE(sum(chunks.num_commands), (0)::bigint) AS num_discovered
           FROM s3_retention.chunks
          WHERE (chunks.interval_id = intervals.interval_id)) planned)
     CROSS JOIN LATERAL ( SELECT count(*) AS num_settled,
            count(*) FILTER (WHERE (entry.outcome = 'deleted'::text)) AS num_deleted,
            count(*) FILTER (WHERE (entry.outcome = 'already_absent'::text)) AS num_already_absent,
            count(*) FILTER (WHERE (entry.outcome = 'changed'::text)) AS num_changed,
            count(*) FILTER (WHERE (entry.outcome = 'kept'::text)) AS num_kept
           FROM s3_retention.ledger_entries entry
          WHERE (entry.interval_id = intervals.interval_id)) ledger)
     CROSS JOIN LATERAL ( SELECT count(*) FILTER (WHERE (quarantine.resolved_at IS NULL)) AS num_quarantined,
            count(*) FILTER (WHERE quarantine.is_unplanned) AS num_unplanned
           FROM s3_retention.quarantine
          WHERE (quarantine.interval_id = intervals.interval_id)) parked);

COMMENT ON VIEW s3_retention.balance IS 'Per interval: discovered = deleted + already_absent + changed + kept + quarantined + pending.';

CREATE TABLE s3_retention.batches (
    batch_id bigint NOT NULL,
    kind text NOT NULL,
    policy text NOT NULL,
    interval_id bigint,
    generation integer,
    batch_number integer NOT NULL,
    num_commands integer NOT NULL,
    num_bytes numeric NOT NULL,
    dag_id text,
    run_id text,
    map_index integer,
    claimed_by text,
    claimed_until timestamp with time zone,
    fence bigint DEFAULT 0 NOT NULL,
    stopped_class text,
    stopped_message text,
    closed_at timestamp with time zone,
    dealt_at timestamp with time zone,
    released_at timestamp with time zone,
    CONSTRAINT batches_batch_number_check CHECK ((batch_number >= 0)),
    CONSTRAINT batches_check CHECK (((kind = 'cleanup'::text) = (interval_id IS NOT NULL))),
    CONSTRAINT batches_check1 CHECK (((interval_id IS NULL) = (generation IS NULL))),
    CONSTRAINT batches_check2 CHECK (((closed_at IS NULL) OR (claimed_until IS NULL))),
    CONSTRAINT batches_check3 CHECK (((closed_at IS NULL) OR (stopped_class IS NULL) OR (kind = 'redrive'::text))),
    CONSTRAINT batches_check4 CHECK (((stopped_class IS NULL) = (stopped_message IS NULL))),
    CONSTRAINT batches_check5 CHECK ((num_nulls(dag_id, run_id, map_index) = ANY (ARRAY[0, 3]))),
    CONSTRAINT batches_kind_check CHECK ((kind = ANY (ARRAY['cleanup'::text, 'redrive'::text]))),
    CONSTRAINT batches_num_bytes_check CHECK ((num_bytes >= (0)::numeric)),
    CONSTRAINT batches_num_commands_check CHECK ((num_commands >= 1))
);

COMMENT ON COLUMN s3_retention.batches.batch_number IS 'From 1. 0 is the canary: while it is open, nothing else of its plan is dealt.';

COMMENT ON COLUMN s3_retention.batches.run_id IS 'The run to which the batch was dealt last, with its DAG and its place in the mapped task.';

COMMENT ON COLUMN s3_retention.batches.fence IS 'Grows with every claim; a settle that names an older fence writes nothing.';

COMMENT ON COLUMN s3_retention.batches.dealt_at IS 'When the batch was dealt to the run that is named.';

COMMENT ON COLUMN s3_retention.batches.released_at IS 'When the last lease was given back, or had run out. With claimed_until: since when no one works on it.';

ALTER TABLE s3_retention.batches ALTER COLUMN batch_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.batches_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE s3_retention.chunks ALTER COLUMN chunk_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.chunks_chunk_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.claims (
    claim_id bigint NOT NULL,
    interval_id bigint,
    batch_id bigint,
    fence bigint NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    task_id text NOT NULL,
    map_index integer NOT NULL,
    try_number integer NOT NULL,
    claimed_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    CONSTRAINT claims_check CHECK ((num_nonnulls(interval_id, batch_id) = 1)),
    CONSTRAINT claims_generation_check CHECK ((generation >= 0))
);

COMMENT ON TABLE s3_retention.claims IS 'Who held an interval or a batch under which fence. Append-only.';

COMMENT ON COLUMN s3_retention.claims.generation IS 'Of a claim on the replay of an interval, its generation; else 0.';

ALTER TABLE s3_retention.claims ALTER COLUMN claim_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.claims_claim_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW s3_retention.commands AS
 SELECT chunks.chunk_id,
    chunks.batch_id,
    chunks.interval_id,
    chunks.generation,
    intervals.policy,
    COALESCE(replays.policy_version, intervals.policy_version) AS policy_version,
    chunks.tenant,
    chunks.bucket,
    one.key,
    one.version_id,
    one.etag,
    one.size,
    one.last_modified_at,
    one.due_at,
    one.group_key,
    operation.operation_id,
    command.command_id,
    one.place
   FROM (((((s3_retention.chunks
     JOIN s3_retention.intervals ON ((chunks.interval_id = intervals.interval_id)))
     LEFT JOIN s3_retention.replays ON (((chunks.interval_id = replays.interval_id) AND (chunks.generation = replays.generation))))
     CROSS JOIN LATERAL UNNEST(chunks.keys, chunks.version_ids, chunks.etags, chunks.sizes, chunks.last_modified_ats, chunks.due_ats, chunks.group_keys) WITH ORDINALITY one(key, version_id, etag, size, last_modified_at, due_at, group_key, place))
     CROSS JOIN LATERAL ( SELECT s3_retention.operation_id(chunks.bucket, one.key, COALESCE(replays.policy_version, intervals.policy_version)) AS operation_id
           FROM ( SELECT 1 AS "?column?") once
         OFFSET 0) operation)
     CROSS JOIN LATERAL ( SELECT s3_retention.command_id(operation.operation_id, one.version_id, one.etag, one.last_modified_at, one.size) AS command_id
           FROM ( SELECT 1 AS "?column?") once
         OFFSET 0) command);

COMMENT ON VIEW s3_retention.commands IS 'The planned commands one by one, out of their chunks.';

CREATE VIEW s3_retention.command_outcomes AS
 SELECT commands.interval_id,
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
    COALESCE(entry.outcome,
        CASE
            WHEN (parked.quarantine_id IS NOT NULL) THEN 'quarantined'::text
            WHEN (batches.stopped_class IS NOT NULL) THEN 'stopped'::text
            ELSE 'pending'::text
        END) AS outcome,
        CASE
            WHEN (entry.outcome IS NULL) THEN COALESCE(parked.failure_class, batches.stopped_class)
            ELSE entry.reason
        END AS reason,
    COALESCE(entry.num_attempts, parked.num_attempts, 0) AS num_attempts,
    COALESCE(entry.request_id, parked.request_id) AS request_id,
    entry.marker_version_id,
    entry.settled_at
   FROM ((((s3_retention.commands
     JOIN s3_retention.intervals ON ((commands.interval_id = intervals.interval_id)))
     JOIN s3_retention.batches ON ((commands.batch_id = batches.batch_id)))
     LEFT JOIN s3_retention.ledger_entries entry ON (((commands.interval_id = entry.interval_id) AND (commands.generation = entry.generation) AND (commands.command_id = entry.command_id))))
     LEFT JOIN s3_retention.quarantine parked ON (((commands.interval_id = parked.interval_id) AND (commands.generation = parked.generation) AND (commands.command_id = parked.command_id) AND (parked.resolved_at IS NULL))))
UNION ALL
 SELECT parked.interval_id,
    intervals.interval_key,
    parked.policy,
    parked.policy_version,
    parked.generation,
    parked.tenant,
    parked.bucket,
    parked.key,
    parked.version_id,
    parked.etag,
    parked.size,
    parked.last_modified_at,
    parked.due_at,
    parked.operation_id,
    parked.command_id,
    parked.redrive_batch_id AS batch_id,
    COALESCE(entry.outcome, 'quarantined'::text) AS outcome,
        CASE
            WHEN (entry.outcome IS NULL) THEN parked.failure_class
            ELSE entry.reason
        END AS reason,
    COALESCE(entry.num_attempts, parked.num_attempts) AS num_attempts,
    COALESCE(entry.request_id, parked.request_id) AS request_id,
    entry.marker_version_id,
    entry.settled_at
   FROM ((s3_retention.quarantine parked
     JOIN s3_retention.intervals ON ((parked.interval_id = intervals.interval_id)))
     LEFT JOIN s3_retention.ledger_entries entry ON (((parked.interval_id = entry.interval_id) AND (parked.generation = entry.generation) AND (parked.command_id = entry.command_id))))
  WHERE parked.is_unplanned;

COMMENT ON VIEW s3_retention.command_outcomes IS 'Each command that was ever planned, once, and where it stands now. Ask for one interval_id: all is much.';

COMMENT ON COLUMN s3_retention.command_outcomes.generation IS '0 for the first plan of an interval; a replay has the next one.';

COMMENT ON COLUMN s3_retention.command_outcomes.outcome IS 'deleted, already_absent, changed or kept; or quarantined, stopped or pending, which are no ends.';

COMMENT ON COLUMN s3_retention.command_outcomes.reason IS 'Why it was kept; of what is quarantined or stopped, the class of the failure.';

COMMENT ON COLUMN s3_retention.command_outcomes.settled_at IS 'When it came to its end; NULL while it has none.';

CREATE TABLE s3_retention.command_rows (
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    command_id bytea NOT NULL,
    named text NOT NULL COLLATE pg_catalog."C",
    row_ids text[] NOT NULL,
    detached_ats timestamp with time zone[] NOT NULL,
    CONSTRAINT command_rows_check CHECK ((cardinality(detached_ats) = cardinality(row_ids))),
    CONSTRAINT command_rows_command_id_check CHECK ((length(command_id) = 32))
);

COMMENT ON TABLE s3_retention.command_rows IS 'Per command of a policy of rows, all orphaned rows of its object as they were seen. Append-only.';

COMMENT ON COLUMN s3_retention.command_rows.named IS 'What the key columns of the rows said.';

CREATE VIEW s3_retention.deleted_objects AS
 SELECT entry.settled_at AS deleted_at,
    intervals.policy,
    COALESCE(replays.policy_version, intervals.policy_version) AS policy_version,
    intervals.interval_key,
    entry.tenant,
    entry.bucket,
    entry.key,
    entry.version_id,
    entry.size,
    entry.last_modified_at,
    entry.due_at,
    (entry.settled_at - entry.due_at) AS late_by,
    entry.marker_version_id,
    entry.operation_id,
    claimed.dag_id,
    claimed.run_id,
    restored.settled_at AS restored_at,
    restored.acted_by AS restored_by
   FROM ((((s3_retention.ledger_entries entry
     JOIN s3_retention.intervals ON ((entry.interval_id = intervals.interval_id)))
     LEFT JOIN s3_retention.replays ON (((entry.interval_id = replays.interval_id) AND (entry.generation = replays.generation))))
     LEFT JOIN s3_retention.claims claimed ON (((entry.batch_id = claimed.batch_id) AND (entry.fence = claimed.fence))))
     LEFT JOIN s3_retention.restores restored ON (((entry.interval_id = restored.interval_id) AND (entry.generation = restored.generation) AND (entry.command_id = restored.command_id) AND (restored.outcome = 'restored'::text))))
  WHERE (entry.outcome = 'deleted'::text);

COMMENT ON VIEW s3_retention.deleted_objects IS 'Each object that this package has deleted: by which policy and run, how late, and if it came back since.';

COMMENT ON COLUMN s3_retention.deleted_objects.late_by IS 'How long it was there after it was due: the watermark, the safety delay and all waiting are in it.';

COMMENT ON COLUMN s3_retention.deleted_objects.marker_version_id IS 'The delete marker that hides it, in a bucket with versions; NULL: it is gone for good.';

COMMENT ON COLUMN s3_retention.deleted_objects.restored_at IS 'When a restore removed that marker; NULL: none has.';

CREATE TABLE s3_retention.failed_attempts (
    batch_id bigint NOT NULL,
    fence bigint NOT NULL,
    failure_class text NOT NULL,
    num_attempts bigint NOT NULL,
    CONSTRAINT failed_attempts_num_attempts_check CHECK ((num_attempts >= 1))
);

COMMENT ON TABLE s3_retention.failed_attempts IS 'Attempts at single objects that failed under a claim, by class; also where a later attempt succeeded.';

CREATE TABLE s3_retention.failures (
    batch_id bigint NOT NULL,
    command_id bytea NOT NULL,
    failure_class text NOT NULL,
    code text,
    message text,
    request_id text,
    num_attempts integer NOT NULL,
    first_failed_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    last_failed_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    not_before timestamp with time zone,
    CONSTRAINT failures_command_id_check CHECK ((length(command_id) = 32)),
    CONSTRAINT failures_num_attempts_check CHECK ((num_attempts >= 1))
);

COMMENT ON TABLE s3_retention.failures IS 'The last cause of each unfinished command of a batch, until it ends or goes to quarantine.';

COMMENT ON COLUMN s3_retention.failures.not_before IS 'Of class locked: until then the store will not delete the version; NULL under a hold, which has no end.';

CREATE TABLE s3_retention.findings (
    finding_id bigint NOT NULL,
    policy text,
    kind text NOT NULL,
    subject text DEFAULT ''::text NOT NULL,
    detail jsonb NOT NULL,
    opened_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    notified_at timestamp with time zone,
    closed_at timestamp with time zone,
    CONSTRAINT findings_check CHECK ((opened_at <= last_seen_at)),
    CONSTRAINT findings_check1 CHECK ((last_seen_at <= closed_at))
);

COMMENT ON TABLE s3_retention.findings IS 'What the watch found that a person should know. Opened once, closed by the watch when it has healed.';

COMMENT ON COLUMN s3_retention.findings.subject IS 'What it is about within policy and kind, such as a failure class; empty where there is but one.';

COMMENT ON COLUMN s3_retention.findings.notified_at IS 'When [s3_retention] on_finding had taken it; NULL: not yet, or no notifier is set.';

ALTER TABLE s3_retention.findings ALTER COLUMN finding_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.findings_finding_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE s3_retention.intervals ALTER COLUMN interval_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.intervals_interval_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.keepers (
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    group_key text NOT NULL COLLATE pg_catalog."C",
    bucket text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C"
);

COMMENT ON TABLE s3_retention.keepers IS 'Per group with a planned delete, the objects whose presence allows it; looked at again before each delete.';

ALTER TABLE s3_retention.kill_switches ALTER COLUMN switch_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.kill_switches_switch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.late_runs (
    policy text NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    deadline_at timestamp with time zone NOT NULL,
    state text NOT NULL,
    flagged_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL
);

COMMENT ON TABLE s3_retention.late_runs IS 'Runs that had not succeeded at the deadline of their policy. One row each, however often Airflow says so.';

COMMENT ON COLUMN s3_retention.late_runs.due_at IS 'The tick that the run is for.';

COMMENT ON COLUMN s3_retention.late_runs.state IS 'What Airflow said of the run when its deadline passed.';

ALTER TABLE s3_retention.legal_holds ALTER COLUMN hold_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.legal_holds_hold_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.missed_intervals (
    policy text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    cause text NOT NULL,
    flagged_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    flagged_by text NOT NULL,
    resolved_at timestamp with time zone,
    CONSTRAINT missed_intervals_cause_check CHECK ((cause = ANY (ARRAY['paused'::text, 'no_scheduler_heartbeat'::text, 'max_active_runs'::text, 'no_policy_file'::text, 'unknown'::text])))
);

COMMENT ON TABLE s3_retention.missed_intervals IS 'Ticks that did not run. A row is written once; after that only resolved_at is set, once.';

COMMENT ON COLUMN s3_retention.missed_intervals.due_at IS 'run_after of the tick.';

COMMENT ON COLUMN s3_retention.missed_intervals.resolved_at IS 'When a later run had covered its time, or it had run late after all.';

CREATE TABLE s3_retention.orphan_sightings (
    policy text NOT NULL,
    row_id text NOT NULL,
    named text NOT NULL COLLATE pg_catalog."C",
    first_seen_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE s3_retention.orphan_sightings IS 'Since when each scan of a policy has seen a row orphaned, where its table does not tell.';

CREATE TABLE s3_retention.policy_versions (
    policy text NOT NULL,
    policy_version text NOT NULL,
    rules_hash text NOT NULL,
    first_used_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    CONSTRAINT policy_versions_rules_hash_check CHECK ((length(rules_hash) = 64))
);

COMMENT ON TABLE s3_retention.policy_versions IS 'The rules behind each version, as a hash stored at first use: rules never change under one version.';

ALTER TABLE s3_retention.quarantine_events ALTER COLUMN event_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.quarantine_events_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE s3_retention.quarantine ALTER COLUMN quarantine_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.quarantine_quarantine_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.request_rates (
    endpoint text NOT NULL,
    bucket text NOT NULL,
    prefix text NOT NULL,
    keys_per_second double precision,
    reserved_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    next_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    adjusted_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    slowed_at timestamp with time zone,
    CONSTRAINT request_rates_keys_per_second_check CHECK ((keys_per_second > (0)::double precision))
);

COMMENT ON TABLE s3_retention.request_rates IS 'At which rate all workers together delete under a prefix. No row, or no rate: as fast as the store answers.';

COMMENT ON COLUMN s3_retention.request_rates.reserved_at IS 'The turn that was given last: each worker reserves its keys before it sends them.';

COMMENT ON COLUMN s3_retention.request_rates.next_at IS 'The turn that is given next, unless it has passed.';

ALTER TABLE s3_retention.restores ALTER COLUMN restore_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.restores_restore_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.row_entries (
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    command_id bytea NOT NULL,
    row_id text NOT NULL,
    outcome text NOT NULL,
    batch_id bigint NOT NULL,
    fence bigint NOT NULL,
    settled_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    CONSTRAINT row_entries_command_id_check CHECK ((length(command_id) = 32)),
    CONSTRAINT row_entries_outcome_check CHECK ((outcome = ANY (ARRAY['deleted'::text, 'already_absent'::text, 'left'::text])))
);

COMMENT ON TABLE s3_retention.row_entries IS 'What became of each row of a command whose object is gone. Append-only.';

COMMENT ON COLUMN s3_retention.row_entries.outcome IS 'left: it was attached or changed while its object was being deleted: it names an object that is gone.';

CREATE TABLE s3_retention.run_reports (
    report_id bigint NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    policy text,
    interval_id bigint,
    counts jsonb NOT NULL,
    is_balanced boolean NOT NULL,
    reported_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    unclaimed_since timestamp with time zone,
    num_drained bigint,
    num_remaining bigint,
    CONSTRAINT run_reports_num_drained_check CHECK ((num_drained >= 0)),
    CONSTRAINT run_reports_num_remaining_check CHECK ((num_remaining >= 0))
);

COMMENT ON TABLE s3_retention.run_reports IS 'What each run said at its end; a cleared run reports again. Append-only.';

COMMENT ON COLUMN s3_retention.run_reports.unclaimed_since IS 'Of a cleanup: the due time from which on, at the report, no interval had claimed what was due.';

COMMENT ON COLUMN s3_retention.run_reports.num_drained IS 'Of a cleanup: the commands of the run that ended, in the ledger or in quarantine.';

COMMENT ON COLUMN s3_retention.run_reports.num_remaining IS 'Of a cleanup: the planned commands of the interval that wait for the next run.';

ALTER TABLE s3_retention.run_reports ALTER COLUMN report_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.run_reports_report_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.schedules (
    policy text NOT NULL,
    dag_id text NOT NULL,
    timetable text,
    series_started_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    last_tick_at timestamp with time zone NOT NULL,
    last_interval_starts_at timestamp with time zone NOT NULL,
    last_interval_ends_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    CONSTRAINT schedules_check CHECK ((last_interval_starts_at <= last_interval_ends_at))
);

COMMENT ON TABLE s3_retention.schedules IS 'Up to which tick each policy is accounted for. It outlives the runs that Airflow purges.';

COMMENT ON COLUMN s3_retention.schedules.timetable IS 'The cron fields and the time zone of the policy; NULL: no tick is expected (manual, or simulate).';

COMMENT ON COLUMN s3_retention.schedules.series_started_at IS 'Since when this timetable counts. A changed one starts anew: ticks before it are not looked for.';

COMMENT ON COLUMN s3_retention.schedules.last_tick_at IS 'run_after of the last tick that ran or was flagged; the start of the series before there is one.';

CREATE TABLE s3_retention.simulations (
    simulation_id bigint NOT NULL,
    policy text NOT NULL,
    policy_version text NOT NULL,
    rules_hash text NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    num_scanned bigint NOT NULL,
    num_due bigint NOT NULL,
    num_bytes numeric NOT NULL,
    plan_hash bytea NOT NULL,
    detail jsonb NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    simulated_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    CONSTRAINT simulations_num_bytes_check CHECK ((num_bytes >= (0)::numeric)),
    CONSTRAINT simulations_num_due_check CHECK ((num_due >= 0)),
    CONSTRAINT simulations_num_scanned_check CHECK ((num_scanned >= 0)),
    CONSTRAINT simulations_plan_hash_check CHECK ((length(plan_hash) = 32))
);

COMMENT ON TABLE s3_retention.simulations IS 'What runs in mode simulate have found: one row each, of which no command came. Append-only.';

COMMENT ON COLUMN s3_retention.simulations.plan_hash IS 'As plan_hash of the plan that an enforced run would have stored of the same objects.';

COMMENT ON COLUMN s3_retention.simulations.detail IS 'Objects and bytes per reason and prefix, a sample, groups of a single object, limits that are exceeded.';

ALTER TABLE s3_retention.simulations ALTER COLUMN simulation_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.simulations_simulation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.store_probes (
    endpoint text NOT NULL,
    aws_conn_id text NOT NULL,
    bucket text NOT NULL,
    versioning text NOT NULL,
    etag_condition text NOT NULL,
    probed_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    valid_until timestamp with time zone NOT NULL,
    CONSTRAINT store_probes_check CHECK ((valid_until > probed_at)),
    CONSTRAINT store_probes_etag_condition_check CHECK ((etag_condition = ANY (ARRAY['honoured'::text, 'ignored'::text, 'refused'::text])))
);

COMMENT ON TABLE s3_retention.store_probes IS 'What a store did with a delete whose ETag was wrong. Without a valid row the next batch finds it out.';

COMMENT ON COLUMN s3_retention.store_probes.versioning IS 'What the store said of the versions of the bucket; empty where it said nothing.';

ALTER TABLE s3_retention.tenant_pauses ALTER COLUMN pause_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.tenant_pauses_pause_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.tenant_waits (
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    num_paused bigint NOT NULL,
    num_over_cap bigint NOT NULL,
    CONSTRAINT tenant_waits_check CHECK (((num_paused + num_over_cap) > 0)),
    CONSTRAINT tenant_waits_num_over_cap_check CHECK ((num_over_cap >= 0)),
    CONSTRAINT tenant_waits_num_paused_check CHECK ((num_paused >= 0))
);

COMMENT ON TABLE s3_retention.tenant_waits IS 'How much of a tenant is due and got no command in a plan: it is paused, or over its cap. Append-only.';

COMMENT ON COLUMN s3_retention.tenant_waits.generation IS '0 for the first plan of an interval; a replay has the next one.';

CREATE VIEW s3_retention.unfinished_commands AS
 SELECT chunk_id,
    batch_id,
    interval_id,
    generation,
    policy,
    policy_version,
    tenant,
    bucket,
    key,
    version_id,
    etag,
    size,
    last_modified_at,
    due_at,
    group_key,
    operation_id,
    command_id,
    place
   FROM s3_retention.commands
  WHERE ((NOT (EXISTS ( SELECT 1
           FROM s3_retention.ledger_entries entry
          WHERE ((entry.interval_id = commands.interval_id) AND (entry.generation = commands.generation) AND (entry.command_id = commands.command_id))
         OFFSET 0))) AND (NOT (EXISTS ( SELECT 1
           FROM s3_retention.quarantine parked
          WHERE ((parked.interval_id = commands.interval_id) AND (parked.generation = commands.generation) AND (parked.command_id = commands.command_id))
         OFFSET 0))));

COMMENT ON VIEW s3_retention.unfinished_commands IS 'Planned, and neither in the ledger nor in quarantine.';

CREATE TABLE s3_retention.watch_passes (
    pass_id bigint NOT NULL,
    run_id text NOT NULL,
    did jsonb NOT NULL,
    passed_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL
);

COMMENT ON TABLE s3_retention.watch_passes IS 'What each pass of the watch did. A gap in it says that nothing was scheduled then. Append-only.';

ALTER TABLE s3_retention.watch_passes ALTER COLUMN pass_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME s3_retention.watch_passes_pass_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE s3_retention.watermarks (
    policy text NOT NULL,
    "position" timestamp with time zone NOT NULL,
    completed_through timestamp with time zone NOT NULL,
    updated_at timestamp with time zone DEFAULT s3_retention.clock() NOT NULL,
    num_claim_conflicts bigint DEFAULT 0 NOT NULL,
    CONSTRAINT watermarks_check CHECK ((completed_through <= "position")),
    CONSTRAINT watermarks_num_claim_conflicts_check CHECK ((num_claim_conflicts >= 0))
);

COMMENT ON COLUMN s3_retention.watermarks."position" IS 'One complete scan has decided everything that was due before this time.';

COMMENT ON COLUMN s3_retention.watermarks.completed_through IS 'Every command of the intervals before this time is settled or in quarantine.';

COMMENT ON COLUMN s3_retention.watermarks.num_claim_conflicts IS 'How often a run wanted the interval of this policy while another live run held it.';

ALTER TABLE ONLY s3_retention.aborted_uploads
    ADD CONSTRAINT aborted_uploads_pkey PRIMARY KEY (bucket, upload_id);

ALTER TABLE ONLY s3_retention.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY s3_retention.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (interval_id, generation);

ALTER TABLE ONLY s3_retention.audit_findings
    ADD CONSTRAINT audit_findings_pkey PRIMARY KEY (audit_id, kind, place);

ALTER TABLE ONLY s3_retention.audits
    ADD CONSTRAINT audits_pkey PRIMARY KEY (audit_id);

ALTER TABLE ONLY s3_retention.batches
    ADD CONSTRAINT batches_interval_id_generation_batch_number_key UNIQUE (interval_id, generation, batch_number);

ALTER TABLE ONLY s3_retention.batches
    ADD CONSTRAINT batches_pkey PRIMARY KEY (batch_id);

ALTER TABLE ONLY s3_retention.chunks
    ADD CONSTRAINT chunks_interval_id_generation_chunk_number_key UNIQUE (interval_id, generation, chunk_number);

ALTER TABLE ONLY s3_retention.chunks
    ADD CONSTRAINT chunks_pkey PRIMARY KEY (chunk_id);

ALTER TABLE ONLY s3_retention.claims
    ADD CONSTRAINT claims_batch_id_fence_key UNIQUE (batch_id, fence);

ALTER TABLE ONLY s3_retention.claims
    ADD CONSTRAINT claims_interval_id_generation_fence_key UNIQUE (interval_id, generation, fence);

ALTER TABLE ONLY s3_retention.claims
    ADD CONSTRAINT claims_pkey PRIMARY KEY (claim_id);

ALTER TABLE ONLY s3_retention.command_rows
    ADD CONSTRAINT command_rows_pkey PRIMARY KEY (interval_id, generation, command_id);

ALTER TABLE ONLY s3_retention.failed_attempts
    ADD CONSTRAINT failed_attempts_pkey PRIMARY KEY (batch_id, fence, failure_class);

ALTER TABLE ONLY s3_retention.failures
    ADD CONSTRAINT failures_pkey PRIMARY KEY (batch_id, command_id);

ALTER TABLE ONLY s3_retention.findings
    ADD CONSTRAINT findings_pkey PRIMARY KEY (finding_id);

ALTER TABLE ONLY s3_retention.intervals
    ADD CONSTRAINT intervals_interval_key_key UNIQUE (interval_key);

ALTER TABLE ONLY s3_retention.intervals
    ADD CONSTRAINT intervals_pkey PRIMARY KEY (interval_id);

ALTER TABLE ONLY s3_retention.intervals
    ADD CONSTRAINT intervals_policy_ends_at_key UNIQUE (policy, ends_at);

ALTER TABLE ONLY s3_retention.intervals
    ADD CONSTRAINT intervals_policy_starts_at_key UNIQUE (policy, starts_at);

ALTER TABLE ONLY s3_retention.kill_switches
    ADD CONSTRAINT kill_switches_dag_id_run_id_key UNIQUE (dag_id, run_id);

ALTER TABLE ONLY s3_retention.kill_switches
    ADD CONSTRAINT kill_switches_pkey PRIMARY KEY (switch_id);

ALTER TABLE ONLY s3_retention.late_runs
    ADD CONSTRAINT late_runs_pkey PRIMARY KEY (dag_id, run_id);

ALTER TABLE ONLY s3_retention.ledger_entries
    ADD CONSTRAINT ledger_entries_pkey PRIMARY KEY (interval_id, generation, command_id);

ALTER TABLE ONLY s3_retention.legal_holds
    ADD CONSTRAINT legal_holds_dag_id_run_id_key UNIQUE (dag_id, run_id);

ALTER TABLE ONLY s3_retention.legal_holds
    ADD CONSTRAINT legal_holds_pkey PRIMARY KEY (hold_id);

ALTER TABLE ONLY s3_retention.missed_intervals
    ADD CONSTRAINT missed_intervals_pkey PRIMARY KEY (policy, due_at);

ALTER TABLE ONLY s3_retention.orphan_sightings
    ADD CONSTRAINT orphan_sightings_pkey PRIMARY KEY (policy, row_id);

ALTER TABLE ONLY s3_retention.policy_versions
    ADD CONSTRAINT policy_versions_pkey PRIMARY KEY (policy, policy_version);

ALTER TABLE ONLY s3_retention.quarantine_events
    ADD CONSTRAINT quarantine_events_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY s3_retention.quarantine
    ADD CONSTRAINT quarantine_interval_id_generation_command_id_key UNIQUE (interval_id, generation, command_id);

ALTER TABLE ONLY s3_retention.quarantine
    ADD CONSTRAINT quarantine_pkey PRIMARY KEY (quarantine_id);

ALTER TABLE ONLY s3_retention.replays
    ADD CONSTRAINT replays_pkey PRIMARY KEY (interval_id, generation);

ALTER TABLE ONLY s3_retention.request_rates
    ADD CONSTRAINT request_rates_pkey PRIMARY KEY (endpoint, bucket, prefix);

ALTER TABLE ONLY s3_retention.restores
    ADD CONSTRAINT restores_pkey PRIMARY KEY (restore_id);

ALTER TABLE ONLY s3_retention.restores
    ADD CONSTRAINT restores_run_id_dag_id_interval_id_generation_command_id_ou_key UNIQUE (run_id, dag_id, interval_id, generation, command_id, outcome);

ALTER TABLE ONLY s3_retention.row_entries
    ADD CONSTRAINT row_entries_pkey PRIMARY KEY (interval_id, generation, command_id, row_id);

ALTER TABLE ONLY s3_retention.run_reports
    ADD CONSTRAINT run_reports_pkey PRIMARY KEY (report_id);

ALTER TABLE ONLY s3_retention.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (policy);

ALTER TABLE ONLY s3_retention.simulations
    ADD CONSTRAINT simulations_pkey PRIMARY KEY (simulation_id);

ALTER TABLE ONLY s3_retention.store_probes
    ADD CONSTRAINT store_probes_pkey PRIMARY KEY (endpoint, aws_conn_id, bucket, versioning);

ALTER TABLE ONLY s3_retention.tenant_pauses
    ADD CONSTRAINT tenant_pauses_dag_id_run_id_key UNIQUE (dag_id, run_id);

ALTER TABLE ONLY s3_retention.tenant_pauses
    ADD CONSTRAINT tenant_pauses_pkey PRIMARY KEY (pause_id);

ALTER TABLE ONLY s3_retention.watch_passes
    ADD CONSTRAINT watch_passes_pkey PRIMARY KEY (pass_id);

ALTER TABLE ONLY s3_retention.watermarks
    ADD CONSTRAINT watermarks_pkey PRIMARY KEY (policy);

CREATE INDEX aborted_uploads_run ON s3_retention.aborted_uploads USING btree (run_id, dag_id);

CREATE INDEX audits_policy ON s3_retention.audits USING btree (policy, audit_id);

CREATE INDEX batches_open ON s3_retention.batches USING btree (interval_id) WHERE (closed_at IS NULL);

CREATE INDEX batches_run ON s3_retention.batches USING btree (run_id, dag_id);

CREATE INDEX chunks_batch ON s3_retention.chunks USING btree (batch_id);

CREATE INDEX claims_run ON s3_retention.claims USING btree (run_id, dag_id);

CREATE UNIQUE INDEX findings_one_open ON s3_retention.findings USING btree (COALESCE(policy, ''::text), kind, subject) WHERE (closed_at IS NULL);

CREATE INDEX findings_subject ON s3_retention.findings USING btree (kind, subject);

CREATE UNIQUE INDEX intervals_one_root ON s3_retention.intervals USING btree (policy) WHERE (follows IS NULL);

CREATE UNIQUE INDEX intervals_one_unfinished ON s3_retention.intervals USING btree (policy) WHERE (state <> 'completed'::text);

CREATE INDEX intervals_policy ON s3_retention.intervals USING btree (policy, interval_id);

CREATE INDEX keepers_group ON s3_retention.keepers USING btree (interval_id, generation, hashtextextended(group_key, (0)::bigint));

CREATE UNIQUE INDEX kill_switches_one_open ON s3_retention.kill_switches USING btree (COALESCE(policy, ''::text)) WHERE (lifted_at IS NULL);

CREATE INDEX late_runs_time ON s3_retention.late_runs USING btree (policy, due_at);

CREATE INDEX ledger_entries_batch ON ONLY s3_retention.ledger_entries USING btree (batch_id, outcome);

CREATE INDEX legal_holds_key ON s3_retention.legal_holds USING btree (bucket, name) WHERE ((lifted_at IS NULL) AND (scope = 'key'::text));

CREATE INDEX missed_intervals_open ON s3_retention.missed_intervals USING btree (policy, due_at) WHERE (resolved_at IS NULL);

CREATE INDEX quarantine_events_row ON s3_retention.quarantine_events USING btree (quarantine_id);

CREATE INDEX quarantine_events_run ON s3_retention.quarantine_events USING btree (run_id, dag_id);

CREATE INDEX quarantine_open ON s3_retention.quarantine USING btree (policy, key) WHERE (resolved_at IS NULL);

CREATE INDEX quarantine_redrive ON s3_retention.quarantine USING btree (redrive_batch_id);

CREATE UNIQUE INDEX replays_one_unfinished ON s3_retention.replays USING btree (interval_id) WHERE (state <> 'completed'::text);

CREATE UNIQUE INDEX restores_once ON s3_retention.restores USING btree (interval_id, generation, command_id) WHERE (outcome = 'restored'::text);

CREATE INDEX row_entries_batch ON s3_retention.row_entries USING btree (batch_id, outcome);

CREATE INDEX row_entries_left ON s3_retention.row_entries USING btree (settled_at) WHERE (outcome = 'left'::text);

CREATE INDEX run_reports_policy ON s3_retention.run_reports USING btree (policy, report_id) WHERE (interval_id IS NOT NULL);

CREATE INDEX run_reports_run ON s3_retention.run_reports USING btree (run_id, dag_id);

CREATE INDEX simulations_policy ON s3_retention.simulations USING btree (policy, simulation_id);

CREATE UNIQUE INDEX tenant_pauses_one_open ON s3_retention.tenant_pauses USING btree (tenant, COALESCE(policy, ''::text)) WHERE (lifted_at IS NULL);

CREATE INDEX tenant_waits_plan ON s3_retention.tenant_waits USING btree (interval_id, generation);

CREATE INDEX watch_passes_time ON s3_retention.watch_passes USING btree (passed_at);

CREATE TRIGGER aborted_uploads_append_only BEFORE DELETE OR UPDATE ON s3_retention.aborted_uploads FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER aborted_uploads_not_truncated BEFORE TRUNCATE ON s3_retention.aborted_uploads FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER approvals_decide_once BEFORE DELETE OR UPDATE ON s3_retention.approvals FOR EACH ROW EXECUTE FUNCTION s3_retention.approval_decides_once();

CREATE TRIGGER approvals_not_truncated BEFORE TRUNCATE ON s3_retention.approvals FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER audit_findings_append_only BEFORE DELETE OR UPDATE ON s3_retention.audit_findings FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER audit_findings_not_truncated BEFORE TRUNCATE ON s3_retention.audit_findings FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER audits_append_only BEFORE DELETE OR UPDATE ON s3_retention.audits FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER audits_not_truncated BEFORE TRUNCATE ON s3_retention.audits FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER claims_append_only BEFORE DELETE OR UPDATE ON s3_retention.claims FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER claims_not_truncated BEFORE TRUNCATE ON s3_retention.claims FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER command_rows_append_only BEFORE DELETE OR UPDATE ON s3_retention.command_rows FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER command_rows_not_truncated BEFORE TRUNCATE ON s3_retention.command_rows FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER intervals_keep_their_version BEFORE UPDATE OF policy_version ON s3_retention.intervals FOR EACH ROW WHEN (((old.state <> 'claimed'::text) AND (new.policy_version <> old.policy_version))) EXECUTE FUNCTION s3_retention.refuse_other_version();

CREATE TRIGGER kill_switches_lifted_once BEFORE DELETE OR UPDATE ON s3_retention.kill_switches FOR EACH ROW EXECUTE FUNCTION s3_retention.is_lifted_once();

CREATE TRIGGER kill_switches_not_truncated BEFORE TRUNCATE ON s3_retention.kill_switches FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER late_runs_append_only BEFORE DELETE OR UPDATE ON s3_retention.late_runs FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER late_runs_not_truncated BEFORE TRUNCATE ON s3_retention.late_runs FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER ledger_entries_append_only BEFORE DELETE OR UPDATE ON s3_retention.ledger_entries FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER ledger_entries_not_truncated BEFORE TRUNCATE ON s3_retention.ledger_entries FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER legal_holds_lifted_once BEFORE DELETE OR UPDATE ON s3_retention.legal_holds FOR EACH ROW EXECUTE FUNCTION s3_retention.is_lifted_once();

CREATE TRIGGER legal_holds_not_truncated BEFORE TRUNCATE ON s3_retention.legal_holds FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER missed_intervals_not_truncated BEFORE TRUNCATE ON s3_retention.missed_intervals FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER missed_intervals_resolve_once BEFORE DELETE OR UPDATE ON s3_retention.missed_intervals FOR EACH ROW EXECUTE FUNCTION s3_retention.missed_interval_resolves_once();

CREATE TRIGGER policy_versions_append_only BEFORE DELETE OR UPDATE ON s3_retention.policy_versions FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER policy_versions_not_truncated BEFORE TRUNCATE ON s3_retention.policy_versions FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER quarantine_events_append_only BEFORE DELETE OR UPDATE ON s3_retention.quarantine_events FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER quarantine_events_not_truncated BEFORE TRUNCATE ON s3_retention.quarantine_events FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER replays_keep_their_version BEFORE UPDATE OF policy_version ON s3_retention.replays FOR EACH ROW WHEN (((old.state <> 'claimed'::text) AND (new.policy_version <> old.policy_version))) EXECUTE FUNCTION s3_retention.refuse_other_version();

CREATE TRIGGER restores_append_only BEFORE DELETE OR UPDATE ON s3_retention.restores FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER restores_not_truncated BEFORE TRUNCATE ON s3_retention.restores FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER row_entries_append_only BEFORE DELETE OR UPDATE ON s3_retention.row_entries FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER row_entries_not_truncated BEFORE TRUNCATE ON s3_retention.row_entries FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER run_reports_append_only BEFORE DELETE OR UPDATE ON s3_retention.run_reports FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER run_reports_not_truncated BEFORE TRUNCATE ON s3_retention.run_reports FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER simulations_append_only BEFORE DELETE OR UPDATE ON s3_retention.simulations FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER simulations_not_truncated BEFORE TRUNCATE ON s3_retention.simulations FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER tenant_pauses_lifted_once BEFORE DELETE OR UPDATE ON s3_retention.tenant_pauses FOR EACH ROW EXECUTE FUNCTION s3_retention.is_lifted_once();

CREATE TRIGGER tenant_pauses_not_truncated BEFORE TRUNCATE ON s3_retention.tenant_pauses FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER tenant_waits_append_only BEFORE DELETE OR UPDATE ON s3_retention.tenant_waits FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER tenant_waits_not_truncated BEFORE TRUNCATE ON s3_retention.tenant_waits FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER watch_passes_append_only BEFORE DELETE OR UPDATE ON s3_retention.watch_passes FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER watch_passes_not_truncated BEFORE TRUNCATE ON s3_retention.watch_passes FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE TRIGGER watermarks_forward_only BEFORE UPDATE ON s3_retention.watermarks FOR EACH ROW EXECUTE FUNCTION s3_retention.watermark_forward_only();

ALTER TABLE ONLY s3_retention.aborted_uploads
    ADD CONSTRAINT aborted_uploads_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.approvals
    ADD CONSTRAINT approvals_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.audit_findings
    ADD CONSTRAINT audit_findings_audit_id_fkey FOREIGN KEY (audit_id) REFERENCES s3_retention.audits(audit_id);

ALTER TABLE ONLY s3_retention.batches
    ADD CONSTRAINT batches_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.chunks
    ADD CONSTRAINT chunks_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES s3_retention.batches(batch_id);

ALTER TABLE ONLY s3_retention.chunks
    ADD CONSTRAINT chunks_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.claims
    ADD CONSTRAINT claims_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES s3_retention.batches(batch_id);

ALTER TABLE ONLY s3_retention.claims
    ADD CONSTRAINT claims_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.command_rows
    ADD CONSTRAINT command_rows_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.failed_attempts
    ADD CONSTRAINT failed_attempts_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES s3_retention.batches(batch_id);

ALTER TABLE ONLY s3_retention.failures
    ADD CONSTRAINT failures_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES s3_retention.batches(batch_id);

ALTER TABLE ONLY s3_retention.intervals
    ADD CONSTRAINT intervals_policy_follows_fkey FOREIGN KEY (policy, follows) REFERENCES s3_retention.intervals(policy, ends_at);

ALTER TABLE ONLY s3_retention.intervals
    ADD CONSTRAINT intervals_policy_policy_version_fkey FOREIGN KEY (policy, policy_version) REFERENCES s3_retention.policy_versions(policy, policy_version);

ALTER TABLE ONLY s3_retention.keepers
    ADD CONSTRAINT keepers_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.quarantine_events
    ADD CONSTRAINT quarantine_events_quarantine_id_fkey FOREIGN KEY (quarantine_id) REFERENCES s3_retention.quarantine(quarantine_id);

ALTER TABLE ONLY s3_retention.quarantine
    ADD CONSTRAINT quarantine_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.quarantine
    ADD CONSTRAINT quarantine_redrive_batch_id_fkey FOREIGN KEY (redrive_batch_id) REFERENCES s3_retention.batches(batch_id);

ALTER TABLE ONLY s3_retention.replays
    ADD CONSTRAINT replays_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.replays
    ADD CONSTRAINT replays_policy_policy_version_fkey FOREIGN KEY (policy, policy_version) REFERENCES s3_retention.policy_versions(policy, policy_version);

ALTER TABLE ONLY s3_retention.row_entries
    ADD CONSTRAINT row_entries_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES s3_retention.batches(batch_id);

ALTER TABLE ONLY s3_retention.run_reports
    ADD CONSTRAINT run_reports_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

ALTER TABLE ONLY s3_retention.tenant_waits
    ADD CONSTRAINT tenant_waits_interval_id_fkey FOREIGN KEY (interval_id) REFERENCES s3_retention.intervals(interval_id);

GRANT USAGE ON SCHEMA s3_retention TO s3_retention_writer;
GRANT USAGE ON SCHEMA s3_retention TO s3_retention_reader;

REVOKE ALL ON FUNCTION s3_retention.ensure_ledger_partition(for_interval_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION s3_retention.ensure_ledger_partition(for_interval_id bigint) TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.chunks TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.chunks TO s3_retention_reader;

GRANT UPDATE(closed_at) ON TABLE s3_retention.chunks TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.aborted_uploads TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.aborted_uploads TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.legal_holds TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.legal_holds TO s3_retention_reader;

GRANT UPDATE(lifted_by) ON TABLE s3_retention.legal_holds TO s3_retention_writer;

GRANT UPDATE(lifted_at) ON TABLE s3_retention.legal_holds TO s3_retention_writer;

GRANT UPDATE(lift_reason) ON TABLE s3_retention.legal_holds TO s3_retention_writer;

GRANT SELECT ON TABLE s3_retention.active_holds TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.active_holds TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.approvals TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.approvals TO s3_retention_reader;

GRANT UPDATE(decision) ON TABLE s3_retention.approvals TO s3_retention_writer;

GRANT UPDATE(decided_by) ON TABLE s3_retention.approvals TO s3_retention_writer;

GRANT UPDATE(decided_at) ON TABLE s3_retention.approvals TO s3_retention_writer;

GRANT UPDATE(decided_in_run) ON TABLE s3_retention.approvals TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.intervals TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.intervals TO s3_retention_reader;

GRANT UPDATE(policy_version) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(state) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(claimed_by) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(claimed_until) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(fence) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(num_scanned) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(num_discovered) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(num_bytes) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(num_stragglers) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(num_kept_by_reason) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(planned_at) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(completed_at) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(next_due_at) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT UPDATE(largest_tenant_share) ON TABLE s3_retention.intervals TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.kill_switches TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.kill_switches TO s3_retention_reader;

GRANT UPDATE(lifted_by) ON TABLE s3_retention.kill_switches TO s3_retention_writer;

GRANT UPDATE(lifted_at) ON TABLE s3_retention.kill_switches TO s3_retention_writer;

GRANT UPDATE(lift_reason) ON TABLE s3_retention.kill_switches TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.quarantine TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.quarantine TO s3_retention_reader;

GRANT UPDATE(failure_class) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(code) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(message) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(request_id) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(num_attempts) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(dag_id) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(run_id) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(map_index) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(last_failed_at) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(not_before) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(redrive_batch_id) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(num_redrives) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(resolution) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(resolved_at) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT UPDATE(superseded_by) ON TABLE s3_retention.quarantine TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.quarantine_events TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.quarantine_events TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.replays TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.replays TO s3_retention_reader;

GRANT UPDATE(policy_version) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(state) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(claimed_by) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(claimed_until) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(fence) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(num_scanned) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(num_discovered) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(num_bytes) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(num_kept_by_reason) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(planned_at) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT UPDATE(completed_at) ON TABLE s3_retention.replays TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.restores TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.restores TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.tenant_pauses TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.tenant_pauses TO s3_retention_reader;

GRANT UPDATE(lifted_by) ON TABLE s3_retention.tenant_pauses TO s3_retention_writer;

GRANT UPDATE(lifted_at) ON TABLE s3_retention.tenant_pauses TO s3_retention_writer;

GRANT UPDATE(lift_reason) ON TABLE s3_retention.tenant_pauses TO s3_retention_writer;

GRANT SELECT ON TABLE s3_retention.acts TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.acts TO s3_retention_reader;

GRANT SELECT ON TABLE s3_retention.alembic_version TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.alembic_version TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.audit_findings TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.audit_findings TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.audits TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.audits TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.ledger_entries TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.ledger_entries TO s3_retention_reader;

GRANT SELECT ON TABLE s3_retention.balance TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.balance TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.batches TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.batches TO s3_retention_reader;

GRANT UPDATE(dag_id) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(run_id) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(map_index) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(claimed_by) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(claimed_until) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(fence) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(stopped_class) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(stopped_message) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(closed_at) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(dealt_at) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT UPDATE(released_at) ON TABLE s3_retention.batches TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.claims TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.claims TO s3_retention_reader;

GRANT SELECT ON TABLE s3_retention.commands TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.commands TO s3_retention_reader;

GRANT SELECT ON TABLE s3_retention.command_outcomes TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.command_outcomes TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.command_rows TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.command_rows TO s3_retention_reader;

GRANT SELECT ON TABLE s3_retention.deleted_objects TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.deleted_objects TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.failed_attempts TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.failed_attempts TO s3_retention_reader;

GRANT UPDATE(num_attempts) ON TABLE s3_retention.failed_attempts TO s3_retention_writer;

GRANT SELECT,INSERT,DELETE ON TABLE s3_retention.failures TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.failures TO s3_retention_reader;

GRANT UPDATE(failure_class) ON TABLE s3_retention.failures TO s3_retention_writer;

GRANT UPDATE(code) ON TABLE s3_retention.failures TO s3_retention_writer;

GRANT UPDATE(message) ON TABLE s3_retention.failures TO s3_retention_writer;

GRANT UPDATE(request_id) ON TABLE s3_retention.failures TO s3_retention_writer;

GRANT UPDATE(num_attempts) ON TABLE s3_retention.failures TO s3_retention_writer;

GRANT UPDATE(last_failed_at) ON TABLE s3_retention.failures TO s3_retention_writer;

GRANT UPDATE(not_before) ON TABLE s3_retention.failures TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.findings TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.findings TO s3_retention_reader;

GRANT UPDATE(detail) ON TABLE s3_retention.findings TO s3_retention_writer;

GRANT UPDATE(last_seen_at) ON TABLE s3_retention.findings TO s3_retention_writer;

GRANT UPDATE(notified_at) ON TABLE s3_retention.findings TO s3_retention_writer;

GRANT UPDATE(closed_at) ON TABLE s3_retention.findings TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.keepers TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.keepers TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.late_runs TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.late_runs TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.missed_intervals TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.missed_intervals TO s3_retention_reader;

GRANT UPDATE(resolved_at) ON TABLE s3_retention.missed_intervals TO s3_retention_writer;

GRANT SELECT,INSERT,DELETE ON TABLE s3_retention.orphan_sightings TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.orphan_sightings TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.policy_versions TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.policy_versions TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.request_rates TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.request_rates TO s3_retention_reader;

GRANT UPDATE(keys_per_second) ON TABLE s3_retention.request_rates TO s3_retention_writer;

GRANT UPDATE(reserved_at) ON TABLE s3_retention.request_rates TO s3_retention_writer;

GRANT UPDATE(next_at) ON TABLE s3_retention.request_rates TO s3_retention_writer;

GRANT UPDATE(adjusted_at) ON TABLE s3_retention.request_rates TO s3_retention_writer;

GRANT UPDATE(slowed_at) ON TABLE s3_retention.request_rates TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.row_entries TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.row_entries TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.run_reports TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.run_reports TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.schedules TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.schedules TO s3_retention_reader;

GRANT UPDATE(dag_id) ON TABLE s3_retention.schedules TO s3_retention_writer;

GRANT UPDATE(timetable) ON TABLE s3_retention.schedules TO s3_retention_writer;

GRANT UPDATE(series_started_at) ON TABLE s3_retention.schedules TO s3_retention_writer;

GRANT UPDATE(last_tick_at) ON TABLE s3_retention.schedules TO s3_retention_writer;

GRANT UPDATE(last_interval_starts_at) ON TABLE s3_retention.schedules TO s3_retention_writer;

GRANT UPDATE(last_interval_ends_at) ON TABLE s3_retention.schedules TO s3_retention_writer;

GRANT UPDATE(updated_at) ON TABLE s3_retention.schedules TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.simulations TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.simulations TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.store_probes TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.store_probes TO s3_retention_reader;

GRANT UPDATE(etag_condition) ON TABLE s3_retention.store_probes TO s3_retention_writer;

GRANT UPDATE(probed_at) ON TABLE s3_retention.store_probes TO s3_retention_writer;

GRANT UPDATE(valid_until) ON TABLE s3_retention.store_probes TO s3_retention_writer;

GRANT SELECT,INSERT ON TABLE s3_retention.tenant_waits TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.tenant_waits TO s3_retention_reader;

GRANT SELECT ON TABLE s3_retention.unfinished_commands TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.unfinished_commands TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.watch_passes TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.watch_passes TO s3_retention_reader;

GRANT SELECT,INSERT ON TABLE s3_retention.watermarks TO s3_retention_writer;
GRANT SELECT ON TABLE s3_retention.watermarks TO s3_retention_reader;

GRANT UPDATE("position") ON TABLE s3_retention.watermarks TO s3_retention_writer;

GRANT UPDATE(completed_through) ON TABLE s3_retention.watermarks TO s3_retention_writer;

GRANT UPDATE(updated_at) ON TABLE s3_retention.watermarks TO s3_retention_writer;

GRANT UPDATE(num_claim_conflicts) ON TABLE s3_retention.watermarks TO s3_retention_writer;
