"""The ledger in Postgres: one module per table, its SQL in ``include/sql/queries/<table>.sql``.

Every function takes ``conn`` first and never commits: the steps own the transactions.
"""
