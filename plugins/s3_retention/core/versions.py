"""Decides the versions of one key, all of them in view: which go, from when on, and why the others stay.

The plan asks it for each key of a listing, and the delete asks it again just before, by a second look at the key.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from s3_retention.core.age import AgeRule, in_utc
from s3_retention.core.decider import Decider
from s3_retention.core.policy_parts import Versions
from s3_retention.core.verdict import IN_FUTURE, Action, Candidate, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from s3_retention.core.objects import ListedVersion
    from s3_retention.core.policy import RetentionPolicy

Judged = Candidate | Verdict

CURRENT, NEWEST, OVER_VERSIONS, OVER_KEPT, NO_LATEST = (
    Verdict(Action.KEEP, (reason,))
    for reason in (
        "current_version",
        "kept_newest_noncurrent",
        "marker_over_versions",
        "over_kept_versions",
        "latest_not_listed",
    )
)


class VersionDecider:
    """A policy whose ``versions`` are ``noncurrent`` or ``all``, made ready to decide whole histories."""

    __slots__ = ("_age", "_decider", "_num_newest", "_of_markers", "_takes_current")

    def __init__(self, policy: RetentionPolicy) -> None:
        """Compile the policy's patterns."""
        self._decider = Decider(policy)
        # A delete marker has no size and no storage class that a rule could speak of.
        by_key = policy.select.model_copy(update=dict.fromkeys(("min_size", "max_size", "storage_class")))
        self._of_markers = Decider(policy.model_copy(update={"select": by_key}))
        self._age = AgeRule(policy.age, timezone=policy.timezone)
        self._takes_current = policy.versions is Versions.ALL
        self._num_newest = policy.keep_newest_noncurrent or 0

    def decide(self, history: Sequence[ListedVersion], *, now: datetime) -> list[Judged]:
        """Judge each entry of the history of one key, which must be whole; ``now`` is aware.

        - One that is not the latest ages from when it became so: the time of the next newer entry, and of the newer
          of two times where the key has a date, too. Entries of one second have no known order: then it is the time
          after that second.
        - The latest is kept, or goes with its whole history, due with the last of it, and stays where a part stays.
        - A delete marker that is the latest goes when no version lies beneath it: else it would bring that back.
        - Where not exactly one entry is the latest, the listing has a gap, and everything is kept. So it is where the
          latest is listed again as one that is not: something came while the store was listing.
        """
        judged = [
            (self._of_markers if one.is_marker else self._decider).candidate(one.facts, now=now)
            for one in history
        ]
        latest = [place for place, one in enumerate(history) if one.is_latest]
        others = {one.facts.ref for one in history if not one.is_latest}
        if len(latest) != 1 or history[latest[0]].facts.ref in others:
            return [one if isinstance(one, Verdict) else NO_LATEST for one in judged]
        newest = _newest_noncurrent(history, self._num_newest)
        times = sorted({in_utc(one.facts.last_modified_at) for one in history})
        for place, one in enumerate(history):
            found = judged[place]
            if place != latest[0] and not isinstance(found, Verdict):
                judged[place] = NEWEST if place in newest else self._aged(one, found, times)
        judged[latest[0]] = self._judge_latest(history, judged, latest[0])
        return judged

    def ranked(self, history: Sequence[ListedVersion], *, now: datetime) -> Candidate | None:
        """Give the object by which a keep rule ranks this key among others: the latest, unless it is a marker."""
        for one in history:
            if one.is_latest and not one.is_marker:
                found = self._decider.candidate(one.facts, now=now)
                return None if isinstance(found, Verdict) else found
        return None

    def _aged(self, one: ListedVersion, candidate: Candidate, times: Sequence[datetime]) -> Judged:
        """Let a version age from when something newer came."""
        own = in_utc(one.facts.last_modified_at)
        place = bisect_right(times, own)
        became_noncurrent_at = times[place] if place < len(times) else own
        reference_at = max(became_noncurrent_at, candidate.reference_at or became_noncurrent_at)
        due_at = self._age.due_at(reference_at)
        return IN_FUTURE if due_at is None else replace(candidate, reference_at=reference_at, due_at=due_at)

    def _judge_latest(self, history: Sequence[ListedVersion], judged: Sequence[Judged], place: int) -> Judged:
        found = judged[place]
        if isinstance(found, Verdict):
            return found
        if history[place].is_marker:
            is_lone = all(one.is_marker for one in history)
            return found if is_lone else OVER_VERSIONS
        if not self._takes_current:
            return CURRENT
        due_ats = []
        for one in judged:
            if isinstance(one, Verdict) or one.due_at is None:
                return OVER_KEPT
            due_ats.append(one.due_at)
        return replace(found, due_at=max(due_ats))


def _newest_noncurrent(history: Sequence[ListedVersion], num: int) -> set[int]:
    """Give the places of the newest versions that are not the latest; of one time, those that are listed first.

    Delete markers do not count: to keep one keeps no data. A version that a store lists twice counts once.
    """
    places = [place for place, one in enumerate(history) if not one.is_latest and not one.is_marker]
    places.sort(key=lambda place: in_utc(history[place].facts.last_modified_at), reverse=True)
    newest = set(list(dict.fromkeys(history[place].facts.ref for place in places))[:num])
    return {place for place in places if history[place].facts.ref in newest}
