-- name: append_row_entries
-- What became of rows, in the transaction that settles their commands under the fence. What is there already
-- is left as it is.
INSERT INTO s3_retention.row_entries (interval_id, generation, command_id, row_id, outcome, batch_id, fence)
SELECT
    done.interval_id,
    done.generation,
    done.command_id,
    done.row_id,
    done.outcome,
    %(batch_id)s AS batch_id,
    %(fence)s AS fence
FROM
    unnest(
        %(interval_ids)s::bigint[],
        %(generations)s::integer[],
        %(command_ids)s::bytea[],
        %(row_ids)s::text[],
        %(outcomes)s::text[]
    ) AS done (interval_id, generation, command_id, row_id, outcome)
ORDER BY done.command_id, done.row_id
ON CONFLICT DO NOTHING;

-- name: count_row_entries
-- What became of the rows of a run's batches.
SELECT
    row_entries.outcome,
    count(*) AS num_rows
FROM s3_retention.row_entries
INNER JOIN s3_retention.batches ON row_entries.batch_id = batches.batch_id
WHERE batches.run_id = %(run_id)s AND batches.dag_id = %(dag_id)s
GROUP BY row_entries.outcome;

-- name: count_rows_left
-- Rows that were attached while their object was being deleted, since a time, by policy.
SELECT
    batches.policy,
    count(*) AS num_rows,
    max(row_entries.settled_at) AS newest_at,
    (array_agg(row_entries.row_id ORDER BY row_entries.settled_at DESC))[1] AS row_id
FROM s3_retention.row_entries
INNER JOIN s3_retention.batches ON row_entries.batch_id = batches.batch_id
WHERE row_entries.outcome = 'left' AND row_entries.settled_at >= %(starts_at)s
GROUP BY batches.policy;
