"""Judges the objects that orphaned rows name: one candidate for each object, whatever number of rows names it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from s3_retention.core.age import AgeRule
from s3_retention.core.decider import Decider
from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.core.orphans import ATTACHED, MAX_KEY_BYTES, MAX_SHOWN, NO_KEY, read_ref
from s3_retention.core.outcome import Outcome
from s3_retention.core.policy_parts import Mode
from s3_retention.core.verdict import (
    IN_FUTURE,
    NO_DETACH_TIME,
    NO_TENANT,
    Action,
    Candidate,
    RowFacts,
    Verdict,
)
from s3_retention.errors import PlanRefusedError
from s3_retention.s3.answers import broken_off
from s3_retention.s3.limits import RetryLimits
from s3_retention.sources.read_ahead import read_ahead
from s3_retention.steps.retry import look_with_retries
from s3_retention.store import plan_rows
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.policy_rows import RowKey, Rows
    from s3_retention.sources.row_source import RowSource
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

Judged = Candidate | Verdict
MIN_LOOKED = 20
"""Objects below which the share that is absent says nothing."""
COUNTED_AT_ONCE = 100_000
"""Rows that are no candidates are counted so many at a time, each time with a sign of life."""


def judged_orphans(
    conn: Connection, source: RowSource, policy: RetentionPolicy, now: datetime
) -> Iterator[list[Judged]]:
    """Judge every object that an orphaned row names, and count the rows that keep theirs.

    Each object that may be due is looked at: its command is held to the incarnation that was seen. One that is gone
    is due all the same, since its rows are still there; so is one that the store does not show, or whose row is
    malformed: their commands end in quarantine, with the cause.
    Raises ``RowsError``, ``StoreError``, and ``PlanRefusedError`` where the policy is not one of rows.
    """
    rows = policy.source.rows
    if rows is None:
        raise PlanRefusedError(f"policy {policy.name}: source.type is not postgres_rows")
    source.rows.refuse_unfit(is_deleting=policy.mode is Mode.ENFORCE)
    with transaction(conn):
        plan_rows.begin(conn)
    for page in read_ahead(source.rows.pages()):
        with transaction(conn):
            plan_rows.copy(conn, page)
        yield [_keep(NO_KEY)] * sum(row.named is None for row in page)
    num_attached = source.rows.count_attached()
    for counted in range(0, num_attached, COUNTED_AT_ONCE):
        yield [_keep(ATTACHED)] * min(COUNTED_AT_ONCE, num_attached - counted)
    with transaction(conn):
        if rows.detached_at is None:
            plan_rows.date_by_sightings(conn, policy=policy.name, now=now)
        plan_rows.group(conn)
    age = AgeRule(policy.age, timezone=policy.timezone)
    judge = _Judge(source, policy, rows.key, Decider(policy), age, now, RetryLimits())
    after, looked, absent = 0, 0, 0
    with ThreadPoolExecutor(max_workers=policy.batch.parallel, thread_name_prefix="look") as pool:
        while orphans := plan_rows.list_orphans(conn, after=after):
            after = orphans[-1]["place"]
            found = list(pool.map(judge.judge, orphans))
            judged = [one for one, _ in found]
            looked += sum(is_there is not None for _, is_there in found)
            absent += sum(is_there is False for _, is_there in found)
            with transaction(conn):
                plan_rows.copy_commands(conn, _due(orphans, judged, now))
            yield judged
    _refuse_absent(policy, rows, looked=looked, absent=absent)


def _refuse_absent(policy: RetentionPolicy, rows: Rows, *, looked: int, absent: int) -> None:
    """Refuse to let go of rows whose objects are said to be gone, where that is more likely a fault of the policy."""
    share = rows.max_absent_share
    if share is not None and looked >= MIN_LOOKED and absent > share * looked:
        raise PlanRefusedError(
            f"policy {policy.name}: {absent:,} of {looked:,} objects that are due are not in bucket "
            f"{policy.source.bucket}, and their rows would go; nothing was planned: look at source.rows.key, or raise "
            "source.rows.max_absent_share if they are gone indeed"
        )


def _due(
    orphans: Sequence[Row], judged: Sequence[Judged], now: datetime
) -> Iterator[tuple[int, ObjectFacts]]:
    for orphan, one in zip(orphans, judged, strict=True):
        if isinstance(one, Candidate) and one.due_at is not None and one.due_at < now:
            yield orphan["place"], one.facts


def _keep(reason: str) -> Verdict:
    return Verdict(Action.KEEP, (reason,))


@dataclass(frozen=True, slots=True)
class _Judge:
    """What is asked of each object."""

    source: RowSource
    policy: RetentionPolicy
    key: RowKey
    decider: Decider
    age: AgeRule
    now: datetime
    limits: RetryLimits

    def judge(self, orphan: Row) -> tuple[Judged, bool | None]:
        """Judge one object: by its rows first, and by a look at it where it may be due.

        Gives besides whether that look found it; None where there was none, or it told nothing.
        """
        if orphan["kept_by"] is not None:
            return _keep(orphan["kept_by"]), None
        row = RowFacts(orphan["detached_at"], orphan["tenant"])
        ref = read_ref(self.key, orphan["named"], self.policy.source.bucket)
        if isinstance(ref, str):
            return self._malformed(orphan["named"], row), None
        # Until it is looked at, it is as one that is gone: its rows tell all that is known.
        gone = _nothing_known(ref, row, self.now)
        judged = self.decider.candidate(gone, now=self.now, rows=row)
        if isinstance(judged, Verdict) or judged.due_at is None or judged.due_at >= self.now:
            return judged, None
        found = look_with_retries(self.source.store, ref, self.limits)
        if isinstance(found, Outcome):
            # A store or an identity at fault says nothing of an object, and a part of a scan is never planned from.
            if found.stops_batch or found.is_retried:
                raise broken_off(f"a look at {ref} ended with", found)
            return judged, False if found.is_final else None
        return self.decider.candidate(found, now=self.now, rows=row), True

    def _malformed(self, named: str, row: RowFacts) -> Judged:
        """Make a candidate of a row that names no object that there can be: a person is to see it."""
        if row.detached_at is None:
            return NO_DETACH_TIME
        if self.policy.tenant is not None and not row.tenant:
            return NO_TENANT
        facts = _nothing_known(ObjectRef(self.policy.source.bucket, _recordable(named)), row, self.now)
        due_at = self.age.due_at(row.detached_at)
        if due_at is None:
            return IN_FUTURE
        return Candidate(facts, row.detached_at, due_at, None, row.tenant)


def _recordable(named: str) -> str:
    """Give what stands for the key of a malformed row: itself, unless an index of the ledger cannot hold it."""
    raw = named.encode()
    return (
        named if len(raw) <= MAX_KEY_BYTES else f"{named[:MAX_SHOWN]}... (sha256 {sha256(raw).hexdigest()})"
    )


def _nothing_known(ref: ObjectRef, row: RowFacts, now: datetime) -> ObjectFacts:
    return ObjectFacts(ref, None, 0, row.detached_at or now)
