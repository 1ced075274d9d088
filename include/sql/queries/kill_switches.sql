-- name: look_at_levers
-- What a person has set that a running batch must heed: the switch that stops this policy, which holds are in
-- force and which tenants are paused, each as a sum that changes with them, NULL where there is none; and by
-- the clock of the ledger, when.
WITH switch AS (
    SELECT
        kill_switches.reason,
        kill_switches.set_by
    FROM s3_retention.kill_switches
    WHERE
        kill_switches.lifted_at IS NULL
        AND (kill_switches.policy IS NULL OR kill_switches.policy = %(policy)s)
    ORDER BY kill_switches.switch_id
    LIMIT 1
),

holds AS (
    SELECT md5(string_agg(active_holds.hold_id::text, ',' ORDER BY active_holds.hold_id)) AS in_force
    FROM s3_retention.active_holds
),

pauses AS (
    SELECT md5(string_agg(pauses.pause_id::text, ',' ORDER BY pauses.pause_id)) AS in_force
    FROM s3_retention.tenant_pauses AS pauses
    WHERE pauses.lifted_at IS NULL AND (pauses.policy IS NULL OR pauses.policy = %(policy)s)
)

SELECT
    switch.reason AS stop_reason,
    switch.set_by AS stopped_by,
    holds.in_force AS holds,
    pauses.in_force AS pauses,
    s3_retention.clock() AS read_at
FROM holds
CROSS JOIN pauses
LEFT JOIN switch ON TRUE;

-- name: set_switch
-- Stops every delete of one policy, or of all; one that is set already stays as it is.
INSERT INTO s3_retention.kill_switches (policy, reason, set_by, dag_id, run_id)
VALUES (%(policy)s, %(reason)s, %(acted_by)s, %(dag_id)s, %(run_id)s)
ON CONFLICT DO NOTHING
RETURNING switch_id;

-- name: find_open_switch
-- The switch that is set for exactly this policy, or for all where it is NULL.
SELECT
    kill_switches.switch_id,
    kill_switches.set_by,
    kill_switches.reason
FROM s3_retention.kill_switches
WHERE kill_switches.lifted_at IS NULL AND kill_switches.policy IS NOT DISTINCT FROM %(policy)s;

-- name: find_switch_of_run
-- What a run has set before it was cleared.
SELECT kill_switches.switch_id FROM s3_retention.kill_switches
WHERE kill_switches.dag_id = %(dag_id)s AND kill_switches.run_id = %(run_id)s;

-- name: lift_switch
-- Lets the deletes go on, from the next run on.
UPDATE s3_retention.kill_switches
SET lifted_by = %(acted_by)s, lifted_at = s3_retention.clock(), lift_reason = %(reason)s
WHERE kill_switches.lifted_at IS NULL AND kill_switches.policy IS NOT DISTINCT FROM %(policy)s;

-- name: list_open_switches
-- Every switch that is set.
SELECT
    kill_switches.policy,
    kill_switches.reason,
    kill_switches.set_by,
    kill_switches.set_at
FROM s3_retention.kill_switches
WHERE kill_switches.lifted_at IS NULL
ORDER BY kill_switches.switch_id;
