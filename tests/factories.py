"""Makes policies, objects and runs with one line each. What is not said is good and due."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from s3_retention.core.approval import Decision
from s3_retention.core.condition import EtagCondition
from s3_retention.core.holder import Holder
from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.core.outcome import Final, Outcome
from s3_retention.core.policy import RetentionPolicy, parse_policy
from s3_retention.core.redrive import Selection
from s3_retention.core.ticks import Tick
from s3_retention.core.watched import watch_policy
from s3_retention.s3.limits import RetryLimits
from s3_retention.sources.row_source import RowSource
from s3_retention.sources.s3_listing import S3Listing
from s3_retention.steps import (
    approve,
    claim,
    delete,
    flag_missed,
    plan,
    quarantine,
    redrive,
    replay,
    report,
    watch,
)
from s3_retention.store import store_probes
from s3_retention.store.store_probes import ProbedStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from mypy_boto3_s3 import S3Client

    from s3_retention.core.approval import Approval
    from s3_retention.core.report import RunReport
    from s3_retention.core.ticks import TicksBetween
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.sources.postgres_rows import PostgresRows
    from s3_retention.sources.row_source import PlanSource
    from s3_retention.steps.decide import PlanResult
    from s3_retention.store.batches import DealtBatch
    from s3_retention.store.connection import Connection
    from sandbox.s3 import S3Server

UTC = timezone.utc
BUCKET = "t-fake"
NAME = "weekly_digests"
CLEANUP = "s3_retention_cleanup__weekly_digests"
REDRIVE = "s3_retention_redrive"
WATCH = "s3_retention_watch"
OLD = datetime(2020, 1, 1, tzinfo=UTC)
BY_KEY_DATE = {
    "from": "key_date",
    "regex": r"exports/(?P<date>\d{4}-\d{2})/",
    "format": "%Y-%m",
    "retain": "30d",
}
BY_LAST_MODIFIED = {"from": "last_modified", "retain": "30d"}
KEEP_LATEST = {"latest": 1, "group_by": ["customer"]}
NO_WAIT = RetryLimits(sleep=lambda _: None)
MAX_BATCHES = 1024


def a_policy(*, bucket: str = BUCKET, **changes: Any) -> RetentionPolicy:
    """A policy of `exports/<month>/<customer>.json`, due 30 days after the month; `changes` replace sections.

    Small objects in a test bucket are often all that there is: expiring everything is allowed.
    """
    data: dict[str, Any] = {
        "name": NAME,
        "version": "v1",
        "mode": "enforce",
        "source": {
            "type": "s3_listing",
            "bucket": bucket,
            "prefix": "exports/",
            "aws_conn_id": "s3_retention_store",
        },
        "select": {"regex": r"(?s)exports/(?P<month>\d{4}-\d{2})/(?P<customer>.+)\.json"},
        "age": BY_KEY_DATE,
        "limits": {"allow_expire_everything": True},
    }
    return parse_policy(data | changes, where="a test", min_retention=timedelta(days=1))


def facts(
    key: str = "exports/2020-01/a.json",
    *,
    bucket: str = BUCKET,
    version_id: str | None = None,
    etag: str | None = '"e"',
    size: int = 1,
    at: datetime = OLD,
) -> ObjectFacts:
    """An object as a listing shows it."""
    return ObjectFacts(ObjectRef(bucket, key, version_id), etag, size, at)


def holder(task: str = "delete", run: str = "run-1", map_index: int = -1, try_number: int = 1) -> Holder:
    """A try of a task of a cleanup run."""
    return Holder(CLEANUP, run, task, map_index, try_number)


@dataclass(frozen=True)
class Pages:
    """A source that is given its pages; with an `error`, it breaks off after them."""

    given: Sequence[Sequence[ObjectFacts]]
    error: Exception | None = None
    bodies: Mapping[str, bytes] = field(default_factory=dict)
    tags: Mapping[str, dict[str, str]] = field(default_factory=dict)

    def pages(self) -> Iterator[list[ObjectFacts]]:
        for page in self.given:
            yield list(page)
        if self.error is not None:
            raise self.error

    def read_clock(self) -> None:
        """Tell no time."""

    def read_body(self, ref: ObjectRef, *, max_bytes: int) -> bytes | Outcome:
        return self.bodies[ref.key][:max_bytes] if ref.key in self.bodies else Outcome(Final.ALREADY_ABSENT)

    def read_tags(self, ref: ObjectRef) -> dict[str, str] | Outcome:
        return self.tags.get(ref.key, {})


class Timeless(S3Listing):
    """A listing of a store that tells no time: the clock of the ledger is a test's own."""

    def read_clock(self) -> None:
        """Tell no time."""


def source_of(*objects: ObjectFacts) -> Any:
    """A source of one page."""
    return Pages([objects])


def hourly(last: Tick, before: datetime) -> list[Tick]:
    """The ticks of `0 * * * *` in UTC, without Airflow."""
    ticks, at = [], last.due_at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    while at < before:
        ticks.append(Tick.at(at))
        at += timedelta(hours=1)
    return ticks


@lru_cache(maxsize=1)
def _odd_keys() -> tuple[str, ...]:
    names = ["a b", "a+b", "a%20b", "a%2Fb", '"q"', "'", "&amp;", "<x>", "]]>", "é", "e\u0301", "😀"]
    names += ["new\nline", "cr\rx", "crlf\r\nx", "tab\tx", "\x01", "\x1f", "\x7f", "\ufffe", " lead", "~*!()"]
    names += [
        "?a=b",
        "#h",
        "\u200b",
        "\u202e",
        "{x}",
        "NULL",
        "a,b",
        "x" * 200 + "/" + "y" * 200,
        "$$",
        ";--",
    ]
    return tuple(f"exports/2020-01/{name}.json" for name in names)


ODD_KEYS = _odd_keys()
"""Keys that real stores hold and real programs break on. Postgres can hold each; XML cannot."""


@dataclass(frozen=True)
class World:
    """A ledger, a bucket and the steps between them, under one policy."""

    conn: Connection
    root: Connection
    s3: S3Server
    admin: S3Client
    gateway: S3Gateway
    bucket: str
    changes: dict[str, Any] = field(default_factory=dict)
    orphans: PostgresRows | None = None
    """Of a policy of rows: how its tables are opened."""
    knows_store: bool = True
    """Whether it is known that the store honours ETags: a test that counts requests sees no probe then."""

    @property
    def policy(self) -> RetentionPolicy:
        return a_policy(bucket=self.bucket, **self.changes)

    def under(self, **changes: Any) -> World:
        """The same world under a policy with these changes."""
        return replace(self, changes=self.changes | changes)

    def through(self, gateway: S3Gateway) -> World:
        """The same world, seen through another gateway."""
        return replace(self, gateway=gateway)

    @property
    def source(self) -> PlanSource:
        """Where the candidates of the policy come from."""
        if self.orphans is not None:
            return RowSource(self.orphans, self.gateway)
        return Timeless(self.gateway, self.bucket, "exports/")

    def know_store(self) -> None:
        """Let it be known, without asking, that the store honours ETags, whatever it says of versions."""
        source = self.policy.source
        for versioning in ("", "Never", "Enabled", "Suspended"):
            probed = ProbedStore(self.gateway.endpoint, source.aws_conn_id, source.bucket, versioning)
            store_probes.remember(self.conn, probed, EtagCondition.HONOURED, valid_for=timedelta(days=1))

    def put(self, *keys: str, body: bytes = b"x") -> None:
        """Upload objects."""
        client = self.admin
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: client.put_object(Bucket=self.bucket, Key=key, Body=body), keys))

    def keys(self) -> set[str]:
        """What is in the bucket now, by an independent listing."""
        pages = self.admin.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return {entry["Key"] for page in pages for entry in page.get("Contents", [])}

    def claim(self, run: str = "run-1") -> claim.ClaimResult:
        return claim.run(self.conn, self.policy, holder("claim", run))

    def plan(
        self,
        run: str = "run-1",
        *,
        interval_id: int | None = None,
        source: PlanSource | None = None,
        max_batches: int = MAX_BATCHES,
    ) -> PlanResult:
        """Plan the claimed interval, which is the newest unless it is named."""
        return plan.run(
            self.conn,
            source or self.source,
            self.policy,
            self.interval_id() if interval_id is None else interval_id,
            holder("plan", run),
            max_batches=max_batches,
        )

    def answer(self, decision: str, run: str = "run-1", by: str | None = "ann") -> Approval:
        """Answer the question that a run has asked."""
        return approve.decide(
            self.conn, NAME, holder("approve_plan", run), decision=Decision(decision), decided_by=by
        )

    def deal(
        self, run: str = "run-1", *, interval_id: int | None = None, max_batches: int = MAX_BATCHES
    ) -> tuple[DealtBatch, ...]:
        """Deal the planned interval to a run, as after an answer."""
        return approve.resume(
            self.conn,
            self.policy,
            self.interval_id() if interval_id is None else interval_id,
            holder("deal_batches", run),
            max_batches=max_batches,
        )

    def planned(self, run: str = "run-1") -> PlanResult:
        """Claim and plan."""
        self.claim(run)
        return self.plan(run)

    def delete(
        self,
        batch: Any,
        run: str = "run-1",
        *,
        dag: str = CLEANUP,
        try_number: int = 1,
        limits: RetryLimits = NO_WAIT,
    ) -> delete.DeleteResult:
        """Deliver a batch."""
        who = Holder(dag, run, "delete", batch.map_index, try_number)
        if self.knows_store:
            self.know_store()
        return delete.run(
            self.conn, self.gateway, self.policy, batch.batch_id, who, limits=limits, rows=self.orphans
        )

    def sweep(
        self, run: str = "run-1", *, failed: Collection[int] = (), dag: str = CLEANUP
    ) -> quarantine.QuarantineResult:
        return quarantine.run(self.conn, Holder(dag, run, "quarantine"), failed_map_indexes=failed)

    def report(
        self,
        run: str = "run-1",
        *,
        interval_id: int | None = None,
        triggered_at: datetime | None = None,
    ) -> RunReport:
        """Report a cleanup run on its interval, which is the newest unless it is named."""
        return report.run(
            self.conn,
            holder("report", run),
            policy=NAME,
            interval_id=self.interval_id() if interval_id is None else interval_id,
            window=self.policy.window,
            triggered_at=triggered_at,
        )

    def clean(self, run: str = "run-1") -> RunReport:
        """A whole cleanup run."""
        for batch in self.planned(run).batches:
            self.delete(batch, run)
        self.sweep(run)
        return self.report(run)

    def select(self, run: str = "redrive-1", *, max_batches: int = MAX_BATCHES, **what: Any) -> Any:
        """Select for redrive: everything that waits unless `what` narrows it."""
        return redrive.run(
            self.conn,
            Selection(**what),
            Holder(REDRIVE, run, "select"),
            acted_by="ann",
            max_batches=max_batches,
        )

    def redrive(self, run: str = "redrive-1", **what: Any) -> RunReport:
        """A whole redrive run."""
        for batch in self.select(run, **what).batches:
            self.delete(batch, run, dag=REDRIVE)
        self.sweep(run, dag=REDRIVE)
        return self.report_redrive(run)

    def replan(
        self,
        interval_key: str | None = None,
        run: str = "replay-1",
        *,
        source: PlanSource | None = None,
        max_batches: int = MAX_BATCHES,
    ) -> PlanResult:
        """Plan the replay of an interval, which is the newest unless it is named."""
        return replay.run(
            self.conn,
            source or self.source,
            self.policy,
            interval_key or self.interval_key(),
            Holder(REDRIVE, run, "select"),
            acted_by="ann",
            max_batches=max_batches,
        )

    def replay(self, interval_key: str | None = None, run: str = "replay-1") -> RunReport:
        """A whole replay run of an interval, which is the newest unless it is named."""
        for batch in self.replan(interval_key, run).batches:
            self.delete(batch, run, dag=REDRIVE)
        self.sweep(run, dag=REDRIVE)
        return self.report_redrive(run)

    def report_redrive(self, run: str = "redrive-1") -> RunReport:
        return report.run(self.conn, Holder(REDRIVE, run, "report"), policy=None, interval_id=None)

    def flag(
        self,
        this: datetime | None = None,
        *,
        run: str = "flagging",
        ticks: TicksBetween | None = None,
        hints: flag_missed.Hints | None = None,
    ) -> flag_missed.FlagResult:
        """Flag as the run of the tick `this` does, or as the watch; the policy's ticks are those of `hourly`."""
        return flag_missed.run(
            self.conn,
            watch_policy(self.policy),
            this=None if this is None else Tick.at(this),
            ticks_between=ticks or hourly,
            hints=hints or flag_missed.Hints(),
            flagged_by=f"{CLEANUP}/{run}",
        )

    def watch(self, *policies: RetentionPolicy, hints: flag_missed.Hints | None = None) -> watch.WatchResult:
        """One pass of the watch over these policies, or over that of this world."""
        return watch.run(
            self.conn,
            policies or [self.policy],
            Holder(WATCH, "pass", "watch_policies"),
            asking=watch.Asking(ticks_of=lambda _: hourly, hints_of=lambda _: hints or flag_missed.Hints()),
            retry_delay=timedelta(0),
        )

    def missed(self) -> list[tuple[int, str, bool]]:
        """The hour, the cause, and whether it is resolved, of each missed interval."""
        rows = self.rows("SELECT * FROM s3_retention.missed_intervals ORDER BY due_at")
        return [(row["due_at"].hour, row["cause"], row["resolved_at"] is not None) for row in rows]

    def open_findings(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The details of the open findings, by kind and subject."""
        rows = self.rows("SELECT kind, subject, detail FROM s3_retention.findings WHERE closed_at IS NULL")
        return {(row["kind"], row["subject"]): row["detail"] for row in rows}

    def interval_key(self) -> str:
        """The key of the newest interval."""
        key: str = self.value(
            "SELECT interval_key FROM s3_retention.intervals ORDER BY interval_id DESC LIMIT 1"
        )
        return key

    def interval_id(self) -> int:
        """The id of the newest interval."""
        return int(self.value("SELECT max(interval_id) FROM s3_retention.intervals"))

    def rows(self, query: str, **params: Any) -> list[dict[str, Any]]:
        """Ask the ledger from outside."""
        return self.root.execute(query, params).fetchall()

    def value(self, query: str, **params: Any) -> Any:
        """Ask the ledger for one value."""
        (row,) = self.rows(query, **params)
        (value,) = row.values()
        return value

    def outcomes(self) -> dict[str, str]:
        """The ledger: the outcome of each key, with the reason where it was kept."""
        rows = self.rows("SELECT key, outcome, reason FROM s3_retention.ledger_entries")
        found = {row["key"]: ":".join(filter(None, (row["outcome"], row["reason"]))) for row in rows}
        assert len(found) == len(rows), "a key has two entries"
        return found

    def waiting(self) -> dict[str, str]:
        """The open quarantine rows: the class of each key."""
        rows = self.rows("SELECT key, failure_class FROM s3_retention.quarantine WHERE resolved_at IS NULL")
        return {row["key"]: row["failure_class"] for row in rows}

    def balance(self, interval_id: int | None = None) -> tuple[int, ...]:
        """Discovered, deleted, already absent, changed, kept, quarantined, pending; they must balance."""
        (row,) = self.rows(
            "SELECT num_discovered, num_deleted, num_already_absent, num_changed, num_kept, num_quarantined, "
            "num_pending FROM s3_retention.balance WHERE interval_id = %(interval_id)s",
            interval_id=interval_id or self.interval_id(),
        )
        counts = tuple(int(count) for count in row.values())
        assert counts[0] == sum(counts[1:])
        return counts

    def cut_chunks(self, size: int) -> None:
        """Cut the chunks of a plan into chunks of `size`: else a second one takes 1,001 objects."""
        self.root.execute(
            """
            WITH whole AS (DELETE FROM s3_retention.chunks RETURNING *)
            INSERT INTO s3_retention.chunks (
                batch_id, interval_id, generation, chunk_number, tenant, bucket, keys, version_ids, etags, sizes,
                last_modified_ats, due_ats, group_keys, num_commands
            )
            SELECT
                batch_id, interval_id, generation, row_number() OVER (ORDER BY chunk_number, a), tenant,
                bucket, keys[a:z], version_ids[a:z], etags[a:z], sizes[a:z], last_modified_ats[a:z], due_ats[a:z],
                group_keys[a:z], cardinality(keys[a:z])
            FROM whole
            CROSS JOIN generate_series(1, num_commands, %(size)s) AS a
            CROSS JOIN LATERAL (SELECT a + %(size)s - 1 AS z) AS last
            """,
            {"size": size},
        )

    def set_clock(self, sql_expression: str) -> None:
        """Let the ledger's clock give something else."""
        self.root.execute(
            "CREATE OR REPLACE FUNCTION s3_retention.clock() RETURNS timestamptz LANGUAGE sql VOLATILE "
            f"RETURN {sql_expression}"
        )

    def expire_leases(self) -> None:
        """Let every lease be over."""
        for table in ("intervals", "replays", "batches"):
            self.root.execute(
                f"UPDATE s3_retention.{table} SET claimed_until = '2000-01-01' WHERE claimed_until IS NOT NULL"  # noqa: S608
            )
