"""
### S3 retention: broken policy files

Has no DAG. When a policy file cannot be used, reading this file fails, so that Airflow shows an import error that names
the file, the field and the fix; the DAGs of all other policies go on undisturbed.
"""

from __future__ import annotations

from s3_retention.runtime import environment

# Airflow reads only files that hold the words "airflow" and "dag".
environment.check_policies()
