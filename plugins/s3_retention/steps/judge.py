"""Judges what a source gives, page by page: candidates, and verdicts to keep."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from s3_retention.core.decider import Decider
from s3_retention.core.objects import Versioning
from s3_retention.core.policy_parts import Versions
from s3_retention.core.verdict import Verdict
from s3_retention.core.versions import VersionDecider
from s3_retention.errors import PlanRefusedError
from s3_retention.sources.read_ahead import read_ahead
from s3_retention.sources.row_source import RowSource
from s3_retention.sources.s3_listing import VersionSource
from s3_retention.steps import pointers
from s3_retention.steps.judge_rows import judged_orphans
from s3_retention.steps.tags import TagScan
from s3_retention.store import plan_keeps, plan_kept_keys
from s3_retention.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.verdict import Candidate
    from s3_retention.sources.row_source import PlanSource
    from s3_retention.sources.s3_listing import CandidateSource
    from s3_retention.store.connection import Connection


def judged_pages(
    conn: Connection, source: PlanSource, policy: RetentionPolicy, now: datetime
) -> Iterator[list[Candidate | Verdict]]:
    """Judge every object, or every version where the policy names versions.

    Of a source of rows, every object that an orphaned row names. Where a keep rule goes with named versions, the
    objects that it ranks are taken down besides.
    Raises ``StoreError`` when the source is not complete, ``PlanRefusedError`` when it has no versions to name, or a
    pointer of the policy cannot be read, or names nothing that is there, or no tags can be read.
    """
    if isinstance(source, RowSource):
        yield from judged_orphans(conn, source, policy, now)
        return
    if policy.versions is Versions.CURRENT:
        yield from _judged_currents(conn, source, policy, now)
        return
    versioned = _versioned(source, policy)
    of_versions = VersionDecider(policy)
    if policy.keeps_histories:
        with transaction(conn):
            plan_kept_keys.begin(conn)
    for histories in read_ahead(versioned.histories()):
        if policy.keeps_histories:
            currents = [of_versions.ranked(history, now=now) for history in histories]
            with transaction(conn):
                plan_kept_keys.copy(conn, [one for one in currents if one is not None])
        yield [judged for history in histories for judged in of_versions.decide(history, now=now)]


def _judged_currents(
    conn: Connection, source: CandidateSource, policy: RetentionPolicy, now: datetime
) -> Iterator[list[Candidate | Verdict]]:
    decider = Decider(policy)
    candidate, has_groups = decider.candidate, bool(policy.age.whole_groups)
    if has_groups:
        with transaction(conn):
            plan_keeps.begin(conn)
    spared = pointers.read_for_plan(source, policy)
    with TagScan(source, policy, decider, now) if policy.asks_tags else nullcontext() as tagged:
        for page in read_ahead(source.pages()):
            judged = [candidate(facts, now=now) for facts in page]
            if tagged is not None:
                judged = tagged.judge(page, judged)
            if spared is not None:
                judged = spared.judge(page, judged)
            if has_groups:
                _hold_groups(conn, decider, page, judged)
            yield judged
    if tagged is not None:
        tagged.refuse_blindness()
    if spared is not None:
        spared.refuse_strays()


def _hold_groups(
    conn: Connection, decider: Decider, page: Sequence[ObjectFacts], judged: Sequence[Candidate | Verdict]
) -> None:
    """Hold the groups of what is kept at first sight: one without a date, or from the future, is no less a part."""
    kept = (
        decider.group_of(facts) for facts, one in zip(page, judged, strict=True) if isinstance(one, Verdict)
    )
    held = {group for group in kept if group is not None}
    if held:
        with transaction(conn):
            plan_keeps.hold(conn, held)


def _versioned(source: CandidateSource, policy: RetentionPolicy) -> VersionSource:
    where = f"{policy.name}.yaml: versions = {policy.versions.value}: bucket {policy.source.bucket}"
    versioning = source.ask_versioning() if isinstance(source, VersionSource) else Versioning("Never")
    if not isinstance(source, VersionSource) or versioning.status == "Never":
        raise PlanRefusedError(
            f"{where} has no versions; write versions: current, or switch versioning on in the bucket; nothing was "
            "planned"
        )
    if versioning.needs_mfa:
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/MultiFactorAuthenticationDelete.html
        raise PlanRefusedError(
            f"{where} has MFA delete: each delete that names a version takes a code from the device of the bucket's "
            "owner, which no schedule can give; write versions: current, or have the owner switch MFA delete off; "
            "nothing was planned"
        )
    return source
