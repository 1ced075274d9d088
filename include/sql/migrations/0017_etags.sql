-- ETags are stored as they are.
-- Alembic runs this file in one transaction.

-- Chunks --------------------------------------------------------------------------------------------------
-- A hash does not become shorter, and to find that out took half of what it cost to store a plan. What is
-- stored already stays as it is.
ALTER TABLE s3_retention.chunks ALTER COLUMN etags SET STORAGE EXTERNAL;
