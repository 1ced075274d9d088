"""Looks again, just before a delete, where the store does not hold the delete to its condition.

Objects that lie close together in the listing are seen a page at a time, the others by one HEAD each. Each part is
deleted before the next one is looked at, so that the time between look and delete does not grow with the chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import TYPE_CHECKING

from s3_retention.core.objects import ObjectFacts, is_same_incarnation
from s3_retention.core.outcome import FailureClass, Final, Outcome
from s3_retention.errors import ListingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from s3_retention.s3.gateway import S3Gateway

MIN_SEEN_PER_PAGE = 50
"""Targets on a listing page of up to 1,000 keys from which on the next page is worth it; below, HEADs are."""
MAX_LOOKS = 50
"""HEADs after which what they found is deleted."""
MAX_FAILED_LOOKS = 3
"""HEADs in a row without an answer after which the others are not sent: one bad key must not look like a bad store."""


@dataclass(slots=True)
class Faults:
    """Tells a store at fault, which is not asked again, from a thing that it never shows, over looks one by one."""

    of_all: Outcome | None = None
    _num_failed: int = 0

    def see(self, found: object) -> Outcome | None:
        """Give what a look failed with, as a fault of the store or of the one thing alone; None where it found it."""
        if not isinstance(found, Outcome) or found.is_final:
            self._num_failed = 0
            return None
        # An answer that was not given says nothing of a request that names others, too.
        alone = replace(found, whole_request=False)
        self._num_failed = self._num_failed + 1 if alone.is_retried else 0
        is_busy = alone.kind is FailureClass.THROTTLED
        if self.of_all is None and (alone.stops_batch or is_busy or self._num_failed >= MAX_FAILED_LOOKS):
            self.of_all = replace(found, whole_request=True)
        return self.of_all or alone


Part = dict[int, Outcome | None]
"""Places of targets: None where the object is still as planned, else what became of it."""


def recheck(gateway: S3Gateway, targets: Sequence[ObjectFacts]) -> Iterator[Part]:
    """Give every target in one of the parts; the caller deletes what is as planned before it asks for the next.

    A target that a page does not show is looked at by itself: orders, and the start of a listing, differ from store
    to store, so that its absence there says nothing.
    """
    named = [place for place, facts in enumerate(targets) if facts.ref.version_id is not None]
    if named:
        yield dict.fromkeys(named)  # a version does not change
    unseen: dict[str, list[int]] = {}
    for place, facts in enumerate(targets):
        if facts.ref.version_id is None:
            unseen.setdefault(facts.ref.key, []).append(place)  # a redrive can name two lives of one key
    for page in _pages(gateway, targets[0].ref.bucket, list(unseen)):
        part: Part = {}
        for found in page:
            for place in unseen.pop(found.ref.key, ()):
                part[place] = None if is_same_incarnation(targets[place], found) else Outcome(Final.CHANGED)
        if part:
            yield part
        if not unseen or len(part) < MIN_SEEN_PER_PAGE:
            break
    yield from _looks(gateway, targets, sorted(place for places in unseen.values() for place in places))


def _pages(gateway: S3Gateway, bucket: str, keys: Sequence[str]) -> Iterator[list[ObjectFacts]]:
    if len(keys) < MIN_SEEN_PER_PAGE:
        return
    # The key without its last character sorts before the key, whatever the store's order is.
    start_after = min(keys, key=str.encode)[:-1]
    prefix = commonprefix(keys)  # noqa: RUF071 - of characters: an S3 prefix knows no folders
    token: str | None = None
    while True:
        try:
            page = gateway.list_page(bucket, prefix, start_after=start_after, token=token)
        except ListingError:
            return
        if isinstance(page, Outcome):
            return  # the HEADs say what is wrong, each for its own key
        found, token = page
        yield found
        if token is None:
            return


def _looks(gateway: S3Gateway, targets: Sequence[ObjectFacts], places: Sequence[int]) -> Iterator[Part]:
    num_failed = 0
    fault: Outcome | None = None
    for start in range(0, len(places), MAX_LOOKS):
        part: Part = {}
        for place in places[start : start + MAX_LOOKS]:
            found = fault or gateway.look(targets[place].ref)
            if isinstance(found, ObjectFacts):
                part[place] = None if is_same_incarnation(targets[place], found) else Outcome(Final.CHANGED)
                num_failed = 0
                continue
            part[place] = found
            num_failed = num_failed + 1 if found.is_retried else 0
            if found.stops_batch or num_failed == MAX_FAILED_LOOKS:
                # The store is at fault, and no key: it is not asked for each of them, every time up to a timeout.
                fault = replace(found, whole_request=True)
        yield part


def outcome_by_look(planned: ObjectFacts, outcome: Outcome, found: ObjectFacts | Outcome) -> Outcome:
    """Give what became of an object whose delete left that open, by what a look at it found."""
    if isinstance(found, Outcome):
        if found.is_final:
            return replace(outcome, kind=found.kind)
        # The look failed too. Where the whole request went unanswered, the store is at fault, not the key.
        kind = FailureClass.UNKNOWN if found.is_retried else found.kind
        return replace(found, kind=kind, whole_request=outcome.whole_request)
    if not is_same_incarnation(planned, found):
        return replace(outcome, kind=Final.CHANGED)
    # Still there as planned: the store did not act, or refused a condition that holds.
    return replace(outcome, kind=FailureClass.CONFLICT if outcome.is_final else FailureClass.UNKNOWN)
