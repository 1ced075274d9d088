"""Real Postgres, S3 and Airflow on free loopback ports, for the demo and the tests.

The parts, each a context manager that leaves nothing behind::

    process (Part, kept by watchdog) -> postgres -> ledger
                                     -> s3 (fault_server: between it and a client), moto
                                     -> airflow (airflow_api: its REST client)
    stack: all of them              `python -m sandbox`: the same from a shell

For development only: the product never imports it.
"""
