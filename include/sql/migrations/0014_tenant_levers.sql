-- What a person may do to the deletes of one tenant: pause it, while all others go on; and what waits.
-- Alembic runs this file in one transaction.

-- Pauses --------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.tenant_pauses (
    pause_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy text CHECK (policy <> ''),
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> '' AND octet_length(tenant) <= 1024),
    reason text NOT NULL CHECK (btrim(reason) <> ''),
    paused_by text NOT NULL DEFAULT current_user,
    paused_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    dag_id text,
    run_id text,
    lifted_by text,
    lifted_at timestamptz,
    lift_reason text,
    CHECK (num_nulls(dag_id, run_id) IN (0, 2)),
    CHECK (num_nulls(lifted_by, lifted_at, lift_reason) IN (0, 3)),
    CHECK (btrim(lift_reason) <> ''),
    UNIQUE (dag_id, run_id)
);
CREATE UNIQUE INDEX tenant_pauses_one_open ON s3_retention.tenant_pauses (tenant, coalesce(policy, ''))
WHERE lifted_at IS NULL;
COMMENT ON TABLE s3_retention.tenant_pauses IS
'While a row is not lifted, nothing of its tenant is deleted; what is due waits. Written once, lifted once.';
COMMENT ON COLUMN s3_retention.tenant_pauses.policy IS 'NULL: every policy that tells tenants.';
COMMENT ON COLUMN s3_retention.tenant_pauses.tenant IS 'As the policy reads it, byte for byte.';

CREATE TRIGGER tenant_pauses_lifted_once BEFORE UPDATE OR DELETE ON s3_retention.tenant_pauses
FOR EACH ROW EXECUTE FUNCTION s3_retention.is_lifted_once();
CREATE TRIGGER tenant_pauses_not_truncated BEFORE TRUNCATE ON s3_retention.tenant_pauses
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Waits ---------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.tenant_waits (
    interval_id bigint NOT NULL REFERENCES s3_retention.intervals (interval_id),
    generation integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    num_paused bigint NOT NULL CHECK (num_paused >= 0),
    num_over_cap bigint NOT NULL CHECK (num_over_cap >= 0),
    CHECK (num_paused + num_over_cap > 0)
);
-- Not by the tenant: it may be too long for a row of a btree.
CREATE INDEX tenant_waits_plan ON s3_retention.tenant_waits (interval_id, generation);
COMMENT ON TABLE s3_retention.tenant_waits IS
'How much of a tenant is due and got no command in a plan: it is paused, or over its cap. Append-only.';
COMMENT ON COLUMN s3_retention.tenant_waits.generation IS
'0 for the first plan of an interval; a replay has the next one.';

CREATE TRIGGER tenant_waits_append_only BEFORE UPDATE OR DELETE ON s3_retention.tenant_waits
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER tenant_waits_not_truncated BEFORE TRUNCATE ON s3_retention.tenant_waits
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- People --------------------------------------------------------------------------------------------------
CREATE OR REPLACE VIEW s3_retention.acts AS
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
GROUP BY restores.acted_by, restores.bucket, restores.note, restores.dag_id, restores.run_id
UNION ALL
SELECT
    pauses.paused_at AS acted_at,
    pauses.paused_by AS acted_by,
    'paused a tenant' AS act,
    concat_ws(' of ', pauses.tenant, coalesce(pauses.policy, 'every policy')) AS subject,
    pauses.reason,
    pauses.dag_id,
    pauses.run_id,
    NULL AS num_objects
FROM s3_retention.tenant_pauses AS pauses
UNION ALL
SELECT
    pauses.lifted_at AS acted_at,
    pauses.lifted_by AS acted_by,
    'resumed a tenant' AS act,
    concat_ws(' of ', pauses.tenant, coalesce(pauses.policy, 'every policy')) AS subject,
    pauses.lift_reason AS reason,
    NULL AS dag_id,
    NULL AS run_id,
    NULL AS num_objects
FROM s3_retention.tenant_pauses AS pauses
WHERE pauses.lifted_at IS NOT NULL;

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.tenant_pauses, s3_retention.tenant_waits
TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.tenant_waits TO s3_retention_writer;
GRANT INSERT, UPDATE (lifted_by, lifted_at, lift_reason) ON s3_retention.tenant_pauses TO s3_retention_writer;
