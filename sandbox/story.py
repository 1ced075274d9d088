"""The story of the demo, told on a running sandbox: every figure is looked up, and held against what it must be."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sandbox import attachments, second_thoughts
from sandbox.digests import BUCKET, DENIED, Digests, listing, seed, weekly_digests

if TYPE_CHECKING:
    from rich.console import Console

    from sandbox.stack import Stack

CLEANUP = "s3_retention_cleanup__weekly_digests"
REDRIVE = "s3_retention_redrive"
SHIPPED_POLICY = Path(__file__).resolve().parent.parent / "include" / "policies" / "weekly_digests.yaml"
OUTCOMES = """
SELECT entry.outcome, count(*)
FROM s3_retention.ledger_entries AS entry JOIN s3_retention.intervals USING (interval_id)
WHERE intervals.policy = 'weekly_digests'
GROUP BY entry.outcome
UNION ALL
SELECT 'quarantined', count(*)
FROM s3_retention.quarantine WHERE policy = 'weekly_digests' AND resolved_at IS NULL
"""
RUN_SECONDS = 120.0


def write_policy(folder: Path) -> None:
    """Copy the shipped example with two lines changed: it deletes, and no schedule starts it beside the demo."""
    text = SHIPPED_POLICY.read_text(encoding="utf-8")
    for shipped, demo in (("mode: simulate", "mode: enforce"), ('schedule: "0 3 * * 0"', "schedule: null")):
        if text.count(f"\n{shipped}") != 1:
            raise ValueError(f"{SHIPPED_POLICY.name} has no line {shipped!r}")
        text = text.replace(f"\n{shipped}", f"\n{demo}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SHIPPED_POLICY.name).write_text(text, encoding="utf-8")
    second_thoughts.write_policy(folder)
    attachments.write_policy(folder)


@dataclass
class Story:
    """One telling. ``wrong`` collects each figure that was not what it must be."""

    stack: Stack
    console: Console
    wrong: list[str] = field(default_factory=list)

    def tell(self) -> bool:
        """Tell all of it; True if every figure was right."""
        digests = weekly_digests()
        self._seed(digests)
        run_id = self._clean_up()
        self._deliver_again(run_id)
        self._redrive()
        self._balance(digests)
        second_thoughts.tell_approval(self)
        second_thoughts.tell_restore(self)
        attachments.tell_orphans(self)
        return not self.wrong

    def _seed(self, digests: Digests) -> None:
        self.chapter("A bucket fills up")
        self.say(
            f"Writing {len(digests.everything):,} objects into s3://{BUCKET}. An object cannot be back-dated on a "
            "real server, so these are old by the month in their key, and the policy reads it there."
        )
        with Progress(
            TextColumn("  {task.completed:>5,} of {task.total:,}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
        ) as bar:
            written = bar.add_task("seed", total=len(digests.everything))
            seed(self.stack.s3, digests, lambda: bar.advance(written))
        self.stack.s3.deny(BUCKET, DENIED)
        self.figure("expired digests, to be deleted", len(digests.expired), 5_000)
        self.figure("digests of this month, to be kept", len(digests.current), 1_001)
        self.figure("bystanders, to be kept", len(digests.bystanders), 6)
        self.say(
            f"A bucket policy denies the worker two of the expired ones: {' and '.join(DENIED)}. A third has a "
            "control character in its key, which the XML of a bulk delete cannot carry."
        )

    def _clean_up(self) -> str:
        self.chapter("Airflow cleans up")
        airflow = self.stack.airflow
        for dag_id in (CLEANUP, REDRIVE):
            airflow.wait_for_dag(dag_id)
            airflow.unpause(dag_id)
        self.say(f"Triggering {CLEANUP} through Airflow's REST API.")
        run_id = airflow.trigger(CLEANUP)
        with self.console.status("  claim, plan, delete, quarantine, report ..."):
            airflow.wait_for_run(CLEANUP, run_id, RUN_SECONDS, expect="success")
        self._figures({"deleted": 4_998, "quarantined": 2})
        for key, cause, code in self.ask(
            "SELECT key, failure_class, code FROM s3_retention.quarantine WHERE resolved_at IS NULL ORDER BY key"
        ):
            self.say(f"  in quarantine: {key} ({cause}: {code})")
        report = airflow.xcom(CLEANUP, run_id, "report_run")
        self.figure("commands planned, each accounted for", report["num_discovered"], 5_000)
        return run_id

    def _deliver_again(self, run_id: str) -> None:
        self.chapter("The same commands are delivered a second time")
        self.say("Clearing delete_batch and all behind it in Airflow, as an operator would.")
        self.stack.airflow.clear(CLEANUP, run_id, ["delete_batch"], downstream=True)
        with self.console.status("  delete, quarantine, report once more ..."):
            self.stack.airflow.wait_for_run(CLEANUP, run_id, RUN_SECONDS, expect="success")
        self._figures({"deleted": 4_998, "quarantined": 2})
        twice = self.ask(
            "SELECT count(*) - count(DISTINCT command_id) FROM s3_retention.ledger_entries WHERE bucket = %s",
            BUCKET,
        )
        self.figure("objects recorded twice", twice[0][0], 0)

    def _redrive(self) -> None:
        corrected = DENIED[1]
        self.chapter("One permission is corrected")
        self.stack.s3.allow(BUCKET, [corrected])
        operation = self.ask(
            "SELECT encode(operation_id, 'hex') FROM s3_retention.quarantine WHERE key = %s", corrected
        )[0][0]
        self.say(
            f"The denial of {corrected} is lifted. Redriving that one command, operation {operation[:12]}..."
        )
        run_id = self.stack.airflow.trigger(REDRIVE, {"operation_ids": [operation], "dry_run": False})
        with self.console.status("  select, delete, report ..."):
            self.stack.airflow.wait_for_run(REDRIVE, run_id, RUN_SECONDS, expect="success")
        self._figures({"deleted": 4_999, "quarantined": 1})

    def _balance(self, digests: Digests) -> None:
        self.chapter("Ledger and bucket, held against each other")
        self.say("Listing the bucket with plain boto3 as its admin: nothing of the product is asked.")
        left = listing(self.stack.s3)
        deleted = {
            key
            for (key,) in self.ask(
                "SELECT key FROM s3_retention.ledger_entries WHERE outcome = 'deleted' AND bucket = %s",
                BUCKET,
            )
        }
        survivors = {*digests.current, *digests.bystanders}
        self.figure("objects left", len(left), 1_008)
        self.figure("kept objects that are missing", len(survivors - left), 0)
        self.figure(
            "expired objects left, other than the one in quarantine", len(left - survivors - {DENIED[0]}), 0
        )
        self.figure("deleted by the ledger and still there", len(deleted & left), 0)
        self.figure(
            "gone from the bucket without a ledger row", len({*digests.everything} - left - deleted), 0
        )
        ((pending,),) = self.ask(
            "SELECT sum(num_pending) FROM s3_retention.balance WHERE policy = %s", SHIPPED_POLICY.stem
        )
        self.figure("commands that nothing accounts for", int(pending), 0)

    def _figures(self, expected: dict[str, int]) -> None:
        found = {outcome: count for outcome, count in self.ask(OUTCOMES) if count}
        for outcome, count in expected.items():
            self.figure(outcome, found.pop(outcome, 0), count)
        for outcome, count in found.items():
            self.figure(outcome, count, 0)

    def figure(self, what: str, found: int, expected: int) -> None:
        """Show a figure, and whether it is right."""
        right = found == expected
        mark = "[green]right[/green]" if right else f"[bold red]WRONG, {expected:,} expected[/bold red]"
        self.console.print(f"  {found:>7,}  {what}  {mark}", highlight=False)
        if not right:
            self.wrong.append(f"{what}: {found:,} instead of {expected:,}")

    def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask the ledger."""
        # As the writer, whose login the DAGs have: it may read everything.
        with psycopg.connect(self.stack.ledger.writer_conninfo) as conn:
            return conn.execute(statement.encode(), values or None).fetchall()

    def chapter(self, title: str) -> None:
        """Begin a chapter."""
        self.console.print(f"\n[bold]{title}[/bold]")

    def say(self, text: str) -> None:
        """Say a line."""
        self.console.print(f"  {text}", highlight=False, markup=False)
