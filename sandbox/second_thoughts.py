"""The second part of the demo's story: a plan that is too large waits for a person, and a delete is undone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from botocore.config import Config

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox.story import Story

BUCKET = "raw-events"
CLEANUP = "s3_retention_cleanup__raw_events"
RESTORE = "s3_retention_restore"
NUM_OLD, NUM_NEW, MAX_OBJECTS = 300, 20, 100
THREADS = 16
RUN_SECONDS = 120.0
POLICY = f"""
name: raw_events
version: v1
mode: enforce
description: Raw events go 30 days after their day; more than {MAX_OBJECTS} of them at once only when somebody says so.
schedule: null
source: {{type: s3_listing, bucket: {BUCKET}, prefix: events/}}
select: {{include: ["events/**"]}}
age: {{from: key_date, regex: "^events/(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})/", format: "%Y-%m-%d", retain: 30d}}
window: {{safety_delay: 0s}}
limits: {{max_objects: {MAX_OBJECTS}}}
"""


def write_policy(folder: Path) -> None:
    """Write the policy of the bucket with versions."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "raw_events.yaml").write_text(POLICY, encoding="utf-8")


def tell_approval(story: Story) -> None:
    """Let a plan over its limit wait, and approve it."""
    story.chapter("A plan is larger than its policy allows")
    bodies = _seed(story)
    airflow = story.stack.airflow
    airflow.wait_for_dag(CLEANUP)
    airflow.unpause(CLEANUP)
    story.say(f"{NUM_OLD} raw events are due, and limits.max_objects is {MAX_OBJECTS}. Triggering {CLEANUP}.")
    run_id = airflow.trigger(CLEANUP)
    with story.console.status("  claim, plan ..."):
        airflow.wait_for_question(CLEANUP, run_id, "approve_plan", RUN_SECONDS)
    story.say("approve_plan waits in Airflow for a person, and no worker with it.")
    story.figure("objects deleted before anybody has answered", NUM_OLD + NUM_NEW - len(objects(story)), 0)
    airflow.answer(CLEANUP, run_id, "approve_plan", "Approve")
    with story.console.status("  deal, delete, report ..."):
        airflow.wait_for_run(CLEANUP, run_id, RUN_SECONDS, expect="success")
    left = objects(story)
    story.figure("objects left, all of them young", len(left), NUM_NEW)
    story.figure("young ones that are missing", len({key for key in bodies if _is_new(key)} - left.keys()), 0)
    ((decision, who),) = story.ask(
        "SELECT decision, decided_by FROM s3_retention.approvals JOIN s3_retention.intervals USING (interval_id) "
        "WHERE policy = 'raw_events'"
    )
    story.say(f"The ledger has the answer: {decision} by {who}.")


def tell_restore(story: Story) -> None:
    """Bring back what was just deleted, and hold it byte for byte against what was written."""
    story.chapter("It was a mistake, and is undone")
    airflow = story.stack.airflow
    airflow.wait_for_dag(RESTORE)
    airflow.unpause(RESTORE)
    ((interval_key,),) = story.ask(
        "SELECT interval_key FROM s3_retention.intervals WHERE policy = 'raw_events'"
    )
    story.say(
        "The bucket has versions: each delete has put a marker on top, which the ledger names. Triggering "
        f"{RESTORE} for that interval."
    )
    form = {
        "interval_key": interval_key,
        "dry_run": False,
        "note": "the demo changes its mind",
        # Of this server the worker may remove markers, too; on AWS that is a right of its own.
        "aws_conn_id": "s3_retention_store",
    }
    run_id = airflow.trigger(RESTORE, form)
    with story.console.status("  look, remove the markers ..."):
        airflow.wait_for_run(RESTORE, run_id, RUN_SECONDS, expect="success")
    before, after = written(), objects(story)
    story.figure("objects in the bucket again", len(after), NUM_OLD + NUM_NEW)
    story.figure("that differ from what was written", sum(after.get(key) != before[key] for key in before), 0)
    ((restored,),) = story.ask("SELECT count(*) FROM s3_retention.restores WHERE outcome = 'restored'")
    story.figure("restores on record", restored, NUM_OLD)


def objects(story: Story) -> dict[str, bytes]:
    """Read the whole bucket with plain boto3 as its admin: the content of each key."""
    client = story.stack.s3.admin_client(Config(max_pool_connections=THREADS))
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    with ThreadPoolExecutor(THREADS) as pool:
        bodies = pool.map(lambda key: client.get_object(Bucket=BUCKET, Key=key)["Body"].read(), keys)
        return dict(zip(keys, bodies, strict=True))


def written() -> dict[str, bytes]:
    """What the bucket holds at first: the content of each key."""
    today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    keys = [f"events/2026-05-0{number % 3 + 1}/{number:04d}.json" for number in range(NUM_OLD)]
    keys += [f"events/{today}/{number:04d}.json" for number in range(NUM_NEW)]
    return {key: f'{{"event": "{key}"}}'.encode() for key in keys}


def _seed(story: Story) -> dict[str, bytes]:
    client = story.stack.s3.admin_client(Config(max_pool_connections=THREADS))
    client.create_bucket(Bucket=BUCKET)
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    bodies = written()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda one: client.put_object(Bucket=BUCKET, Key=one[0], Body=one[1]), bodies.items()))
    return bodies


def _is_new(key: str) -> bool:
    return not key.startswith("events/2026-05-")
