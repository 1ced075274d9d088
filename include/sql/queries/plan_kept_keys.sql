-- name: create_plan_currents
-- The current objects of one scan of versions: a keep rule ranks them, and no version beneath them.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_currents (
    bucket text NOT NULL,
    key text COLLATE "C" NOT NULL,
    reference_at timestamptz NOT NULL,
    last_modified_at timestamptz NOT NULL,
    group_key text COLLATE "C" NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_currents
-- A scan starts from nothing.
TRUNCATE plan_currents;

-- name: create_plan_kept_keys
-- The keys that a keep rule spares, each with its whole history.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_kept_keys (
    bucket text NOT NULL,
    key text COLLATE "C" NOT NULL,
    group_key text COLLATE "C" NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_kept_keys
-- A scan starts from nothing.
TRUNCATE plan_kept_keys;

-- name: copy_plan_currents
-- Takes the current objects of some histories.
COPY plan_currents (bucket, key, reference_at, last_modified_at, group_key) FROM STDIN WITH (FORMAT "binary");

-- name: keep_newest_keys
-- The newest of each group, as decide_candidates ranks the objects of a listing.
INSERT INTO plan_kept_keys (bucket, key, group_key)
SELECT
    ranked.bucket,
    ranked.key,
    ranked.group_key
FROM (
    SELECT
        plan_currents.*,
        row_number() OVER (
            PARTITION BY plan_currents.group_key
            ORDER BY
                plan_currents.reference_at DESC, plan_currents.last_modified_at DESC, plan_currents.key DESC
        ) AS place
    FROM plan_currents
) AS ranked
WHERE ranked.place <= %(keep_latest)s::integer;

-- name: drop_versions_of_kept_keys
-- What lies beneath a kept object stays with it: it is no candidate any more.
WITH dropped AS (
    DELETE FROM plan_candidates
    USING plan_kept_keys
    WHERE plan_candidates.bucket = plan_kept_keys.bucket AND plan_candidates.key = plan_kept_keys.key
    RETURNING 1
)

SELECT count(*) AS num_dropped FROM dropped;

-- name: free_groups_without_keeper
-- A group of which no key has a current object has nothing that a delete must leave.
UPDATE plan_candidates SET group_key = NULL
WHERE
    NOT EXISTS (
        SELECT 1 FROM plan_kept_keys
        WHERE plan_kept_keys.group_key = plan_candidates.group_key
    );

-- name: insert_kept_keys
-- The kept objects whose presence allows the deletes of versions in their groups.
INSERT INTO s3_retention.keepers (interval_id, generation, group_key, bucket, key)
SELECT
    %(interval_id)s AS interval_id,
    %(generation)s AS generation,
    keeper.group_key,
    keeper.bucket,
    keeper.key
FROM plan_kept_keys AS keeper
WHERE
    EXISTS (
        SELECT 1 FROM plan_decisions AS leaving
        WHERE leaving.group_key = keeper.group_key AND leaving.reason = 'due'
    );
