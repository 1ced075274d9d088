-- name: hash_plan
-- As the function plan_hash, of a plan that is cut and not stored; the canary is its first chunk.
SELECT
    sha256(
        coalesce(
            string_agg(
                s3_retention.chunk_hash(
                    one.bucket, one.keys, one.version_ids, one.etags, one.sizes, one.last_modified_ats,
                    one.due_ats
                ), ''::bytea ORDER BY one.place
            ), ''::bytea
        )
    ) AS plan_hash
FROM (
    SELECT
        -1 AS place,
        plan_canary.bucket,
        plan_canary.keys,
        plan_canary.version_ids,
        plan_canary.etags,
        plan_canary.sizes,
        plan_canary.last_modified_ats,
        plan_canary.due_ats
    FROM plan_canary
    UNION ALL
    SELECT
        plan_chunks.chunk_place AS place,
        plan_chunks.bucket,
        plan_chunks.keys,
        plan_chunks.version_ids,
        plan_chunks.etags,
        plan_chunks.sizes,
        plan_chunks.last_modified_ats,
        plan_chunks.due_ats
    FROM plan_chunks
) AS one;

-- name: sum_by_reason
-- Objects and bytes per reason, with the oldest and the newest reference time.
SELECT
    plan_decisions.reason,
    count(*) AS num_objects,
    sum(plan_decisions.size) AS num_bytes,
    min(plan_decisions.reference_at) AS oldest_at,
    max(plan_decisions.reference_at) AS newest_at
FROM plan_decisions
GROUP BY plan_decisions.reason
ORDER BY num_objects DESC, plan_decisions.reason ASC;

-- name: sum_by_prefix
-- Of what is due: objects and bytes by the first part of the key behind the prefix of the policy, the
-- largest first.
WITH due AS (
    SELECT
        split_part(substr(plan_decisions.key, length(%(prefix)s) + 1), '/', 1) AS part,
        plan_decisions.size,
        strpos(substr(plan_decisions.key, length(%(prefix)s) + 1), '/') > 0 AS is_folder
    FROM plan_decisions
    WHERE plan_decisions.reason = 'due'
)

SELECT
    %(prefix)s || CASE WHEN due.is_folder THEN due.part || '/' ELSE '' END AS prefix,
    count(*) AS num_objects,
    sum(due.size) AS num_bytes
FROM due
GROUP BY %(prefix)s || CASE WHEN due.is_folder THEN due.part || '/' ELSE '' END
ORDER BY num_objects DESC, prefix ASC
LIMIT %(max_rows)s;

-- name: sum_by_storage_class
-- Of what is due, by storage class. Where the class bills for longer than the object will have lived, by its
-- age since it was written: how many, and for how many byte-days; each counts at least the bytes that its
-- class bills.
SELECT
    coalesce(due.storage_class, 'STANDARD') AS storage_class,
    count(*) AS num_objects,
    sum(due.size) AS num_bytes,
    count(*) FILTER (WHERE due.num_days_left > 0) AS num_early,
    coalesce(sum(due.num_days_left * greatest(due.size, due.min_bytes)), 0) AS num_byte_days
FROM (
    SELECT
        plan_decisions.storage_class,
        plan_decisions.size,
        billed.min_bytes,
        greatest(
            0,
            billed.min_days
            - extract(EPOCH FROM s3_retention.clock() - plan_decisions.last_modified_at) / 86400
        ) AS num_days_left
    FROM plan_decisions
    LEFT JOIN
        unnest(%(names)s::text[], %(min_days)s::integer[], %(min_bytes)s::bigint[])
            AS billed (name, min_days, min_bytes)
        ON plan_decisions.storage_class = billed.name
    WHERE plan_decisions.reason = 'due'
) AS due
GROUP BY coalesce(due.storage_class, 'STANDARD')
ORDER BY num_objects DESC, storage_class ASC;

-- name: list_due
-- The first of what would go, the longest due before all.
SELECT
    plan_decisions.key,
    plan_decisions.version_id,
    plan_decisions.size,
    plan_decisions.due_at
FROM plan_decisions
WHERE plan_decisions.reason = 'due'
ORDER BY plan_decisions.due_at, plan_decisions.key
LIMIT %(max_rows)s;

-- name: count_lonely_groups
-- Groups of a keep rule with a single object: it is always the newest, and never goes.
SELECT count(*) AS num_groups
FROM (
    SELECT 1 FROM plan_decisions
    WHERE plan_decisions.group_key IS NOT NULL
    GROUP BY plan_decisions.group_key
    HAVING count(*) = 1
) AS lonely;

-- name: insert_simulation
-- What a run has found; nothing of the queue of commands is written.
INSERT INTO s3_retention.simulations (
    policy, policy_version, rules_hash, ends_at, num_scanned, num_due, num_bytes, plan_hash, detail, dag_id,
    run_id
)
VALUES (
    %(policy)s, %(policy_version)s, %(rules_hash)s, %(ends_at)s, %(num_scanned)s, %(num_due)s, %(num_bytes)s,
    %(plan_hash)s, %(detail)s, %(dag_id)s, %(run_id)s
);

-- name: list_simulations
-- The last simulations of a policy, the newest first.
SELECT
    simulations.simulated_at,
    simulations.policy,
    simulations.policy_version,
    simulations.ends_at,
    simulations.num_scanned,
    simulations.num_due,
    simulations.num_bytes,
    encode(simulations.plan_hash, 'hex') AS plan_hash,
    simulations.detail,
    simulations.run_id
FROM s3_retention.simulations
WHERE simulations.policy = %(policy)s
ORDER BY simulations.simulation_id DESC
LIMIT %(max_rows)s;
