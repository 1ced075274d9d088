-- name: drop_doubles
-- A key that the listing named twice counts once, by its newest incarnation: here before the rules look.
DELETE FROM plan_candidates
USING (
    SELECT
        one.ctid AS row_place,
        row_number() OVER (
            PARTITION BY one.bucket, one.key, one.version_id
            ORDER BY one.last_modified_at DESC
        ) AS place
    FROM plan_candidates AS one
) AS doubled
WHERE plan_candidates.ctid = doubled.row_place AND doubled.place > 1;

-- name: mark_kept
-- The rules of the calendar, within and min_bytes, as core/keep.py has them; the newest of each group, and
-- what latest keeps, is for decide_candidates. Objects of a group come in one order, newest first, in which
-- the days, weeks, months and years go down, too: one sort for all of them. With a valid size, the same of
-- those that have it, the newest among them too; what is marked already stays as it is, but for what a span
-- alone keeps, which is not looked for before a delete: a rule that keeps a valid one is.
WITH local AS (
    SELECT
        one.ctid AS row_place,
        one.group_key,
        one.key,
        one.size,
        one.reference_at,
        one.last_modified_at,
        (one.reference_at - CASE WHEN %(are_periods)s THEN interval '1 microsecond' ELSE interval '0' END)
        AT TIME ZONE %(timezone)s AS local_at
    FROM plan_candidates AS one
    WHERE %(valid_size)s::bigint IS NULL OR one.size >= %(valid_size)s::bigint
),

dated AS (
    SELECT
        local.*,
        date_trunc('day', local.local_at) AS day_at,
        date_trunc('week', local.local_at) AS week_at,
        date_trunc('month', local.local_at) AS month_at,
        date_trunc('year', local.local_at) AS year_at
    FROM local
),

beside AS (
    SELECT
        dated.*,
        lag(dated.day_at) OVER newest AS newer_day_at,
        lag(dated.week_at) OVER newest AS newer_week_at,
        lag(dated.month_at) OVER newest AS newer_month_at,
        lag(dated.year_at) OVER newest AS newer_year_at,
        first_value(dated.reference_at) OVER newest AS newest_at
    FROM dated
    WINDOW newest AS (
        PARTITION BY dated.group_key
        ORDER BY dated.reference_at DESC, dated.last_modified_at DESC, dated.key DESC
    )
),

begun AS (
    SELECT
        beside.*,
        coalesce(beside.day_at < beside.newer_day_at, TRUE) AS is_new_day,
        coalesce(beside.week_at < beside.newer_week_at, TRUE) AS is_new_week,
        coalesce(beside.month_at < beside.newer_month_at, TRUE) AS is_new_month,
        coalesce(beside.year_at < beside.newer_year_at, TRUE) AS is_new_year
    FROM beside
),

counted AS (
    SELECT
        begun.*,
        count(*) FILTER (WHERE begun.is_new_day) OVER newest AS day_number,
        count(*) FILTER (WHERE begun.is_new_week) OVER newest AS week_number,
        count(*) FILTER (WHERE begun.is_new_month) OVER newest AS month_number,
        count(*) FILTER (WHERE begun.is_new_year) OVER newest AS year_number,
        row_number() OVER newest AS place,
        sum(begun.size) OVER newest - begun.size AS num_newer_bytes
    FROM begun
    WINDOW newest AS (
        PARTITION BY begun.group_key
        ORDER BY begun.reference_at DESC, begun.last_modified_at DESC, begun.key DESC
    )
),

marked AS (
    SELECT
        counted.row_place,
        CASE
            WHEN counted.place <= %(valid_latest)s::bigint THEN 'kept_latest'
            WHEN counted.is_new_day AND counted.day_number <= %(daily)s::bigint THEN 'kept_daily'
            WHEN counted.is_new_week AND counted.week_number <= %(weekly)s::bigint THEN 'kept_weekly'
            WHEN counted.is_new_month AND counted.month_number <= %(monthly)s::bigint THEN 'kept_monthly'
            WHEN counted.is_new_year AND counted.year_number <= %(yearly)s::bigint THEN 'kept_yearly'
            WHEN counted.newest_at - counted.reference_at <= %(within)s::interval THEN 'kept_within'
            WHEN counted.num_newer_bytes < %(min_bytes_kept)s::bigint THEN 'kept_min_bytes'
        END AS kept_by
    FROM counted
)

UPDATE plan_candidates
SET
    kept_by = CASE
        WHEN %(valid_size)s::bigint IS NULL OR marked.kept_by = 'kept_within' THEN marked.kept_by
        ELSE 'kept_valid'
    END
FROM marked
WHERE
    plan_candidates.ctid = marked.row_place
    AND marked.kept_by IS NOT NULL
    AND (
        %(valid_size)s::bigint IS NULL
        OR plan_candidates.kept_by IS NULL
        OR (plan_candidates.kept_by = 'kept_within' AND marked.kept_by <> 'kept_within')
    );

-- name: create_plan_held_groups
-- The groups of which a scan has kept something at first sight.
CREATE TEMPORARY TABLE IF NOT EXISTS plan_held_groups (
    group_key text COLLATE "C" NOT NULL
) ON COMMIT PRESERVE ROWS;

-- name: clear_plan_held_groups
-- A scan starts from nothing.
TRUNCATE plan_held_groups;

-- name: hold_groups
-- What one page has kept; a group may come again.
INSERT INTO plan_held_groups (group_key)
SELECT held.group_key FROM unnest(%(group_keys)s::text[]) AS held (group_key);

-- name: hold_groups_back
-- A group goes as a whole: what is due in it waits while anything of it is not. Marked anew for each
-- decision, since a scan may be decided for several slices.
WITH youngest AS (
    SELECT
        one.group_key,
        max(one.due_at) AS due_at,
        one.group_key IN (SELECT plan_held_groups.group_key FROM plan_held_groups) AS is_held
    FROM plan_candidates AS one
    GROUP BY one.group_key
)

UPDATE plan_candidates
SET
    kept_by = CASE
        WHEN plan_candidates.due_at < %(ends_at)s AND (youngest.is_held OR youngest.due_at >= %(ends_at)s)
            THEN 'group_not_whole'
    END
FROM youngest
WHERE plan_candidates.group_key = youngest.group_key;
