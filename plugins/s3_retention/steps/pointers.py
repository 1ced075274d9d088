"""Reads the pointers of a policy: what they name stays, and where one cannot be read nothing is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.core.objects import ObjectRef
from s3_retention.core.outcome import OF_ONE_OBJECT, POINTER_UNAVAILABLE, FailureClass, Outcome, kept
from s3_retention.core.pointers import (
    KEPT_POINTER,
    MAX_BYTES,
    MAX_SHOWN,
    Named,
    UnreadablePointerError,
    names_of,
    read_names,
)
from s3_retention.core.verdict import Action, Candidate, Verdict
from s3_retention.errors import ListingError, PlanRefusedError
from s3_retention.s3.answers import may_pass
from s3_retention.s3.limits import RetryLimits
from s3_retention.sources.s3_listing import BodyReader
from s3_retention.steps.retry import look_with_retries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Judged = Candidate | Verdict

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway

UNREADABLE = "PointerUnreadable"
"""Our own code: a pointer of the policy is gone, denied, or does not say what it names."""
MAX_LOOKS = 100
"""Names of a pointer after which it is taken to name nothing that is there."""

NAMED = Verdict(Action.KEEP, (KEPT_POINTER,))


class Spared:
    """What the pointers spare of a whole scan, and whether each of them named anything that the scan saw."""

    __slots__ = ("_is_any_left", "_named", "_policy", "_unseen")

    def __init__(self, named: Named, policy: RetentionPolicy) -> None:
        """Begin with pointers of which none has been seen to name anything."""
        self._named, self._policy = named, policy
        self._unseen = (1 << len(policy.pointers or ())) - 1
        self._is_any_left = False

    def judge(self, page: Sequence[ObjectFacts], judged: Sequence[Judged]) -> list[Judged]:
        """Give what was judged of a page of objects, with what is named as kept, whether it is due or not.

        It takes no place in a keep rule: more of its group stays, never less.
        """
        spared: list[Judged] = []
        for facts, one in zip(page, judged, strict=True):
            key = facts.ref.key
            if self._unseen:
                self._unseen &= ~self._named.by(key)
            if isinstance(one, Candidate) and self._named.keeps(key):
                spared.append(NAMED)
                continue
            self._is_any_left = self._is_any_left or isinstance(one, Candidate)
            spared.append(one)
        return spared

    def refuse_strays(self) -> None:
        """Refuse a plan by a pointer that names nothing there is: its names are read wrongly, or of another place.

        Where nothing could go, it need not be. Raises ``PlanRefusedError``.
        """
        for number, pointer in enumerate(self._policy.pointers or ()):
            if self._is_any_left and self._unseen >> number & 1:
                raise PlanRefusedError(
                    f"{self._policy.name}.yaml: pointers[{number}]: s3://{self._policy.source.bucket}/{pointer.key} "
                    "names no object that the scan saw; look at base, path and source.prefix; nothing was planned"
                )


def read_for_plan(source: object, policy: RetentionPolicy) -> Spared | None:
    """Read the pointers of a policy before its scan; None where it has none.

    Raises ``ListingError`` where the store does not give one this time, ``PlanRefusedError`` where one is missing or
    does not say what it names.
    """
    if not policy.pointers:
        return None
    if not isinstance(source, BodyReader):
        raise PlanRefusedError(f"{policy.name}.yaml: pointers: they cannot be read in this source")
    named = read(source, policy, RetryLimits())
    if isinstance(named, Unread):
        refused = ListingError if named.may_pass else PlanRefusedError
        raise refused(f"policy {policy.name}: {named.why}; nothing was planned: see docs/runbook.md")
    return Spared(named, policy)


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a pointer could not be read, in a sentence; ``may_pass``: another try may find it."""

    why: str
    may_pass: bool


def read(reader: BodyReader, policy: RetentionPolicy, limits: RetryLimits) -> Named | Unread:
    """Read what every pointer of a policy names; or why that of one cannot be told."""
    named = _none_of(policy)
    for number, found in _each(reader, policy, limits):
        if isinstance(found, Unread):
            return found
        named.add(number, found)
    return named


def check(
    gateway: S3Gateway, policy: RetentionPolicy, limits: RetryLimits, commands: Sequence[DeleteCommand]
) -> dict[bytes, Outcome]:
    """Give the outcome of each of these commands that must not go on by what the pointers say now; by command id.

    Where one cannot be read, or names nothing that is there, no object is to blame: the batch stops.
    """
    # A pointer may name far more than these: what names none of them is let go at once.
    wanted = {name for command in commands for name in names_of(command.ref.key)}
    named = _none_of(policy)
    for number, found in _each(gateway, policy, limits):
        if isinstance(found, Unread):
            return _stop(commands, found)
        held = [name for name in found if name in wanted]
        named.add(number, held)
        stray = None if held else _find_stray(gateway, policy, number, found, limits)
        if stray is not None:
            return _stop(commands, stray)
    return {command.command_id: kept(KEPT_POINTER) for command in commands if named.keeps(command.ref.key)}


def _none_of(policy: RetentionPolicy) -> Named:
    return Named(frozenset(pointer.key for pointer in policy.pointers or ()))


def _stop(commands: Sequence[DeleteCommand], fault: Unread) -> dict[bytes, Outcome]:
    code = POINTER_UNAVAILABLE if fault.may_pass else UNREADABLE
    stopped = Outcome(FailureClass.CONFIG, code=code, message=fault.why, whole_request=True)
    return {command.command_id: stopped for command in commands}


def _each(
    reader: BodyReader, policy: RetentionPolicy, limits: RetryLimits
) -> Iterator[tuple[int, list[str] | Unread]]:
    """Give what each pointer names, by its number; or why that cannot be told, and then no other."""
    left = MAX_BYTES
    for number, pointer in enumerate(policy.pointers or ()):
        ref = ObjectRef(policy.source.bucket, pointer.key)
        body: bytes | Outcome = limits.retrying(may_pass)(reader.read_body, ref, max_bytes=left)
        if isinstance(body, Outcome):
            why = f"cannot be read: {body.code} ({body.message or 'no message'})"
            yield number, Unread(f"pointer {ref} {'is not there' if body.is_gone else why}", body.may_pass)
            return
        left -= len(body)
        try:
            yield number, read_names(pointer, body, bucket=ref.bucket)
        except UnreadablePointerError as error:
            yield number, Unread(f"pointer {ref} {error}", may_pass=False)
            return


def _find_stray(
    gateway: S3Gateway, policy: RetentionPolicy, number: int, names: Sequence[str], limits: RetryLimits
) -> Unread | None:
    """Find out whether a pointer names anything that is there: it may have been written in another form since the plan.

    Most do by their first name. None where one does.
    """
    bucket = policy.source.bucket
    what = f"pointer s3://{bucket}/{(policy.pointers or ())[number].key}"
    # Of a list that only grows, what was named first may be gone.
    few = names if len(names) <= MAX_LOOKS else [*names[: MAX_LOOKS // 2], *names[-(MAX_LOOKS // 2) :]]
    fault: Unread | None = None
    for name in few:
        found = _look_for(gateway, ObjectRef(bucket, name), limits)
        if isinstance(found, Outcome):
            why = f"{what}: {name[:MAX_SHOWN]!r} cannot be looked at: {found.code}"
            fault = fault or Unread(why, found.may_pass)
            if found.kind not in OF_ONE_OBJECT:
                return fault
        elif found:
            return None
    of_these = (
        "" if few is names else f" by the first and the last {MAX_LOOKS // 2} of its {len(names):,} names"
    )
    return fault or Unread(
        f"{what} names no object that is there{of_these}; look at what it says", may_pass=False
    )


def _look_for(gateway: S3Gateway, ref: ObjectRef, limits: RetryLimits) -> bool | Outcome:
    """Tell whether there is an object, or a folder, of this name; or why the store would not say."""
    found = look_with_retries(gateway, ref, limits)
    if not isinstance(found, Outcome):
        return True
    if not found.is_final:
        return found
    try:
        page = gateway.list_page(ref.bucket, f"{ref.key.removesuffix('/')}/", start_after="", token=None)
    except ListingError as error:
        return Outcome(FailureClass.UNKNOWN, code=type(error).__name__, message=str(error))
    return page if isinstance(page, Outcome) else bool(page[0])
