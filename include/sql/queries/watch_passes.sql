-- name: insert_pass
-- What one pass did; that it is here is the heartbeat of the scheduler.
INSERT INTO s3_retention.watch_passes (run_id, did)
VALUES (%(run_id)s, %(did)s);
