-- Optional triggers for the tables of a policy of source postgres_rows. An owner of these tables runs this
-- file once in their database, and then attaches the triggers by the lines of docs/orphans.md.

CREATE SCHEMA IF NOT EXISTS s3_retention_rows;
GRANT USAGE ON SCHEMA s3_retention_rows TO public;

CREATE OR REPLACE FUNCTION s3_retention_rows.note_detach() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    parent CONSTANT text := tg_argv[0];
    detached_at CONSTANT text := tg_argv[1];
    has_parent CONSTANT boolean := to_jsonb(new) ->> parent IS NOT NULL;
    had_parent boolean := TRUE;
BEGIN
    IF to_jsonb(new) -> parent IS NULL OR to_jsonb(new) -> detached_at IS NULL THEN
        RAISE EXCEPTION '% has no column % or no column %: see its trigger %',
            tg_table_name, parent, detached_at, tg_name
        USING ERRCODE = 'undefined_column';
    END IF;
    IF tg_op = 'UPDATE' THEN
        had_parent := to_jsonb(old) ->> parent IS NOT NULL;
    END IF;
    IF has_parent THEN
        RETURN jsonb_populate_record(new, jsonb_build_object(detached_at, NULL));
    END IF;
    IF had_parent AND (tg_op = 'UPDATE' OR to_jsonb(new) ->> detached_at IS NULL) THEN
        RETURN jsonb_populate_record(new, jsonb_build_object(detached_at, clock_timestamp()));
    END IF;
    RETURN new;
END $$;
COMMENT ON FUNCTION s3_retention_rows.note_detach IS
'(parent column, time column): writes down when a row loses its parent, and forgets it when it gets one.';

CREATE OR REPLACE FUNCTION s3_retention_rows.refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    mark CONSTANT text := tg_argv[0];
    was CONSTANT jsonb := to_jsonb(old);
    passed text[];
BEGIN
    IF was -> mark IS NULL THEN
        RAISE EXCEPTION '% has no column %: see its trigger %', tg_table_name, mark, tg_name
        USING ERRCODE = 'undefined_column';
    END IF;
    IF was ->> mark IS NULL THEN
        RETURN new;
    END IF;
    -- The mark itself, and columns that are generated: those of the new row are not there yet.
    SELECT mark || coalesce(array_agg(attname::text), '{}') INTO passed
    FROM pg_catalog.pg_attribute
    WHERE attrelid = tg_relid AND attgenerated <> '';
    IF to_jsonb(new) - passed IS DISTINCT FROM was - passed THEN
        RAISE EXCEPTION 'this row of % cannot be changed: its object is being deleted', tg_table_name
        USING ERRCODE = 'object_in_use', HINT = 'Try again in a minute, or make a new row with a new object.';
    END IF;
    RETURN new;
END $$;
COMMENT ON FUNCTION s3_retention_rows.refuse_change IS
'(soft delete column): a row whose object is being deleted cannot be attached again.';

CREATE OR REPLACE FUNCTION s3_retention_rows.refuse_reference() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    named CONSTANT text := tg_argv[0];
    target CONSTANT regclass := tg_argv[1];
    target_column CONSTANT text := tg_argv[2];
    mark CONSTANT text := tg_argv[3];
    is_marked boolean;
BEGIN
    -- The row is locked until this transaction ends: a delete that comes meanwhile waits, and then sees the reference.
    EXECUTE format(
        'SELECT bool_or(one.is_marked) FROM ('
        'SELECT %I IS NOT NULL AS is_marked FROM %s WHERE %I = ($1).%I FOR KEY SHARE) AS one',
        mark, target, target_column, named
    ) INTO is_marked USING new;
    IF is_marked THEN
        RAISE EXCEPTION '% of % names an object that is being deleted', named, tg_table_name
        USING ERRCODE = 'object_in_use', HINT = 'Try again in a minute, or upload the object anew under another key.';
    END IF;
    RETURN new;
END $$;
COMMENT ON FUNCTION s3_retention_rows.refuse_reference IS
'(own column, table, its column, its soft delete column): no new reference to what is being deleted.';
