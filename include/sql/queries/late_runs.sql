-- name: insert_late_run
-- Airflow may call twice for one run: it is flagged once.
INSERT INTO s3_retention.late_runs (policy, dag_id, run_id, due_at, deadline_at, state)
VALUES (%(policy)s, %(dag_id)s, %(run_id)s, %(due_at)s, %(deadline_at)s, %(state)s)
ON CONFLICT DO NOTHING
RETURNING run_id;
