-- name: insert_pause
-- Pauses a tenant in one policy, or in all; one that is paused so already stays as it is.
INSERT INTO s3_retention.tenant_pauses (policy, tenant, reason, paused_by, dag_id, run_id)
VALUES (%(policy)s, %(tenant)s, %(reason)s, %(acted_by)s, %(dag_id)s, %(run_id)s)
ON CONFLICT DO NOTHING
RETURNING pause_id;

-- name: find_pause_of_run
-- What a run has paused before it was cleared.
SELECT tenant_pauses.pause_id FROM s3_retention.tenant_pauses
WHERE tenant_pauses.dag_id = %(dag_id)s AND tenant_pauses.run_id = %(run_id)s;

-- name: find_open_pause
-- The pause of this tenant in exactly this policy, or in all where it is NULL.
SELECT
    tenant_pauses.pause_id,
    tenant_pauses.paused_by
FROM s3_retention.tenant_pauses
WHERE
    tenant_pauses.lifted_at IS NULL
    AND tenant_pauses.tenant = %(tenant)s
    AND tenant_pauses.policy IS NOT DISTINCT FROM %(policy)s;

-- name: lift_pause
-- Lets a tenant go on, from the next plan on; once.
UPDATE s3_retention.tenant_pauses
SET lifted_by = %(acted_by)s, lifted_at = s3_retention.clock(), lift_reason = %(reason)s
WHERE
    tenant_pauses.lifted_at IS NULL
    AND tenant_pauses.tenant = %(tenant)s
    AND tenant_pauses.policy IS NOT DISTINCT FROM %(policy)s;

-- name: list_paused
-- Those of these tenants that are paused in a policy.
SELECT DISTINCT tenant_pauses.tenant
FROM s3_retention.tenant_pauses
WHERE
    tenant_pauses.lifted_at IS NULL
    AND (tenant_pauses.policy IS NULL OR tenant_pauses.policy = %(policy)s)
    AND tenant_pauses.tenant = any(%(tenants)s::text[]);

-- name: sum_open_pauses
-- Who is paused, by policy, and those who have been for the longest.
SELECT
    pauses.policy,
    count(*) AS num_tenants,
    min(pauses.paused_at) AS oldest_at,
    jsonb_agg(
        jsonb_build_object(
            'tenant', pauses.tenant,
            'paused_at', pauses.paused_at,
            'paused_by', pauses.paused_by,
            'reason', pauses.reason
        ) ORDER BY pauses.place
    ) FILTER (WHERE pauses.place <= %(max_rows)s) AS oldest
FROM (
    SELECT
        tenant_pauses.*,
        row_number() OVER (PARTITION BY tenant_pauses.policy ORDER BY tenant_pauses.pause_id) AS place
    FROM s3_retention.tenant_pauses
    WHERE tenant_pauses.lifted_at IS NULL
) AS pauses
GROUP BY pauses.policy
ORDER BY pauses.policy;
