-- Commands by their place in their chunk.
-- Alembic runs this file in one transaction.

-- Commands ------------------------------------------------------------------------------------------------
-- By its place, from 1, a worker names a command to the ledger, which has all else of it. OFFSET 0: an id is
-- computed once for a command, and not for each place where a query names it.
CREATE OR REPLACE VIEW s3_retention.commands AS
SELECT
    chunks.chunk_id,
    chunks.batch_id,
    chunks.interval_id,
    chunks.generation,
    intervals.policy,
    coalesce(replays.policy_version, intervals.policy_version) AS policy_version,
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
FROM s3_retention.chunks
INNER JOIN s3_retention.intervals ON chunks.interval_id = intervals.interval_id
LEFT JOIN s3_retention.replays
    ON chunks.interval_id = replays.interval_id AND chunks.generation = replays.generation
CROSS JOIN
    LATERAL unnest(
        chunks.keys, chunks.version_ids, chunks.etags, chunks.sizes,
        chunks.last_modified_ats, chunks.due_ats, chunks.group_keys
    ) WITH ORDINALITY AS one (key, version_id, etag, size, last_modified_at, due_at, group_key, place)
CROSS JOIN
    LATERAL ( -- noqa: ST05
        SELECT
            s3_retention.operation_id(
                chunks.bucket, one.key, coalesce(replays.policy_version, intervals.policy_version)
            ) AS operation_id
        FROM (SELECT 1) AS once
        OFFSET 0 -- noqa: AM09
    ) AS operation
CROSS JOIN LATERAL ( -- noqa: ST05
    SELECT
        s3_retention.command_id(
            operation.operation_id, one.version_id, one.etag, one.last_modified_at, one.size
        ) AS command_id
    FROM (SELECT 1) AS once
    OFFSET 0 -- noqa: AM09
) AS command;

-- OFFSET 0 keeps each look-up what it is, one descent of the unique index per command: as a join, the planner
-- may compare every command with every entry, since a partition is filled before it was ever analysed.
CREATE OR REPLACE VIEW s3_retention.unfinished_commands AS
SELECT
    commands.chunk_id,
    commands.batch_id,
    commands.interval_id,
    commands.generation,
    commands.policy,
    commands.policy_version,
    commands.tenant,
    commands.bucket,
    commands.key,
    commands.version_id,
    commands.etag,
    commands.size,
    commands.last_modified_at,
    commands.due_at,
    commands.group_key,
    commands.operation_id,
    commands.command_id,
    commands.place
FROM s3_retention.commands
WHERE
    NOT EXISTS (
        SELECT 1 FROM s3_retention.ledger_entries AS entry
        WHERE
            entry.interval_id = commands.interval_id
            AND entry.generation = commands.generation
            AND entry.command_id = commands.command_id
        OFFSET 0 -- noqa: AM09
    )
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.quarantine AS parked
        WHERE
            parked.interval_id = commands.interval_id
            AND parked.generation = commands.generation
            AND parked.command_id = commands.command_id
        OFFSET 0 -- noqa: AM09
    );
