"""The third part of the demo's story: attachments whose e-mail is gone, row and file, on a real table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from botocore.config import Config

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox.story import Story

BUCKET = "mail-attachments"
CLEANUP = "s3_retention_cleanup__mail_attachments"
REDRIVE = "s3_retention_redrive"
NUM_FILES, NUM_ORPHANED = 300, 120
NUM_DUE = NUM_ORPHANED - 2
"""Two rows are of one file, and one file is named by a draft."""
WRONG = "mail-attachments/sfs/0007"
THREADS = 16
RUN_SECONDS = 120.0
POLICY = f"""
name: mail_attachments
version: v1
mode: enforce
description: A file goes a week after its last e-mail, and its rows with it; a draft that names it keeps it.
schedule: null
source:
  type: postgres_rows
  bucket: {BUCKET}
  prefix: sfs/
  rows:
    postgres_conn_id: app_db
    table: mail.attachments
    key: {{url: sfs_key}}
    orphaned: [{{column: email_id, is_null: true}}]
    detached_at: orphaned_at
    soft_delete: deleting_at
    references: [{{table: mail.drafts, column: sfs_key}}]
select: {{include: ["sfs/*"]}}
age: {{from: detached_at, retain: 7d}}
tenant: {{column: account}}
window: {{safety_delay: 0s}}
"""


def write_policy(folder: Path) -> None:
    """Write the policy of the attachments."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mail_attachments.yaml").write_text(POLICY, encoding="utf-8")


def tell_orphans(story: Story) -> None:
    """Delete e-mails as an application does, and let the policy find what they leave behind."""
    story.chapter("Files whose database row lost its parent")
    _seed(story)
    airflow = story.stack.airflow
    airflow.wait_for_dag(CLEANUP)
    airflow.unpause(CLEANUP)
    story.say(
        f"The application deletes {NUM_ORPHANED} of {NUM_FILES} e-mails; ON DELETE SET NULL leaves the rows of their "
        "attachments. Two of these rows are of one file, a draft names another one, and one row has a URL that is none."
    )
    run_id = airflow.trigger(CLEANUP)
    with story.console.status("  claim, plan, check, delete files, delete rows ..."):
        airflow.wait_for_run(CLEANUP, run_id, RUN_SECONDS, expect="success")
    story.figure("files deleted", _count(story, "ledger_entries", "deleted"), NUM_DUE - 1)
    story.figure("rows deleted after them", _count(story, "row_entries", "deleted"), NUM_DUE)
    _compare(story, num_left=NUM_FILES - 1 - NUM_DUE + 1)
    ((operation, message),) = story.ask(
        "SELECT encode(operation_id, 'hex'), message FROM s3_retention.quarantine "
        "WHERE policy = 'mail_attachments' AND resolved_at IS NULL"
    )
    story.say(f"In quarantine: {message}.")
    story.say("The row is corrected, and the command redriven: it becomes a new operation on the right file.")
    story.stack.app.run("UPDATE mail.attachments SET sfs_key = 's3://' || sfs_key WHERE sfs_key = %s", WRONG)
    run_id = airflow.trigger(REDRIVE, {"operation_ids": [operation], "dry_run": False})
    with story.console.status("  select, read the row anew, delete, report ..."):
        airflow.wait_for_run(REDRIVE, run_id, RUN_SECONDS, expect="success")
    story.figure("files deleted", _count(story, "ledger_entries", "deleted"), NUM_DUE)
    _compare(story, num_left=NUM_FILES - 1 - NUM_DUE)
    ((pending,),) = story.ask(
        "SELECT sum(num_pending) FROM s3_retention.balance WHERE policy = 'mail_attachments'"
    )
    story.figure("commands that nothing accounts for", int(pending), 0)


def _count(story: Story, table: str, outcome: str) -> int:
    queries = {
        "ledger_entries": "SELECT count(*) FROM s3_retention.ledger_entries WHERE bucket = %s AND outcome = %s",
        "row_entries": "SELECT count(*) FROM s3_retention.row_entries WHERE %s <> '' AND outcome = %s",
    }
    ((count,),) = story.ask(queries[table], BUCKET, outcome)
    return int(count)


def _compare(story: Story, *, num_left: int) -> None:
    """Hold table and bucket against each other, by plain SQL and plain boto3."""
    client = story.stack.s3.admin_client()
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    files = {f"s3://{BUCKET}/{entry['Key']}" for page in pages for entry in page.get("Contents", [])}
    rows = story.stack.app.run(
        "SELECT DISTINCT sfs_key FROM mail.attachments WHERE sfs_key LIKE %s", "s3://%"
    )
    named = {key for (key,) in rows}
    story.figure("files left", len(files), num_left)
    story.figure("rows whose file is gone", len(named - files), 0)
    story.figure(
        "files without a row, other than the one in quarantine", len(files - named - {f"s3://{WRONG}"}), 0
    )


def _seed(story: Story) -> None:
    app = story.stack.app
    app.attach_triggers()
    keys = [f"sfs/{max(number, 1):04d}" for number in range(NUM_FILES)]
    client = story.stack.s3.admin_client(Config(max_pool_connections=THREADS))
    client.create_bucket(Bucket=BUCKET)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda key: client.put_object(Bucket=BUCKET, Key=key, Body=b"file"), set(keys)))
    app.run("INSERT INTO mail.emails SELECT FROM generate_series(1, %s)", NUM_FILES)
    app.run(
        "INSERT INTO mail.attachments (email_id, sfs_key) "
        "SELECT n, url FROM unnest(%s::text[]) WITH ORDINALITY AS file (url, n)",
        [f"s3://{BUCKET}/{key}" for key in keys],
    )
    app.run("INSERT INTO mail.drafts (sfs_key) VALUES (%s)", f"s3://{BUCKET}/sfs/0050")
    app.run("UPDATE mail.attachments SET sfs_key = %s WHERE sfs_key = %s", WRONG, f"s3://{WRONG}")
    app.run("DELETE FROM mail.emails WHERE id <= %s", NUM_ORPHANED)
    # A row can be old at once, unlike an object.
    app.run("UPDATE mail.attachments SET orphaned_at = orphaned_at - interval '30 days'")
