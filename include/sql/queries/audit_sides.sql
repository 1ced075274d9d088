-- name: create_audit_rows
-- What each row says of its object, in a table of this session alone: a crash leaves nothing behind.
CREATE TEMPORARY TABLE IF NOT EXISTS audit_rows (
    row_id text NOT NULL,
    key text COLLATE "C",
    kind text,
    detail text
) ON COMMIT PRESERVE ROWS;

-- name: create_audit_orphans
-- The orphaned rows with an object that can be told.
CREATE TEMPORARY TABLE IF NOT EXISTS audit_orphans (
    key text COLLATE "C" NOT NULL,
    detached_at timestamptz,
    kept_by text
) ON COMMIT PRESERVE ROWS;

-- name: create_audit_objects
-- All objects under the prefix.
CREATE TEMPORARY TABLE IF NOT EXISTS audit_objects (
    key text COLLATE "C" NOT NULL,
    is_selected boolean NOT NULL,
    last_modified_at timestamptz NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: create_audit_differences
-- What the two sides do not agree on.
CREATE TEMPORARY TABLE IF NOT EXISTS audit_differences (
    kind text NOT NULL,
    key text COLLATE "C",
    version_id text,
    row_id text COLLATE "C",
    since timestamptz,
    detail text
) ON COMMIT PRESERVE ROWS;

-- name: clear_audit_sides
-- An audit starts from nothing.
TRUNCATE audit_rows, audit_orphans, audit_objects, audit_differences;

-- name: copy_audit_rows
-- Takes one page of rows.
COPY audit_rows (row_id, key, kind, detail) FROM STDIN WITH (FORMAT "binary");

-- name: copy_audit_orphans
-- Takes one page of orphaned rows.
COPY audit_orphans (key, detached_at, kept_by) FROM STDIN WITH (FORMAT "binary");

-- name: copy_audit_objects
-- Takes one page of a listing.
COPY audit_objects (key, is_selected, last_modified_at) FROM STDIN WITH (FORMAT "binary");

-- name: compare_audit_sides
-- Each difference once. A key that the listing named twice counts once, by its newest incarnation. What was
-- written from uploaded_before on may have a row that the audit did not see, and is no difference. An object
-- that any row keeps is not overdue, nor is one on hold; one in quarantine is, and says so.
WITH objects AS MATERIALIZED (
    SELECT
        audit_objects.key,
        bool_or(audit_objects.is_selected) AS is_selected,
        max(audit_objects.last_modified_at) AS last_modified_at
    FROM audit_objects
    GROUP BY audit_objects.key
),

orphaned AS (
    SELECT
        audit_orphans.key,
        max(audit_orphans.detached_at) + %(retain)s::interval AS due_at
    FROM audit_orphans
    GROUP BY audit_orphans.key
    HAVING bool_and(audit_orphans.detached_at IS NOT NULL AND audit_orphans.kept_by IS NULL)
)

INSERT INTO audit_differences (kind, key, row_id, since, detail)
SELECT
    audit_rows.kind,
    audit_rows.key,
    audit_rows.row_id,
    NULL::timestamptz AS since,
    audit_rows.detail
FROM audit_rows
WHERE audit_rows.kind IS NOT NULL
UNION ALL
SELECT
    'row_without_object' AS kind,
    audit_rows.key,
    audit_rows.row_id,
    NULL::timestamptz AS since,
    NULL AS detail
FROM audit_rows
LEFT JOIN objects ON audit_rows.key = objects.key
WHERE audit_rows.kind IS NULL AND objects.key IS NULL
UNION ALL
SELECT
    'object_without_row' AS kind,
    objects.key,
    NULL AS row_id,
    objects.last_modified_at AS since,
    NULL AS detail
FROM objects
WHERE
    objects.is_selected
    AND objects.last_modified_at < %(uploaded_before)s
    AND NOT EXISTS (
        SELECT 1 FROM audit_rows
        WHERE audit_rows.kind IS NULL AND audit_rows.key = objects.key
    )
UNION ALL
SELECT
    'overdue' AS kind,
    orphaned.key,
    NULL AS row_id,
    orphaned.due_at AS since,
    CASE
        WHEN EXISTS (
            SELECT 1 FROM s3_retention.quarantine AS parked
            WHERE
                parked.resolved_at IS NULL
                AND parked.policy = %(policy)s
                AND parked.bucket = %(bucket)s
                AND parked.key = orphaned.key
        ) THEN 'in_quarantine'
    END AS detail
FROM orphaned
INNER JOIN objects ON orphaned.key = objects.key
WHERE
    objects.is_selected
    AND orphaned.due_at < %(due_before)s::timestamptz
    AND NOT EXISTS (
        SELECT 1 FROM s3_retention.active_holds AS hold
        WHERE
            hold.bucket = %(bucket)s
            AND (
                (hold.scope = 'key' AND hold.name = orphaned.key)
                OR (hold.scope <> 'key' AND starts_with(orphaned.key, hold.name))
            )
    );

-- name: take_due_objects
-- Of a listing: what a simulation has just decided to be due is overdue.
INSERT INTO audit_differences (kind, key, version_id, since)
SELECT
    'overdue' AS kind,
    plan_decisions.key,
    plan_decisions.version_id,
    plan_decisions.due_at AS since
FROM plan_decisions
WHERE plan_decisions.reason = 'due';

-- name: count_audit_differences
-- How many there are of each kind.
SELECT
    audit_differences.kind,
    count(*) AS num_found
FROM audit_differences
GROUP BY audit_differences.kind
ORDER BY audit_differences.kind;

-- name: list_audit_differences
-- The first of one kind, in the order of the keys' bytes.
SELECT
    audit_differences.key,
    audit_differences.version_id,
    audit_differences.row_id,
    audit_differences.since,
    audit_differences.detail
FROM audit_differences
WHERE audit_differences.kind = %(kind)s
ORDER BY audit_differences.key, audit_differences.row_id, audit_differences.version_id
LIMIT %(max_rows)s;
