-- What a store does with a condition, the rate that it is asked at, and the attempts that it let fail.
-- Alembic runs this file in one transaction.

-- Attempts ------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.failed_attempts (
    batch_id bigint NOT NULL REFERENCES s3_retention.batches (batch_id),
    fence bigint NOT NULL,
    failure_class text NOT NULL,
    num_attempts bigint NOT NULL CHECK (num_attempts >= 1),
    PRIMARY KEY (batch_id, fence, failure_class)
);
COMMENT ON TABLE s3_retention.failed_attempts IS
'Attempts at single objects that failed under a claim, by class; also where a later attempt succeeded.';

-- Conditions ----------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.store_probes (
    endpoint text NOT NULL,
    aws_conn_id text NOT NULL,
    bucket text NOT NULL,
    versioning text NOT NULL,
    etag_condition text NOT NULL CHECK (etag_condition IN ('honoured', 'ignored', 'refused')),
    probed_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    valid_until timestamptz NOT NULL,
    PRIMARY KEY (endpoint, aws_conn_id, bucket, versioning),
    CHECK (valid_until > probed_at)
);
COMMENT ON TABLE s3_retention.store_probes IS
'What a store did with a delete whose ETag was wrong. Without a valid row the next batch finds it out.';
COMMENT ON COLUMN s3_retention.store_probes.versioning IS
'What the store said of the versions of the bucket; empty where it said nothing.';

-- Rates ---------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.request_rates (
    endpoint text NOT NULL,
    bucket text NOT NULL,
    prefix text NOT NULL,
    keys_per_second double precision CHECK (keys_per_second > 0),
    reserved_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    next_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    adjusted_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    slowed_at timestamptz,
    PRIMARY KEY (endpoint, bucket, prefix)
);
COMMENT ON TABLE s3_retention.request_rates IS
'At which rate all workers together delete under a prefix. No row, or no rate: as fast as the store answers.';
COMMENT ON COLUMN s3_retention.request_rates.reserved_at IS
'The turn that was given last: each worker reserves its keys before it sends them.';
COMMENT ON COLUMN s3_retention.request_rates.next_at IS 'The turn that is given next, unless it has passed.';

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.failed_attempts, s3_retention.store_probes, s3_retention.request_rates
TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.failed_attempts, s3_retention.store_probes, s3_retention.request_rates
TO s3_retention_writer;
GRANT UPDATE (num_attempts) ON s3_retention.failed_attempts TO s3_retention_writer;
GRANT UPDATE (etag_condition, probed_at, valid_until) ON s3_retention.store_probes TO s3_retention_writer;
GRANT UPDATE (keys_per_second, reserved_at, next_at, adjusted_at, slowed_at)
ON s3_retention.request_rates TO s3_retention_writer;
