-- name: create_plan_rows
-- The orphaned rows that a scan has read, in a table of this session alone.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_rows (
    row_id text COLLATE "C" NOT NULL,
    named text COLLATE "C",
    detached_at timestamptz,
    tenant text COLLATE "C",
    kept_by text
) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_rows
-- A scan starts from nothing.
TRUNCATE plan_rows;

-- name: copy_plan_rows
-- Takes one page of rows.
COPY plan_rows (row_id, named, detached_at, tenant, kept_by) FROM STDIN WITH (FORMAT "binary");

-- name: create_plan_orphans
-- The objects that these rows name.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_orphans (
    place bigint NOT NULL,
    named text COLLATE "C" NOT NULL,
    row_ids text[] NOT NULL,
    detached_ats timestamptz[] NOT NULL,
    detached_at timestamptz,
    tenant text COLLATE "C",
    kept_by text
) ON COMMIT PRESERVE ROWS;

-- name: create_plan_orphans_key
-- Pages are read in the order of the places.
CREATE INDEX IF NOT EXISTS plan_orphans_key ON plan_orphans (place);

-- name: clear_plan_orphans
-- A scan starts from nothing.
TRUNCATE plan_orphans;

-- name: create_plan_orphan_commands
-- The objects that may be due, each with the incarnation that a look at it has found.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_orphan_commands (
    place bigint NOT NULL,
    bucket text NOT NULL,
    key text COLLATE "C" NOT NULL,
    etag text,
    size bigint NOT NULL,
    last_modified_at timestamptz NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_orphan_commands
-- A scan starts from nothing.
TRUNCATE plan_orphan_commands;

-- name: copy_plan_orphan_commands
-- Takes one page of objects.
COPY plan_orphan_commands (place, bucket, key, etag, size, last_modified_at)
FROM STDIN WITH (FORMAT "binary");

-- name: group_plan_rows
-- One object for all rows that name it: it is as old as the youngest, kept as soon as one is, and of no
-- tenant where they are of two. Of rows of which one tells no time, none is known.
INSERT INTO plan_orphans (place, named, row_ids, detached_ats, detached_at, tenant, kept_by)
SELECT
    row_number() OVER (ORDER BY plan_rows.named) AS place,
    plan_rows.named,
    array_agg(plan_rows.row_id ORDER BY plan_rows.row_id) AS row_ids,
    array_agg(plan_rows.detached_at ORDER BY plan_rows.row_id) AS detached_ats,
    CASE WHEN count(plan_rows.detached_at) = count(*) THEN max(plan_rows.detached_at) END AS detached_at,
    CASE
        WHEN count(plan_rows.tenant) = count(*) AND count(DISTINCT plan_rows.tenant) = 1
            THEN min(plan_rows.tenant)
    END AS tenant,
    max(plan_rows.kept_by) AS kept_by
FROM plan_rows
WHERE plan_rows.named IS NOT NULL
GROUP BY plan_rows.named;

-- name: list_plan_orphans
-- The next page of objects.
SELECT
    plan_orphans.place,
    plan_orphans.named,
    plan_orphans.detached_at,
    plan_orphans.tenant,
    plan_orphans.kept_by
FROM plan_orphans
WHERE plan_orphans.place > %(after_id)s
ORDER BY plan_orphans.place
LIMIT 1000;

-- name: insert_command_rows
-- The rows of each object that is due, under the id that its command gets from the chunks. A malformed row
-- may say what is the key of another one: the other one's then, and the malformed waits for the next plan.
INSERT INTO s3_retention.command_rows (interval_id, generation, command_id, named, row_ids, detached_ats)
SELECT DISTINCT ON (found.bucket, found.key)
    %(interval_id)s AS interval_id,
    %(generation)s AS generation,
    s3_retention.command_id(
        s3_retention.operation_id(found.bucket, found.key, %(policy_version)s::text),
        NULL, found.etag, found.last_modified_at, found.size
    ) AS command_id,
    plan_orphans.named,
    plan_orphans.row_ids,
    plan_orphans.detached_ats
FROM plan_orphan_commands AS found
INNER JOIN plan_orphans ON found.place = plan_orphans.place
INNER JOIN plan_decisions
    ON
        found.bucket = plan_decisions.bucket
        AND found.key = plan_decisions.key
        AND found.etag IS NOT DISTINCT FROM plan_decisions.etag
        AND found.size = plan_decisions.size
        AND found.last_modified_at = plan_decisions.last_modified_at
WHERE plan_decisions.reason = 'due'
ORDER BY found.bucket ASC, found.key ASC, (plan_orphans.named = found.key) ASC;
