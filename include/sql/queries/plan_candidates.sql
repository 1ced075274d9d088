-- name: create_plan_candidates
-- The candidates of one scan, in a table of this session alone: a crash leaves nothing behind.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_candidates (
    bucket text NOT NULL,
    key text COLLATE "C" NOT NULL,
    version_id text,
    etag text,
    size bigint NOT NULL,
    last_modified_at timestamptz NOT NULL,
    reference_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    group_key text COLLATE "C",
    storage_class text,
    tenant text COLLATE "C",
    kept_by text
) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_candidates
-- A scan starts from nothing.
TRUNCATE plan_candidates;

-- name: copy_plan_candidates
-- Takes one page of a listing.
COPY plan_candidates (
    bucket, key, version_id, etag, size, last_modified_at, reference_at, due_at, group_key, storage_class,
    tenant
) FROM STDIN WITH (FORMAT "binary");

-- name: create_plan_open_commands
-- What other open plans of the policy hold and have not ended.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_open_commands (
    bucket text NOT NULL,
    key text COLLATE "C" NOT NULL,
    version_id text,
    etag text,
    size bigint NOT NULL,
    last_modified_at timestamptz NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: create_plan_open_commands_key
-- By hash: a key may be too long for a row of a btree.
CREATE INDEX IF NOT EXISTS plan_open_commands_key ON plan_open_commands USING hash (key);

-- name: clear_plan_open_commands
-- A decision starts from nothing.
TRUNCATE plan_open_commands;

-- name: copy_open_commands
-- One look for each decision, under the lock of the watermark: no other plan is stored meanwhile.
INSERT INTO plan_open_commands (bucket, key, version_id, etag, size, last_modified_at)
SELECT
    todo.bucket,
    todo.key,
    todo.version_id,
    todo.etag,
    todo.size,
    todo.last_modified_at
FROM s3_retention.batches
INNER JOIN s3_retention.unfinished_commands AS todo ON batches.batch_id = todo.batch_id
WHERE batches.policy = %(policy)s AND batches.closed_at IS NULL;

-- name: create_plan_ripe
-- The parked rows whose lock has ended, which this plan may take over.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_ripe (
    quarantine_id bigint NOT NULL,
    interval_id bigint NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_ripe
-- A decision starts from nothing.
TRUNCATE plan_ripe;

-- name: hold_ripe_locks
-- Held until the plan is stored or given up, so that no redrive takes them meanwhile; one that a redrive has
-- is left to it.
WITH held AS (
    SELECT
        quarantine.quarantine_id,
        quarantine.interval_id
    FROM s3_retention.quarantine
    WHERE
        quarantine.policy = %(policy)s
        AND quarantine.resolved_at IS NULL
        AND quarantine.redrive_batch_id IS NULL
        AND quarantine.failure_class = 'locked'
        AND quarantine.not_before <= s3_retention.clock()
    ORDER BY quarantine.quarantine_id
    FOR UPDATE SKIP LOCKED
)

INSERT INTO plan_ripe (quarantine_id, interval_id)
SELECT
    held.quarantine_id,
    held.interval_id
FROM held;

-- name: widen_work_mem
-- A decision sorts the whole scan: in memory, where it fits. To the end of the transaction.
SELECT set_config('work_mem', '64MB', TRUE);

-- name: create_plan_decisions
-- What becomes of each candidate, and why.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_decisions (
    LIKE plan_candidates,
    reason text NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_decisions
-- A decision starts from nothing.
TRUNCATE plan_decisions;

-- name: decide_candidates
-- Keep rules see the whole group, due or not: the newest of each group stay, whatever their age. A key that
-- the listing named twice counts once, by its newest incarnation; where the scan has seen that there is none,
-- none is looked for. An open quarantine row keeps its object, unless it waits for a lock that has ended, and
-- so do a legal hold and an open command of another plan. A version is known by its id: to lock it changes
-- its time on some stores. Only a replay has a lower bound, and earlier plans
-- of its interval: what one of them has settled is not repeated. What nothing else keeps waits where its
-- tenant is paused. Whether any is parked, held or paused at all is asked once, and not for each candidate;
-- which hold covers it is asked of hash tables, by the whole key and by its beginning of each length that a
-- held prefix has: a bucket's is 0.
WITH known AS MATERIALIZED (
    SELECT
        exists(
            SELECT 1 FROM s3_retention.quarantine
            WHERE quarantine.policy = %(policy)s AND quarantine.resolved_at IS NULL
        ) AS are_parked,
        exists(SELECT 1 FROM s3_retention.active_holds) AS are_on_hold,
        exists(
            SELECT 1 FROM s3_retention.tenant_pauses AS pauses
            WHERE pauses.lifted_at IS NULL AND (pauses.policy IS NULL OR pauses.policy = %(policy)s)
        ) AS are_paused,
        exists(SELECT 1 FROM plan_open_commands) AS are_held
),

held_lengths AS MATERIALIZED (
    SELECT DISTINCT length(active_holds.name) AS num_characters
    FROM s3_retention.active_holds
    WHERE active_holds.scope <> 'key'
)

INSERT INTO plan_decisions (
    bucket, key, version_id, etag, size, last_modified_at, reference_at, due_at, group_key,
    storage_class, tenant, reason
)
SELECT
    ranked.bucket,
    ranked.key,
    ranked.version_id,
    ranked.etag,
    ranked.size,
    ranked.last_modified_at,
    ranked.reference_at,
    ranked.due_at,
    CASE WHEN %(has_keepers)s::boolean THEN ranked.group_key END AS group_key,
    ranked.storage_class,
    ranked.tenant,
    CASE
        WHEN ranked.place <= %(keep_latest)s::integer THEN 'kept_latest'
        WHEN ranked.kept_by IS NOT NULL THEN ranked.kept_by
        WHEN ranked.due_at < %(due_from)s::timestamptz THEN 'outside_interval'
        WHEN %(due_from)s::timestamptz IS NOT NULL AND ranked.due_at >= %(ends_at)s THEN 'outside_interval'
        WHEN ranked.due_at >= %(ends_at)s THEN 'not_due'
        WHEN (SELECT known.are_on_hold FROM known) AND (
            (ranked.bucket, ranked.key) IN (
                SELECT
                    hold.bucket,
                    hold.name
                FROM s3_retention.active_holds AS hold
                WHERE hold.scope = 'key'
            )
            OR coalesce((
                SELECT
                    bool_or((ranked.bucket, left(ranked.key, held_lengths.num_characters)) IN (
                        SELECT
                            hold.bucket,
                            hold.name
                        FROM s3_retention.active_holds AS hold
                        WHERE hold.scope <> 'key'
                    ))
                FROM held_lengths
            ), FALSE)
        ) THEN 'held'
        WHEN (SELECT known.are_parked FROM known) AND EXISTS (
            SELECT 1 FROM s3_retention.quarantine AS parked
            WHERE
                parked.resolved_at IS NULL
                AND parked.policy = %(policy)s
                AND parked.bucket = ranked.bucket
                AND parked.key = ranked.key
                AND parked.version_id IS NOT DISTINCT FROM ranked.version_id
                AND (
                    ranked.version_id <> 'null' OR (
                        parked.etag IS NOT DISTINCT FROM ranked.etag
                        AND parked.size = ranked.size
                        AND parked.last_modified_at = ranked.last_modified_at
                    )
                )
                AND NOT EXISTS (
                    SELECT 1 FROM plan_ripe
                    WHERE plan_ripe.quarantine_id = parked.quarantine_id
                )
        ) THEN 'in_quarantine'
        WHEN (SELECT known.are_held FROM known) AND EXISTS (
            SELECT 1 FROM plan_open_commands AS held
            WHERE
                held.bucket = ranked.bucket
                AND held.key = ranked.key
                AND held.version_id IS NOT DISTINCT FROM ranked.version_id
                AND (
                    ranked.version_id <> 'null' OR (
                        held.etag IS NOT DISTINCT FROM ranked.etag
                        AND held.size = ranked.size
                        AND held.last_modified_at = ranked.last_modified_at
                    )
                )
        ) THEN 'in_other_plan'
        WHEN EXISTS (
            SELECT 1 FROM s3_retention.ledger_entries AS entry
            WHERE
                entry.interval_id = %(interval_id)s::bigint
                AND entry.generation = any(%(earlier_generations)s::integer[])
                AND entry.command_id = s3_retention.command_id(
                    s3_retention.operation_id(ranked.bucket, ranked.key, %(policy_version)s::text),
                    ranked.version_id, ranked.etag, ranked.last_modified_at, ranked.size
                )
            OFFSET 0 -- noqa: AM09
        ) THEN 'already_settled'
        WHEN (SELECT known.are_paused FROM known) AND ranked.tenant IN (
            SELECT pauses.tenant FROM s3_retention.tenant_pauses AS pauses
            WHERE pauses.lifted_at IS NULL AND (pauses.policy IS NULL OR pauses.policy = %(policy)s)
        ) THEN 'tenant_paused'
        ELSE 'due'
    END AS reason
FROM (
    SELECT
        one.*,
        row_number() OVER (
            PARTITION BY one.group_key
            ORDER BY one.reference_at DESC, one.last_modified_at DESC, one.key DESC
        ) AS place
    FROM (
        SELECT plan_candidates.* FROM plan_candidates
        WHERE %(are_distinct)s::boolean
        UNION ALL
        SELECT newest.* FROM (
            SELECT DISTINCT ON (plan_candidates.bucket, plan_candidates.key, plan_candidates.version_id) -- noqa: LT05,LT09
                plan_candidates.*
            FROM plan_candidates
            WHERE NOT %(are_distinct)s::boolean
            ORDER BY
                plan_candidates.bucket ASC,
                plan_candidates.key ASC,
                plan_candidates.version_id ASC,
                plan_candidates.last_modified_at DESC
        ) AS newest
    ) AS one
) AS ranked;

-- name: count_decisions
-- Counts and bytes per reason, and the first due time; stragglers were due before the interval starts.
SELECT
    plan_decisions.reason,
    count(*) AS num_objects,
    sum(plan_decisions.size) AS num_bytes,
    count(*) FILTER (WHERE plan_decisions.due_at < %(starts_at)s) AS num_due_before,
    min(plan_decisions.due_at) AS first_due_at
FROM plan_decisions
GROUP BY plan_decisions.reason
ORDER BY plan_decisions.reason;

-- name: create_plan_chunks
-- The plan as it will be stored, before its batches are there to hold it.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_chunks (
    chunk_place bigint NOT NULL,
    tenant text COLLATE "C",
    bucket text NOT NULL,
    keys text[] COLLATE "C" NOT NULL,
    version_ids text[] NOT NULL,
    etags text[] NOT NULL,
    sizes bigint[] NOT NULL,
    last_modified_ats timestamptz[] NOT NULL,
    due_ats timestamptz[] NOT NULL,
    group_keys text[] NOT NULL,
    num_commands bigint NOT NULL,
    num_bytes numeric NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: store_plan_etags_as_they_are
-- As the table chunks has them. By itself: CREATE TABLE takes no STORAGE before Postgres 16.
ALTER TABLE plan_chunks ALTER COLUMN etags SET STORAGE EXTERNAL;

-- name: clear_plan_chunks
-- A plan starts from nothing.
TRUNCATE plan_chunks;

-- name: cut_chunks
-- The due candidates in key order, a group of a keep rule together so that its keepers are looked at once,
-- cut into chunks of one row of arrays. Nothing is held in the client. The cast: small numbers are sent as
-- smallint.
WITH numbered AS (
    SELECT
        plan_decisions.*,
        row_number() OVER place_order - 1 AS place
    FROM plan_decisions
    WHERE plan_decisions.reason = 'due'
    WINDOW place_order AS (ORDER BY plan_decisions.group_key, plan_decisions.key, plan_decisions.version_id)
)

INSERT INTO plan_chunks (
    chunk_place, bucket, keys, version_ids, etags, sizes, last_modified_ats, due_ats, group_keys,
    num_commands, num_bytes
)
SELECT
    numbered.place / %(chunk_size)s::bigint AS chunk_place,
    min(numbered.bucket) AS bucket,
    array_agg(numbered.key ORDER BY numbered.place) AS keys,
    array_agg(numbered.version_id ORDER BY numbered.place) AS version_ids,
    array_agg(numbered.etag ORDER BY numbered.place) AS etags,
    array_agg(numbered.size ORDER BY numbered.place) AS sizes,
    array_agg(numbered.last_modified_at ORDER BY numbered.place) AS last_modified_ats,
    array_agg(numbered.due_at ORDER BY numbered.place) AS due_ats,
    array_agg(numbered.group_key ORDER BY numbered.place) AS group_keys,
    count(*) AS num_commands,
    sum(numbered.size) AS num_bytes
FROM numbered
GROUP BY numbered.place / %(chunk_size)s::bigint;

-- name: cut_chunks_by_tenant
-- As cut_chunks, but no chunk holds commands of two tenants. In the plan, each tenant's first chunk comes
-- before anybody's second one. Of one tenant alone the plan is that of cut_chunks.
WITH numbered AS (
    SELECT
        plan_decisions.*,
        row_number() OVER place_order - 1 AS place
    FROM plan_decisions
    WHERE plan_decisions.reason = 'due'
    WINDOW
        place_order AS (
            PARTITION BY plan_decisions.tenant
            ORDER BY plan_decisions.group_key, plan_decisions.key, plan_decisions.version_id
        )
)

INSERT INTO plan_chunks (
    chunk_place, tenant, bucket, keys, version_ids, etags, sizes, last_modified_ats, due_ats, group_keys,
    num_commands, num_bytes
)
SELECT
    row_number() OVER (ORDER BY numbered.place / %(chunk_size)s::bigint, numbered.tenant) - 1 AS chunk_place,
    numbered.tenant,
    min(numbered.bucket) AS bucket,
    array_agg(numbered.key ORDER BY numbered.place) AS keys,
    array_agg(numbered.version_id ORDER BY numbered.place) AS version_ids,
    array_agg(numbered.etag ORDER BY numbered.place) AS etags,
    array_agg(numbered.size ORDER BY numbered.place) AS sizes,
    array_agg(numbered.last_modified_at ORDER BY numbered.place) AS last_modified_ats,
    array_agg(numbered.due_at ORDER BY numbered.place) AS due_ats,
    array_agg(numbered.group_key ORDER BY numbered.place) AS group_keys,
    count(*) AS num_commands,
    sum(numbered.size) AS num_bytes
FROM numbered
GROUP BY numbered.tenant, numbered.place / %(chunk_size)s::bigint;

-- name: insert_batches
-- The chunks are dealt to the batches in turn: each batch spreads over the keys, and so over the partitions
-- of the store. Where several tenants share the plan, as plan_layout has it.
WITH whole AS (
    SELECT ceil(count(*) / %(chunks_per_batch)s::numeric)::bigint AS num_batches
    FROM plan_chunks
)

INSERT INTO s3_retention.batches (
    kind, policy, interval_id, generation, batch_number, num_commands, num_bytes
)
SELECT
    'cleanup' AS kind,
    %(policy)s AS policy,
    %(interval_id)s AS interval_id,
    %(generation)s AS generation,
    coalesce(plan_layout.batch_number, mod(plan_chunks.chunk_place, whole.num_batches) + 1) AS batch_number,
    sum(plan_chunks.num_commands) AS num_commands,
    sum(plan_chunks.num_bytes) AS num_bytes
FROM plan_chunks
CROSS JOIN whole
LEFT JOIN plan_layout ON plan_chunks.chunk_place = plan_layout.chunk_place
GROUP BY coalesce(plan_layout.batch_number, mod(plan_chunks.chunk_place, whole.num_batches) + 1)
ORDER BY batch_number;

-- name: insert_chunks
-- Each chunk into its batch, as insert_batches has dealt them.
INSERT INTO s3_retention.chunks (
    batch_id, interval_id, generation, chunk_number, tenant, bucket, keys, version_ids, etags, sizes,
    last_modified_ats, due_ats, group_keys, num_commands
)
SELECT
    batches.batch_id,
    batches.interval_id,
    batches.generation,
    plan_chunks.chunk_place + 1 AS chunk_number,
    plan_chunks.tenant,
    plan_chunks.bucket,
    plan_chunks.keys,
    plan_chunks.version_ids,
    plan_chunks.etags,
    plan_chunks.sizes,
    plan_chunks.last_modified_ats,
    plan_chunks.due_ats,
    plan_chunks.group_keys,
    plan_chunks.num_commands
FROM plan_chunks
LEFT JOIN plan_layout ON plan_chunks.chunk_place = plan_layout.chunk_place
INNER JOIN s3_retention.batches
    ON batches.batch_number = coalesce(plan_layout.batch_number, 1 + mod(plan_chunks.chunk_place, (
        SELECT count(*) FROM s3_retention.batches AS dealt
        WHERE dealt.interval_id = %(interval_id)s AND dealt.generation = %(generation)s
    )))
WHERE batches.interval_id = %(interval_id)s AND batches.generation = %(generation)s;

-- name: insert_keepers
-- The objects whose presence allows the deletes of their groups. What is kept within a span is so for the
-- newest alone, which is always kept_latest.
INSERT INTO s3_retention.keepers (interval_id, generation, group_key, bucket, key)
SELECT
    %(interval_id)s AS interval_id,
    %(generation)s AS generation,
    keeper.group_key,
    keeper.bucket,
    keeper.key
FROM plan_decisions AS keeper
WHERE
    keeper.group_key IS NOT NULL
    AND keeper.reason IN (
        'kept_latest', 'kept_daily', 'kept_weekly', 'kept_monthly', 'kept_yearly', 'kept_min_bytes',
        'kept_valid'
    )
    AND EXISTS (
        SELECT 1 FROM plan_decisions AS leaving
        WHERE leaving.group_key = keeper.group_key AND leaving.reason = 'due'
    );

-- name: list_ripe_intervals
-- The intervals to which the parked rows belong that this plan takes over.
SELECT DISTINCT plan_ripe.interval_id FROM plan_ripe;

-- name: supersede_ripe_locks
-- What is planned anew leaves quarantine; append_kept ends its first command in the same transaction: one
-- open row for each command at most, and both intervals balance.
WITH superseded AS (
    UPDATE s3_retention.quarantine
    SET
        resolution = 'kept',
        resolved_at = s3_retention.clock(),
        superseded_by = s3_retention.command_id(
            s3_retention.operation_id(planned.bucket, planned.key, %(policy_version)s::text),
            planned.version_id, planned.etag, planned.last_modified_at, planned.size
        )
    FROM plan_ripe, plan_decisions AS planned
    WHERE
        quarantine.quarantine_id = plan_ripe.quarantine_id
        AND planned.reason = 'due'
        AND planned.bucket = quarantine.bucket
        AND planned.key = quarantine.key
        AND planned.version_id IS NOT DISTINCT FROM quarantine.version_id
        AND (
            planned.version_id <> 'null' OR (
                planned.etag IS NOT DISTINCT FROM quarantine.etag
                AND planned.size = quarantine.size
                AND planned.last_modified_at = quarantine.last_modified_at
            )
        )
    RETURNING quarantine.quarantine_id, quarantine.superseded_by
)

INSERT INTO s3_retention.quarantine_events (quarantine_id, event, dag_id, run_id, detail)
SELECT
    superseded.quarantine_id,
    'superseded' AS event,
    %(dag_id)s AS dag_id,
    %(run_id)s AS run_id,
    encode(superseded.superseded_by, 'hex') AS detail
FROM superseded
RETURNING quarantine_id;
