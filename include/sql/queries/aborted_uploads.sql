-- name: insert_aborted_uploads
-- One row for each unfinished upload that was aborted, or had ended by itself when it was to be aborted.
INSERT INTO s3_retention.aborted_uploads (
    policy, interval_id, dag_id, run_id, bucket, key, upload_id, initiated_at, outcome, request_id
)
SELECT
    %(policy)s AS policy,
    %(interval_id)s AS interval_id,
    %(dag_id)s AS dag_id,
    %(run_id)s AS run_id,
    %(bucket)s AS bucket,
    one.key,
    one.upload_id,
    one.initiated_at,
    one.outcome,
    one.request_id
FROM
    unnest(
        %(keys)b::text[],
        %(upload_ids)b::text[],
        %(initiated_ats)b::timestamptz[],
        %(outcomes)b::text[],
        %(request_ids)b::text[]
    ) AS one (key, upload_id, initiated_at, outcome, request_id)
ORDER BY one.upload_id
ON CONFLICT DO NOTHING;

-- name: count_aborted_uploads
-- The uploads that a run has aborted.
SELECT count(*) AS num_aborted
FROM s3_retention.aborted_uploads
WHERE
    aborted_uploads.run_id = %(run_id)s
    AND aborted_uploads.dag_id = %(dag_id)s
    AND aborted_uploads.outcome = 'aborted';
