-- name: insert_claim
-- Who holds what under which fence.
INSERT INTO s3_retention.claims (
    interval_id, generation, batch_id, fence, dag_id, run_id, task_id, map_index, try_number
) VALUES (
    %(interval_id)s,
    %(generation)s,
    %(batch_id)s,
    %(fence)s,
    %(dag_id)s,
    %(run_id)s,
    %(task_id)s,
    %(map_index)s,
    %(try_number)s
);
