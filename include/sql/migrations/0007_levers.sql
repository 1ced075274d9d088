-- What a person may do to the deletes: hold objects back, and stop everything.
-- Alembic runs this file in one transaction.

-- Legal holds ---------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.legal_holds (
    hold_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bucket text NOT NULL CHECK (bucket <> ''),
    scope text NOT NULL CHECK (scope IN ('bucket', 'prefix', 'key')),
    name text COLLATE "C" NOT NULL DEFAULT '',
    reason text NOT NULL CHECK (btrim(reason) <> ''),
    starts_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    ends_at timestamptz,
    placed_by text NOT NULL DEFAULT current_user,
    placed_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    dag_id text,
    run_id text,
    lifted_by text,
    lifted_at timestamptz,
    lift_reason text,
    CHECK ((scope = 'bucket') = (name = '')),
    CHECK (ends_at > starts_at),
    CHECK (num_nulls(dag_id, run_id) IN (0, 2)),
    CHECK (num_nulls(lifted_by, lifted_at, lift_reason) IN (0, 3)),
    CHECK (btrim(lift_reason) <> ''),
    UNIQUE (dag_id, run_id)
);
CREATE INDEX legal_holds_key ON s3_retention.legal_holds (bucket, name)
WHERE lifted_at IS NULL AND scope = 'key';
COMMENT ON TABLE s3_retention.legal_holds IS
'Objects that no policy may delete, until ends_at or until lifted. Written once, lifted once.';
COMMENT ON COLUMN s3_retention.legal_holds.name IS
'The key or the prefix, byte for byte; empty for a whole bucket.';
COMMENT ON COLUMN s3_retention.legal_holds.ends_at IS 'NULL: until it is lifted.';

CREATE FUNCTION s3_retention.is_lifted_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF tg_op = 'UPDATE' AND old.lifted_at IS NULL AND new.lifted_at IS NOT NULL
    AND (to_jsonb(new) - '{lifted_by,lifted_at,lift_reason}'::text[])
    = (to_jsonb(old) - '{lifted_by,lifted_at,lift_reason}'::text[]) THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION 'table % is only written and lifted, each once: % is refused', tg_table_name, tg_op
    USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER legal_holds_lifted_once BEFORE UPDATE OR DELETE ON s3_retention.legal_holds
FOR EACH ROW EXECUTE FUNCTION s3_retention.is_lifted_once();
CREATE TRIGGER legal_holds_not_truncated BEFORE TRUNCATE ON s3_retention.legal_holds
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

CREATE VIEW s3_retention.active_holds AS
SELECT
    legal_holds.hold_id,
    legal_holds.bucket,
    legal_holds.scope,
    legal_holds.name,
    legal_holds.reason,
    legal_holds.starts_at,
    legal_holds.ends_at,
    legal_holds.placed_by,
    legal_holds.placed_at
FROM s3_retention.legal_holds
WHERE
    legal_holds.lifted_at IS NULL
    AND legal_holds.starts_at <= s3_retention.clock()
    AND (legal_holds.ends_at IS NULL OR legal_holds.ends_at > s3_retention.clock());
COMMENT ON VIEW s3_retention.active_holds IS
'The legal holds in force at this moment, by the clock of the ledger.';

-- Kill switches -------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.kill_switches (
    switch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy text CHECK (policy <> ''),
    reason text NOT NULL CHECK (btrim(reason) <> ''),
    set_by text NOT NULL DEFAULT current_user,
    set_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
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
CREATE UNIQUE INDEX kill_switches_one_open ON s3_retention.kill_switches (coalesce(policy, ''))
WHERE lifted_at IS NULL;
COMMENT ON TABLE s3_retention.kill_switches IS
'While a row is not lifted, nothing is deleted: running batches stop between two requests.';
COMMENT ON COLUMN s3_retention.kill_switches.policy IS 'NULL: every policy.';

CREATE TRIGGER kill_switches_lifted_once BEFORE UPDATE OR DELETE ON s3_retention.kill_switches
FOR EACH ROW EXECUTE FUNCTION s3_retention.is_lifted_once();
CREATE TRIGGER kill_switches_not_truncated BEFORE TRUNCATE ON s3_retention.kill_switches
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.legal_holds, s3_retention.active_holds, s3_retention.kill_switches
TO s3_retention_writer, s3_retention_reader;
GRANT INSERT, UPDATE (lifted_by, lifted_at, lift_reason)
ON s3_retention.legal_holds, s3_retention.kill_switches TO s3_retention_writer;
