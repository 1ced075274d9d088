-- name: create_audit_objects
-- The objects of one audit, in a table of this session alone.
CREATE TEMPORARY TABLE IF NOT EXISTS audit_objects (
    key text COLLATE "C" NOT NULL,
    etag text,
    size bigint NOT NULL,
    last_modified_at timestamptz NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: clear_audit_objects
-- An audit starts from nothing.
TRUNCATE audit_objects;

-- name: copy_audit_objects
-- Takes one page of a listing.
COPY audit_objects (key, etag, size, last_modified_at) FROM STDIN WITH (FORMAT "binary");

-- name: create_audit_rows
-- The rows of one audit. One that names no object, or one in no known form, has no key.
CREATE TEMPORARY TABLE IF NOT EXISTS audit_rows (
    row_id text COLLATE "C" NOT NULL,
    named text COLLATE "C",
    key text COLLATE "C",
    detached_at timestamptz,
    is_attached boolean NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: clear_audit_rows
-- An audit starts from nothing.
TRUNCATE audit_rows;

-- name: copy_audit_rows
-- Takes one page of rows.
COPY audit_rows (row_id, named, key, detached_at, is_attached) FROM STDIN WITH (FORMAT "binary");

-- name: create_audit_found
-- The differences of one audit.
CREATE TEMPORARY TABLE IF NOT EXISTS audit_found (
    kind text NOT NULL,
    key text COLLATE "C",
    row_id text COLLATE "C",
    etag text,
    size bigint,
    last_modified_at timestamptz,
    due_at timestamptz
) ON COMMIT PRESERVE ROWS;

-- name: clear_audit_found
-- An audit starts from nothing.
TRUNCATE audit_found;

-- name: compare_rows_and_objects
-- Both sides sorted and held against each other here. What is younger than the audit may have come between
-- its two readings, and is no difference.
WITH named AS (
    SELECT
        audit_rows.key,
        min(audit_rows.row_id) AS row_id,
        bool_or(audit_rows.is_attached) AS is_attached,
        CASE
            WHEN count(audit_rows.detached_at) = count(*)
                THEN max(audit_rows.detached_at) + %(retain)s::interval
        END AS due_at
    FROM audit_rows
    WHERE audit_rows.key IS NOT NULL
    GROUP BY audit_rows.key
),

compared AS (
    SELECT
        CASE
            WHEN named.key IS NULL AND listed.last_modified_at < %(started_at)s THEN 'object_without_row'
            WHEN listed.key IS NULL THEN 'row_without_object'
            WHEN NOT named.is_attached AND named.due_at < %(ends_at)s THEN 'overdue'
        END AS kind,
        coalesce(named.key, listed.key) AS key,
        named.row_id,
        listed.etag,
        listed.size,
        listed.last_modified_at,
        named.due_at
    FROM named
    FULL JOIN audit_objects AS listed ON named.key = listed.key
)

INSERT INTO audit_found (kind, key, row_id, etag, size, last_modified_at, due_at)
SELECT
    compared.kind,
    compared.key,
    compared.row_id,
    compared.etag,
    compared.size,
    compared.last_modified_at,
    compared.due_at
FROM compared
WHERE compared.kind IS NOT NULL;

-- name: find_bad_rows
-- Rows that name no object.
INSERT INTO audit_found (kind, key, row_id)
SELECT
    CASE WHEN audit_rows.named IS NULL THEN 'row_without_key' ELSE 'row_malformed' END AS kind,
    audit_rows.named,
    audit_rows.row_id
FROM audit_rows
WHERE audit_rows.key IS NULL;

-- name: find_overdue
-- Of a listing: what this session has decided to be due since before a time up to which all was decided.
INSERT INTO audit_found (kind, key, etag, size, last_modified_at, due_at)
SELECT
    'overdue' AS kind,
    plan_decisions.key,
    plan_decisions.etag,
    plan_decisions.size,
    plan_decisions.last_modified_at,
    plan_decisions.due_at
FROM plan_decisions
WHERE plan_decisions.reason = 'due' AND plan_decisions.due_at < %(ends_at)s;

-- name: count_found
-- The differences of each kind.
SELECT
    audit_found.kind,
    count(*) AS num_differences
FROM audit_found
GROUP BY audit_found.kind
ORDER BY audit_found.kind;

-- name: list_found
-- The next differences of one kind, by key and row.
SELECT
    audit_found.key,
    audit_found.row_id,
    audit_found.etag,
    audit_found.size,
    audit_found.last_modified_at,
    audit_found.due_at
FROM audit_found
WHERE audit_found.kind = %(kind)s
ORDER BY audit_found.key, audit_found.row_id
LIMIT %(max_rows)s;

-- name: insert_audit
-- An audit that has ended.
INSERT INTO s3_retention.audits (
    policy, policy_version, dag_id, run_id, acted_by, note, started_at, num_objects, num_rows, counts,
    num_quarantined
) VALUES (
    %(policy)s,
    %(policy_version)s,
    %(dag_id)s,
    %(run_id)s,
    %(acted_by)s,
    %(note)s,
    %(started_at)s,
    %(num_objects)s,
    %(num_rows)s,
    %(counts)s,
    %(num_quarantined)s
)
RETURNING audit_id;

-- name: insert_differences
-- The first of what it found, in the same transaction.
INSERT INTO s3_retention.audit_differences (
    audit_id, kind, bucket, key, row_id, size, last_modified_at, due_at
)
SELECT
    %(audit_id)s AS audit_id,
    found.kind,
    %(bucket)s AS bucket,
    found.key,
    found.row_id,
    found.size,
    found.last_modified_at,
    found.due_at
FROM
    unnest(
        %(kinds)s::text[],
        %(keys)s::text[],
        %(row_ids)s::text[],
        %(sizes)s::bigint[],
        %(last_modified_ats)s::timestamptz[],
        %(due_ats)s::timestamptz[]
    ) AS found (kind, key, row_id, size, last_modified_at, due_at);

-- name: find_audited_interval
-- The newest interval of a policy that is completed: what an audit puts into quarantine counts there.
SELECT
    intervals.interval_id,
    intervals.policy_version
FROM s3_retention.intervals
WHERE intervals.policy = %(policy)s AND intervals.state = 'completed'
ORDER BY intervals.interval_id DESC
LIMIT 1;

-- name: quarantine_found
-- An object without a row, as a command that no plan holds: a redrive decides it anew. Nothing is done where
-- the object waits already, or the same command is there.
WITH parked AS (
    INSERT INTO s3_retention.quarantine (
        policy, policy_version, interval_id, generation, command_id, operation_id, tenant, bucket, key, etag,
        size, last_modified_at, due_at, failure_class, code, message, num_attempts, dag_id, run_id, map_index,
        first_failed_at, last_failed_at, is_unplanned
    )
    SELECT
        %(policy)s AS policy,
        %(policy_version)s AS policy_version,
        %(interval_id)s AS interval_id,
        0 AS generation,
        %(command_id)s AS command_id,
        %(operation_id)s AS operation_id,
        %(tenant)s::text AS tenant,
        %(bucket)s AS bucket,
        %(key)s AS key,
        %(etag)s::text AS etag,
        %(size)s AS size,
        %(last_modified_at)s::timestamptz AS last_modified_at,
        %(due_at)s::timestamptz AS due_at,
        'unknown' AS failure_class,
        %(code)s AS code,
        'an audit found no row that names this object; a redrive looks again, and deletes it' AS message,
        0 AS num_attempts,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        -1 AS map_index,
        s3_retention.clock() AS first_failed_at,
        s3_retention.clock() AS last_failed_at,
        TRUE AS is_unplanned
    WHERE
        NOT EXISTS (
            SELECT 1 FROM s3_retention.quarantine AS waiting
            WHERE
                waiting.policy = %(policy)s
                AND waiting.bucket = %(bucket)s
                AND waiting.key = %(key)s
                AND waiting.resolved_at IS NULL
        )
        AND NOT EXISTS (
            SELECT 1 FROM s3_retention.ledger_entries AS entry
            WHERE
                entry.interval_id = %(interval_id)s
                AND entry.generation = 0
                AND entry.command_id = %(command_id)s
        )
    ON CONFLICT DO NOTHING
    RETURNING quarantine_id, failure_class
),

events AS (
    INSERT INTO s3_retention.quarantine_events (
        quarantine_id, event, dag_id, run_id, acted_by, detail, note
    )
    SELECT
        parked.quarantine_id,
        'quarantined' AS event,
        %(dag_id)s AS dag_id,
        %(run_id)s AS run_id,
        %(acted_by)s AS acted_by,
        parked.failure_class AS detail,
        %(note)s AS note
    FROM parked
)

SELECT parked.quarantine_id FROM parked;

-- name: find_audit_of_run
-- What a run has found before it was cleared.
SELECT
    audits.num_objects,
    audits.num_rows,
    audits.counts,
    audits.num_quarantined
FROM s3_retention.audits
WHERE audits.run_id = %(run_id)s AND audits.dag_id = %(dag_id)s
ORDER BY audits.audit_id DESC
LIMIT 1;
