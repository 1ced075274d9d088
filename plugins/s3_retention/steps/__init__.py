"""What a task does: each step has one public ``run`` that gives counts, and owns its transactions.

No transaction is open across a call to the store.
"""
