-- name: insert_audit
-- An audit that has come to its end, in counts.
INSERT INTO s3_retention.audits (
    policy, policy_version, started_at, due_before, num_rows, num_objects, counts, dag_id, run_id, acted_by,
    note, num_parked
)
VALUES (
    %(policy)s, %(policy_version)s, %(started_at)s, %(due_before)s, %(num_rows)s, %(num_objects)s, %(counts)s,
    %(dag_id)s, %(run_id)s, %(acted_by)s, %(note)s, %(num_parked)s
)
RETURNING audit_id;

-- name: insert_audit_findings
-- What it has found of one kind, in its order; in the same transaction.
INSERT INTO s3_retention.audit_findings (
    audit_id, kind, place, bucket, key, version_id, row_id, since, state, detail
)
SELECT
    %(audit_id)s AS audit_id,
    %(kind)s AS kind,
    found.place,
    %(bucket)s AS bucket,
    found.key,
    found.version_id,
    found.row_id,
    found.since,
    found.state,
    found.detail
FROM
    unnest(
        %(keys)s::text[], %(version_ids)s::text[], %(row_ids)s::text[], %(sinces)s::timestamptz[],
        %(states)s::text[], %(reasons)s::text[]
    ) WITH ORDINALITY AS found (key, version_id, row_id, since, state, detail, place)
ORDER BY found.place;

-- name: list_audits
-- The last audits of a policy, the newest first.
SELECT
    audits.audit_id,
    audits.audited_at,
    audits.policy,
    audits.policy_version,
    audits.started_at,
    audits.due_before,
    audits.num_rows,
    audits.num_objects,
    audits.counts,
    audits.run_id,
    audits.acted_by,
    audits.note,
    audits.num_parked
FROM s3_retention.audits
WHERE audits.policy = %(policy)s
ORDER BY audits.audit_id DESC
LIMIT %(max_rows)s;

-- name: list_audit_findings
-- What one audit has found, by kind and in its order.
SELECT
    audit_findings.kind,
    audit_findings.bucket,
    audit_findings.key,
    audit_findings.version_id,
    audit_findings.row_id,
    audit_findings.since,
    audit_findings.state,
    audit_findings.detail
FROM s3_retention.audit_findings
WHERE audit_findings.audit_id = %(audit_id)s
ORDER BY audit_findings.kind, audit_findings.place;
