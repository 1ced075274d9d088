-- How much of one tenant a plan takes, so that a person can be asked about it.
-- Alembic runs this file in one transaction.

ALTER TABLE s3_retention.intervals ADD COLUMN largest_tenant_share double precision
CHECK (largest_tenant_share BETWEEN 0 AND 1);
COMMENT ON COLUMN s3_retention.intervals.largest_tenant_share IS
'Of the objects of one tenant, the part that the plan takes, where it is the largest; NULL: no tenants.';

-- Grants --------------------------------------------------------------------------------------------------
GRANT UPDATE (largest_tenant_share) ON s3_retention.intervals TO s3_retention_writer;
