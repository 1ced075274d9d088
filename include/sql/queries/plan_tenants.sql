-- name: create_plan_layout
-- In which batch each chunk goes, where several tenants share a plan; empty for any other plan.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_layout (
    chunk_place bigint NOT NULL,
    batch_number bigint NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_layout
-- A plan starts from nothing.
TRUNCATE plan_layout;

-- name: cap_tenants
-- Of each tenant what has been due the longest, up to the cap of an interval; what its earlier plans hold
-- counts, so that a replay adds nothing beyond it. The rest stays due, and the next interval plans it.
WITH earlier AS (
    SELECT
        chunks.tenant,
        sum(chunks.num_commands) AS num_commands
    FROM s3_retention.chunks
    WHERE chunks.interval_id = %(interval_id)s::bigint
    GROUP BY chunks.tenant
),

ranked AS (
    SELECT
        plan_decisions.ctid AS at,
        plan_decisions.tenant,
        row_number() OVER (
            PARTITION BY plan_decisions.tenant
            ORDER BY plan_decisions.due_at, plan_decisions.key, plan_decisions.version_id
        ) AS place
    FROM plan_decisions
    WHERE plan_decisions.reason = 'due'
)

UPDATE plan_decisions
SET reason = 'over_tenant_cap'
FROM ranked
LEFT JOIN earlier ON ranked.tenant = earlier.tenant
WHERE
    plan_decisions.ctid = ranked.at
    AND ranked.place + coalesce(earlier.num_commands, 0) > %(max_commands)s::bigint;

-- name: find_largest_share
-- Of all candidates of one tenant, the part that is due, where that part is the largest; no row: no tenants.
SELECT (count(*) FILTER (WHERE plan_decisions.reason = 'due'))::double precision / count(*) AS share
FROM plan_decisions
WHERE plan_decisions.tenant IS NOT NULL
GROUP BY plan_decisions.tenant
ORDER BY share DESC
LIMIT 1;

-- name: sum_by_tenant
-- Of what is due, the tenants with the most of it; and what waits over the cap, or for a pause.
SELECT
    plan_decisions.tenant,
    count(*) FILTER (WHERE plan_decisions.reason = 'due') AS num_objects,
    coalesce(sum(plan_decisions.size) FILTER (WHERE plan_decisions.reason = 'due'), 0) AS num_bytes,
    count(*) FILTER (WHERE plan_decisions.reason = 'over_tenant_cap') AS num_over_cap,
    count(*) FILTER (WHERE plan_decisions.reason = 'tenant_paused') AS num_paused
FROM plan_decisions
WHERE
    plan_decisions.tenant IS NOT NULL
    AND plan_decisions.reason IN ('due', 'over_tenant_cap', 'tenant_paused')
GROUP BY plan_decisions.tenant
ORDER BY num_objects DESC, plan_decisions.tenant ASC
LIMIT %(max_rows)s;

-- name: are_several_tenants
-- Whether more than one tenant has a part in the plan that was cut.
SELECT coalesce(min(plan_chunks.tenant) <> max(plan_chunks.tenant), FALSE) AS are_several FROM plan_chunks;

-- name: lay_chunks
-- By turns: the first chunk of each tenant, then the second of each that has one; a tenant of weight 3 lays
-- three in each turn, and all tenants their first one before anybody's second. Batches are filled in this
-- order, each up to its size in commands, so that their number goes by the commands and not by the tenants. A
-- tenant's own chunks take their turns in strides, as many as its batches if it were alone: each batch
-- spreads over its keys. A batch begins where the one before is full: one step for each batch, by a binary
-- search in the running totals.
WITH RECURSIVE counted AS (
    SELECT
        plan_chunks.chunk_place,
        plan_chunks.tenant,
        plan_chunks.num_commands,
        row_number() OVER (PARTITION BY plan_chunks.tenant ORDER BY plan_chunks.chunk_place) - 1 AS number,
        ceil(
            count(*) OVER (PARTITION BY plan_chunks.tenant) / %(chunks_per_batch)s::numeric
        )::bigint AS stride
    FROM plan_chunks
),

turns AS (
    SELECT
        counted.*,
        row_number() OVER (
            PARTITION BY counted.tenant
            ORDER BY mod(counted.number, counted.stride), counted.number
        ) AS turn
    FROM counted
),

laid AS (
    SELECT
        turns.chunk_place,
        sum(turns.num_commands) OVER (
            ORDER BY
                (turns.turn - 1) / coalesce(weights.weight, 1)::double precision,
                turns.tenant,
                turns.turn
        )::bigint AS ends_at
    FROM turns
    LEFT JOIN unnest(%(tenants)s::text[], %(weights)s::integer[]) AS weights (tenant, weight)
        ON turns.tenant = weights.tenant
),

totals AS MATERIALIZED (
    SELECT
        array_agg(laid.ends_at ORDER BY laid.ends_at) AS ends,
        max(laid.ends_at) AS num_commands
    FROM laid
),

begun AS (
    SELECT 0::bigint AS starts_at
    UNION ALL
    SELECT totals.ends[width_bucket(begun.starts_at + %(batch_size)s::bigint, totals.ends)] AS starts_at
    FROM begun
    CROSS JOIN totals
    WHERE begun.starts_at + %(batch_size)s::bigint < totals.num_commands
),

starts AS MATERIALIZED (
    SELECT array_agg(begun.starts_at ORDER BY begun.starts_at) AS places FROM begun
)

INSERT INTO plan_layout (chunk_place, batch_number)
SELECT
    laid.chunk_place,
    width_bucket(laid.ends_at - 1, starts.places) AS batch_number
FROM laid
CROSS JOIN starts;
