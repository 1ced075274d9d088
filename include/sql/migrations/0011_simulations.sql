-- What a policy in mode simulate would delete.
-- Alembic runs this file in one transaction.

-- Simulations ---------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.simulations (
    simulation_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy text NOT NULL,
    policy_version text NOT NULL,
    rules_hash text NOT NULL,
    ends_at timestamptz NOT NULL,
    num_scanned bigint NOT NULL CHECK (num_scanned >= 0),
    num_due bigint NOT NULL CHECK (num_due >= 0),
    num_bytes numeric NOT NULL CHECK (num_bytes >= 0),
    plan_hash bytea NOT NULL CHECK (length(plan_hash) = 32),
    detail jsonb NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    simulated_at timestamptz NOT NULL DEFAULT s3_retention.clock()
);
CREATE INDEX simulations_policy ON s3_retention.simulations (policy, simulation_id);
COMMENT ON TABLE s3_retention.simulations IS
'What runs in mode simulate have found: one row each, of which no command came. Append-only.';
COMMENT ON COLUMN s3_retention.simulations.plan_hash IS
'As plan_hash of the plan that an enforced run would have stored of the same objects.';
COMMENT ON COLUMN s3_retention.simulations.detail IS
'Objects and bytes per reason and prefix, a sample, groups of a single object, limits that are exceeded.';

CREATE TRIGGER simulations_append_only BEFORE UPDATE OR DELETE ON s3_retention.simulations
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER simulations_not_truncated BEFORE TRUNCATE ON s3_retention.simulations
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.simulations TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.simulations TO s3_retention_writer;
