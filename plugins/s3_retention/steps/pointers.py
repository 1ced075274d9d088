"""Reads the pointers of a policy: what they name stays, and where one cannot be read nothing is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.core.objects import ObjectRef
from s3_retention.core.outcome import POINTER_UNAVAILABLE, FailureClass, Outcome, kept
from s3_retention.core.pointers import KEPT_POINTER, MAX_BYTES, Named, UnreadablePointerError, read_names
from s3_retention.core.verdict import Action, Candidate, Verdict
from s3_retention.errors import ListingError, PlanRefusedError
from s3_retention.s3.answers import may_pass
from s3_retention.s3.limits import RetryLimits
from s3_retention.sources.s3_listing import Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    Judged = Candidate | Verdict

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.policy import Pointer, RetentionPolicy

UNREADABLE = "PointerUnreadable"
"""Our own code: a pointer of the policy is gone, denied, or does not say what it names."""
NAMED = Verdict(Action.KEEP, (KEPT_POINTER,))


class Spared:
    """What the pointers spare of a whole scan, and whether each of them named anything that the scan saw."""

    __slots__ = ("_is_any_left", "_named", "_policy", "_unseen")

    def __init__(self, named: Named, policy: RetentionPolicy) -> None:
        """Begin with pointers of which none has been seen to name anything."""
        self._named, self._policy = named, policy
        self._unseen = set(range(len(policy.pointers or ())))
        self._is_any_left = False

    def judge(self, page: Sequence[ObjectFacts], judged: Sequence[Judged]) -> list[Judged]:
        """Give what was judged of a page of objects, with what is named as kept, whether it is due or not.

        It takes no place in a keep rule: more of its group stays, never less.
        """
        spared: list[Judged] = []
        for facts, one in zip(page, judged, strict=True):
            key = facts.ref.key
            if self._unseen:
                self._unseen -= self._named.by(key)
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
        for number in sorted(self._unseen if self._is_any_left else ()):
            pointer = (self._policy.pointers or ())[number]
            raise PlanRefusedError(
                f"{self._policy.name}.yaml: pointers[{number}]: s3://{self._policy.source.bucket}/{pointer.key} names "
                "no object that the scan saw; look at base, path and source.prefix; nothing was planned"
            )


def read_for_plan(source: object, policy: RetentionPolicy) -> Spared | None:
    """Read the pointers of a policy before its scan; None where it has none.

    Raises ``ListingError`` where the store does not give one for now, ``PlanRefusedError`` where one is missing or
    does not say what it names.
    """
    if not policy.pointers:
        return None
    if not isinstance(source, Reader):
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


def read(reader: Reader, policy: RetentionPolicy, limits: RetryLimits) -> Named | Unread:
    """Read every pointer of a policy, each once more where the store does not say for now."""
    named = Named()
    for number, pointer in enumerate(policy.pointers or ()):
        ref = ObjectRef(policy.source.bucket, pointer.key)
        found = _read_one(reader, ref, pointer, limits)
        if isinstance(found, Unread):
            return found
        named.add(number, pointer, found)
    return named


def check(
    reader: Reader, policy: RetentionPolicy, limits: RetryLimits, commands: Sequence[DeleteCommand]
) -> dict[bytes, Outcome]:
    """Give the outcome of each of these commands that must not go on by what the pointers say now; by command id.

    Where one cannot be read, no object is to blame: the batch stops.
    """
    named = read(reader, policy, limits)
    if isinstance(named, Unread):
        code = POINTER_UNAVAILABLE if named.may_pass else UNREADABLE
        fault = Outcome(FailureClass.CONFIG, code=code, message=named.why, whole_request=True)
        return {command.command_id: fault for command in commands}
    return {command.command_id: kept(KEPT_POINTER) for command in commands if named.keeps(command.ref.key)}


def _read_one(reader: Reader, ref: ObjectRef, pointer: Pointer, limits: RetryLimits) -> list[str] | Unread:
    body: bytes | Outcome = limits.retrying(may_pass)(reader.read_body, ref, max_bytes=MAX_BYTES)
    if isinstance(body, Outcome):
        why = (
            "is not there"
            if body.is_gone
            else f"cannot be read: {body.code} ({body.message or 'no message'})"
        )
        return Unread(f"pointer {ref} {why}", body.may_pass)
    try:
        return read_names(pointer, body, bucket=ref.bucket)
    except UnreadablePointerError as error:
        return Unread(f"pointer {ref} {error}", may_pass=False)
