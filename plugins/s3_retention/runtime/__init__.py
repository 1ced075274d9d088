"""Where Airflow comes in, and nowhere else: settings, connections, task bodies, and what an error means there."""
