-- name: list_command_rows
-- The rows of some commands, each named by its interval, its generation and its id.
SELECT
    command_rows.command_id,
    command_rows.named,
    command_rows.row_ids,
    command_rows.detached_ats
FROM s3_retention.command_rows
INNER JOIN
    unnest(%(interval_ids)s::bigint[], %(generations)s::integer[], %(command_ids)s::bytea[])
        AS wanted (interval_id, generation, command_id)
    ON
        command_rows.interval_id = wanted.interval_id
        AND command_rows.generation = wanted.generation
        AND command_rows.command_id = wanted.command_id;

-- name: insert_for_redrive
-- The rows of a command that a redrive has made in the place of another one.
INSERT INTO s3_retention.command_rows (interval_id, generation, command_id, named, row_ids, detached_ats)
VALUES (
    %(interval_id)s,
    %(generation)s,
    %(command_id)s,
    %(named)s,
    %(row_ids)s,
    %(detached_ats)s
);
