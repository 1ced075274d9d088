-- name: find_condition
-- What is known of a store and still holds. After a clock jumped back, nobody knows for how long it would.
SELECT etag_condition FROM s3_retention.store_probes
WHERE
    endpoint = %(endpoint)s
    AND aws_conn_id = %(aws_conn_id)s
    AND bucket = %(bucket)s
    AND versioning = %(versioning)s
    AND s3_retention.clock() BETWEEN probed_at AND valid_until;

-- name: remember_condition
-- The last probe counts: a store, or the proxy before it, may have been exchanged.
INSERT INTO s3_retention.store_probes (
    endpoint, aws_conn_id, bucket, versioning, etag_condition, valid_until
) VALUES (
    %(endpoint)s,
    %(aws_conn_id)s,
    %(bucket)s,
    %(versioning)s,
    %(etag_condition)s,
    s3_retention.clock() + %(valid_for)s
)
ON CONFLICT (endpoint, aws_conn_id, bucket, versioning) DO UPDATE SET
    etag_condition = excluded.etag_condition,
    probed_at = s3_retention.clock(),
    valid_until = excluded.valid_until;
