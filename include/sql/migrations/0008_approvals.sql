-- Plans that wait for approval, the hash of a plan, and the canary of a new version.
-- Alembic runs this file in one transaction.

-- Hash of a plan ------------------------------------------------------------------------------------------
-- The texts as JSON, whose bytes do not hang on the encoding of a client; the times in the binary form of
-- their arrays, which does not hang on its time zone. docs/state_machine.md has it byte by byte. It costs
-- 1 us for each command, a sixteenth of a plan: it is computed where somebody is asked, not for each plan.
CREATE FUNCTION s3_retention.chunk_hash(
    bucket text, keys text[], version_ids text[], etags text[], sizes bigint[],
    last_modified_ats timestamptz[], due_ats timestamptz[]
) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
RETURN sha256(
    convert_to(
        array_to_json(ARRAY[bucket])::text || array_to_json(keys)::text || array_to_json(version_ids)::text
        || array_to_json(etags)::text || array_to_json(sizes)::text,
        'UTF8'
    ) || array_send(last_modified_ats) || array_send(due_ats)
);
COMMENT ON FUNCTION s3_retention.chunk_hash IS
'SHA-256 of one chunk: bucket, keys, version ids, ETags, sizes, last-modified times and due times.';

CREATE FUNCTION s3_retention.plan_hash(of_interval_id bigint, of_generation integer) RETURNS bytea
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT
        sha256(
            coalesce(
                string_agg(
                    s3_retention.chunk_hash(
                        chunks.bucket, chunks.keys, chunks.version_ids, chunks.etags, chunks.sizes,
                        chunks.last_modified_ats, chunks.due_ats
                    ), ''::bytea ORDER BY chunks.chunk_number
                ), ''::bytea
            )
        ) AS plan_hash
    FROM s3_retention.chunks
    WHERE chunks.interval_id = of_interval_id AND chunks.generation = of_generation;
END;
COMMENT ON FUNCTION s3_retention.plan_hash IS
'SHA-256 over the hashes of the chunks of a plan, in the order of their numbers.';

-- Canary --------------------------------------------------------------------------------------------------
ALTER TABLE s3_retention.batches DROP CONSTRAINT batches_batch_number_check;
ALTER TABLE s3_retention.batches ADD CONSTRAINT batches_batch_number_check CHECK (batch_number >= 0);
COMMENT ON COLUMN s3_retention.batches.batch_number IS
'From 1. 0 is the canary: while it is open, nothing else of its plan is dealt.';

-- Approvals -----------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.approvals (
    interval_id bigint NOT NULL REFERENCES s3_retention.intervals (interval_id),
    generation integer NOT NULL DEFAULT 0 CHECK (generation >= 0),
    plan_hash bytea NOT NULL CHECK (length(plan_hash) = 32),
    over_limits jsonb NOT NULL CHECK (jsonb_array_length(over_limits) >= 1),
    dag_id text NOT NULL,
    run_id text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    decision text CHECK (decision IN ('approved', 'rejected', 'timed_out')),
    decided_by text,
    decided_at timestamptz,
    decided_in_run text,
    PRIMARY KEY (interval_id, generation),
    CHECK (num_nulls(decision, decided_at, decided_in_run) IN (0, 3)),
    CHECK (decided_by IS NULL OR decision IN ('approved', 'rejected')),
    CHECK (asked_at <= decided_at)
);
COMMENT ON TABLE s3_retention.approvals IS
'Plans over a limit: asked once, decided once. While one is open, nothing of its plan is dealt.';
COMMENT ON COLUMN s3_retention.approvals.plan_hash IS
'What was asked about: plan_hash(interval_id, generation) computes it anew.';
COMMENT ON COLUMN s3_retention.approvals.over_limits IS
'Each limit that the plan exceeds: its name, the value of the plan, and the bound of the policy.';
COMMENT ON COLUMN s3_retention.approvals.decided_by IS
'Who answered, as Airflow knows; NULL where it does not, and where nobody did in time.';
COMMENT ON COLUMN s3_retention.approvals.decided_in_run IS
'The run of the same DAG in which it was answered; a later run may ask again.';

CREATE FUNCTION s3_retention.approval_decides_once() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER approvals_decide_once BEFORE UPDATE OR DELETE ON s3_retention.approvals
FOR EACH ROW EXECUTE FUNCTION s3_retention.approval_decides_once();
CREATE TRIGGER approvals_not_truncated BEFORE TRUNCATE ON s3_retention.approvals
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.approvals TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.approvals TO s3_retention_writer;
GRANT UPDATE (decision, decided_by, decided_at, decided_in_run) ON s3_retention.approvals
TO s3_retention_writer;
