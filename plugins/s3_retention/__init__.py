"""S3 retention for Airflow: what a policy selects is deleted once, with a ledger row that proves it.

The flow, and the modules in its order::

    policy files -> core.policy -> steps.claim -> sources -> steps.plan -> steps.delete -> s3.gateway
                                                                |               |
                                                          store (chunks)   store (ledger)
                                                                                |
                                                   steps.quarantine -> steps.report      steps.redrive

The import law, kept by import-linter: ``dags -> runtime, steps``; ``runtime -> everything below``;
``steps`` above ``store | s3 | sources`` above ``core``. ``store`` and ``s3`` never meet. Only ``runtime``
imports Airflow. ``core`` decides and touches neither clock nor service: ``now`` is an argument.
"""
