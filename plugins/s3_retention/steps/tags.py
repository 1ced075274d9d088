"""Asks for the tags of what a policy by tags may delete: a request for each object, at the plan and at the delete."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from s3_retention.core.outcome import OF_ONE_OBJECT, Outcome, kept
from s3_retention.core.verdict import TAGS_NOT_READ, Action, Verdict
from s3_retention.errors import PlanRefusedError
from s3_retention.s3.answers import broken_off, may_pass
from s3_retention.s3.limits import RetryLimits
from s3_retention.s3.recheck import Faults
from s3_retention.sources.s3_listing import TagReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from types import TracebackType

    from typing_extensions import Self

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.decider import Decider
    from s3_retention.core.objects import ObjectFacts, ObjectRef
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.core.verdict import Candidate

    Judged = Candidate | Verdict

T = TypeVar("T")
MIN_DENIED = 100
"""Objects whose tags were denied, and none read, from which on the identity is at fault and not the objects."""


def read(reader: TagReader, ref: ObjectRef, limits: RetryLimits) -> dict[str, str] | Outcome:
    """Read the tags of one object; where the store does not say at first, it is asked again."""
    found: dict[str, str] | Outcome = limits.retrying(may_pass)(reader.read_tags, ref)
    return found


def judge(
    reader: TagReader, decide: Callable[..., T], facts: ObjectFacts, *, limits: RetryLimits, **given: Any
) -> T | Outcome:
    """Decide one object by ``decide``, a method of ``Decider``, with its tags where these count.

    ``given`` is what that takes besides. Gives an outcome where the tags cannot be had.
    """
    judged = decide(facts, **given)
    if judged is not TAGS_NOT_READ:
        return judged
    tags = read(reader, facts.ref, limits)
    return tags if isinstance(tags, Outcome) else decide(facts, tags=tags, **given)


class TagScan:
    """Reads the tags that a scan asks for, ``batch.parallel`` at a time; closed at the end of the scan."""

    def __init__(self, source: object, policy: RetentionPolicy, decider: Decider, now: datetime) -> None:
        """Take the source of the scan, and the time by which it decides.

        Raises ``PlanRefusedError`` where no tags can be read of the source.
        """
        if not isinstance(source, TagReader):
            raise PlanRefusedError(f"{policy.name}.yaml: tags: they cannot be read in this source")
        self._limits = RetryLimits()
        self._judge = partial(judge, source, decider.candidate, limits=self._limits, now=now)
        self._policy = policy
        self._pool = ThreadPoolExecutor(policy.batch.parallel, thread_name_prefix="tags")
        self._num_denied = 0
        self._is_any_read = False

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the threads go; what is on its way is dropped."""
        # First, or they would go on asking a store that is at fault.
        self._limits.ending.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def judge(self, page: Sequence[ObjectFacts], judged: list[Judged]) -> list[Judged]:
        """Give what was judged of a page, with what lacked its tags judged by them.

        An object that is gone meanwhile, or whose tags are denied, is kept. Raises ``ListingError`` where the store
        does not say, ``PlanRefusedError`` where it denies the tags of each of many.
        """
        places = [place for place, one in enumerate(judged) if one is TAGS_NOT_READ]
        for place, found in zip(
            places, self._pool.map(self._judge, [page[at] for at in places]), strict=True
        ):
            if not isinstance(found, Outcome):
                self._is_any_read = True
                judged[place] = found
            elif found.kind in OF_ONE_OBJECT:
                self._num_denied += 1
            elif not found.is_gone:
                raise broken_off(f"reading the tags of {page[place].ref} broke off with", found)
        if self._num_denied >= MIN_DENIED:
            self.refuse_blindness()
        return judged

    def refuse_blindness(self) -> None:
        """Refuse a plan for which tags were denied, and none could be read. Raises ``PlanRefusedError``."""
        if self._num_denied and not self._is_any_read:
            raise PlanRefusedError(
                f"policy {self._policy.name}: the tags of {self._num_denied:,} objects were denied, and none could be "
                "read: give the identity s3:GetObjectTagging (docs/deploy.md); nothing was planned"
            )


def check(
    reader: TagReader, decider: Decider, commands: Sequence[DeleteCommand], now: datetime, limits: RetryLimits
) -> dict[bytes, Outcome]:
    """Give the outcome of each of these commands that must not go on by the tags of its object now; by command id.

    One that is gone goes on: the delete says so. Where the store or the identity is at fault it is not asked for each.
    """
    decided: dict[bytes, Outcome] = {}
    faults = Faults()
    for command in commands:
        tags = faults.of_all or read(reader, command.ref, limits)
        if isinstance(tags, Outcome):
            failed = faults.see(tags)
            if failed is not None:
                decided[command.command_id] = failed
            continue
        faults.see(tags)
        verdict = decider.by_tags(command.facts, tags, now=now)
        if verdict.action is Action.KEEP:
            decided[command.command_id] = kept(verdict.reasons[0])
    return decided
