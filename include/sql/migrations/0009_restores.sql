-- What was brought back: the delete markers that a restore has removed, and why others stayed.
-- Alembic runs this file in one transaction.

-- Restores ------------------------------------------------------------------------------------------------
CREATE TABLE s3_retention.restores (
    restore_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    interval_id bigint NOT NULL,
    generation integer NOT NULL,
    command_id bytea NOT NULL CHECK (length(command_id) = 32),
    operation_id bytea NOT NULL CHECK (length(operation_id) = 32),
    bucket text NOT NULL,
    key text COLLATE "C" NOT NULL,
    marker_version_id text,
    outcome text NOT NULL CHECK (
        outcome IN (
            'restored', 'already_restored', 'newer_version', 'marker_gone', 'purged', 'bucket_unversioned',
            'null_marker', 'no_marker_recorded', 'failed'
        )
    ),
    failure_class text,
    code text,
    request_id text,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    acted_by text NOT NULL,
    note text,
    settled_at timestamptz NOT NULL DEFAULT s3_retention.clock(),
    CHECK ((outcome = 'failed') = (failure_class IS NOT NULL)),
    CHECK (outcome <> 'restored' OR marker_version_id IS NOT NULL),
    UNIQUE (run_id, dag_id, interval_id, generation, command_id, outcome)
);
CREATE UNIQUE INDEX restores_once ON s3_retention.restores (interval_id, generation, command_id)
WHERE outcome = 'restored';
COMMENT ON TABLE s3_retention.restores IS
'What a restore did about each ledger entry that it selected. An entry is restored once. Append-only.';
COMMENT ON COLUMN s3_retention.restores.marker_version_id IS
'The delete marker that the ledger entry had recorded.';

CREATE TRIGGER restores_append_only BEFORE UPDATE OR DELETE ON s3_retention.restores
FOR EACH ROW EXECUTE FUNCTION s3_retention.refuse_change();
CREATE TRIGGER restores_not_truncated BEFORE TRUNCATE ON s3_retention.restores
FOR EACH STATEMENT EXECUTE FUNCTION s3_retention.refuse_change();

-- Grants --------------------------------------------------------------------------------------------------
GRANT SELECT ON s3_retention.restores TO s3_retention_writer, s3_retention_reader;
GRANT INSERT ON s3_retention.restores TO s3_retention_writer;
