"""Judges what a source gives, page by page: candidates, and verdicts to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.objects import Versioning
from s3_retention.core.policy_parts import Versions
from s3_retention.core.verdict import Decider
from s3_retention.core.versions import VersionDecider
from s3_retention.errors import PlanRefusedError
from s3_retention.sources.read_ahead import read_ahead
from s3_retention.sources.s3_listing import VersionSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.verdict import Candidate, Verdict
    from s3_retention.sources.s3_listing import CandidateSource


def judged_pages(
    source: CandidateSource, policy: RetentionPolicy, now: datetime
) -> Iterator[list[Candidate | Verdict]]:
    """Judge every object, or every version where the policy names versions.

    Raises ``StoreError`` when the source is not complete, ``PlanRefusedError`` when it has no versions to name.
    """
    if policy.versions is Versions.CURRENT:
        candidate = Decider(policy).candidate
        for page in read_ahead(source.pages()):
            yield [candidate(facts, now=now) for facts in page]
        return
    versioned = _versioned(source, policy)
    decider = VersionDecider(policy)
    for histories in read_ahead(versioned.histories()):
        yield [judged for history in histories for judged in decider.decide(history, now=now)]


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
