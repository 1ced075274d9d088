-- name: insert_version
-- Stores the rules behind a version at its first use; a version that is there is left as it is.
INSERT INTO s3_retention.policy_versions (policy, policy_version, rules_hash)
VALUES (%(policy)s, %(policy_version)s, %(rules_hash)s)
ON CONFLICT DO NOTHING;

-- name: find_rules_hash
-- The rules under which a version was first used.
SELECT rules_hash FROM s3_retention.policy_versions
WHERE policy = %(policy)s AND policy_version = %(policy_version)s;
