-- name: insert_waits
-- Of each tenant what the plan that was just decided leaves, although it is due: a row for each of which
-- something waits, and so no more rows than there are pauses and commands.
INSERT INTO s3_retention.tenant_waits (interval_id, generation, tenant, num_paused, num_over_cap)
SELECT
    %(interval_id)s AS interval_id,
    %(generation)s AS generation,
    plan_decisions.tenant,
    count(*) FILTER (WHERE plan_decisions.reason = 'tenant_paused') AS num_paused,
    count(*) FILTER (WHERE plan_decisions.reason = 'over_tenant_cap') AS num_over_cap
FROM plan_decisions
WHERE plan_decisions.tenant IS NOT NULL AND plan_decisions.reason IN ('tenant_paused', 'over_tenant_cap')
GROUP BY plan_decisions.tenant;
