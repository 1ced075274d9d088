"""The delete command: one object, one operation, one incarnation.

The same two identities are computed in SQL by ``s3_retention.operation_id`` and ``s3_retention.command_id``;
a test holds both against each other on arbitrary keys.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from hashlib import sha256
from typing import TYPE_CHECKING

from s3_retention.core.values import value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from s3_retention.core.objects import ObjectFacts, ObjectRef

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
ID_SIZE = 32
"""Bytes of a SHA-256."""


def operation_id(bucket: str, key: str, policy_version: str) -> str:
    """Give the stable id of "delete this key under this policy version": 64 hex digits.

    The formula is fixed for good: SHA-256 over bucket, key and policy version in
    UTF-8, joined by newlines. A key with a lone surrogate is no UTF-8 and raises ``UnicodeEncodeError``.
    """
    return sha256(_operation(bucket, key, policy_version)).hexdigest()


def _operation(bucket: str, key: str, policy_version: str) -> bytes:
    return f"{bucket}\n{key}\n{policy_version}".encode()


def incarnation(facts: ObjectFacts) -> str:
    """Tell one life of a key from the next: its version id, else ETag, time in microseconds and size."""
    if facts.ref.version_id is not None:
        return f"version:{facts.ref.version_id}"
    microseconds = (facts.last_modified_at - _EPOCH) // _MICROSECOND
    return f"etag:{facts.etag or ''}\n{microseconds}\n{facts.size}"


@value
class DeleteCommand:
    """One planned delete, as a chunk holds it.

    ``ids`` are its command id and its operation id, 32 raw bytes each. ``num_attempts`` counts the failed attempts of
    earlier tries. ``quarantine_id`` is set where a redrive delivers the command; else ``place`` is its place in its
    chunk, from 1.
    """

    ids: bytes
    facts: ObjectFacts
    due_at: datetime
    interval_id: int
    generation: int
    policy_version: str
    group_key: str | None = None
    tenant: str | None = None
    num_attempts: int = 0
    quarantine_id: int | None = None
    place: int = 0

    @property
    def command_id(self) -> bytes:
        """This operation on this incarnation."""
        return self.ids[:ID_SIZE]

    @property
    def operation_id(self) -> bytes:
        """Delete this key under this version of the policy."""
        return self.ids[ID_SIZE:]

    @property
    def ref(self) -> ObjectRef:
        """The object to delete."""
        return self.facts.ref


def command_id(facts: ObjectFacts, policy_version: str) -> bytes:
    """Give the id of one operation on one incarnation: 32 bytes."""
    return ids_of(facts, policy_version)[:ID_SIZE]


def ids_of(facts: ObjectFacts, policy_version: str) -> bytes:
    """Give the command id and the operation id of an object, as ``DeleteCommand.ids`` has them."""
    return ids_of_each([facts], policy_version)[0]


def ids_of_each(objects: Iterable[ObjectFacts], policy_version: str) -> list[bytes]:
    """Give the two ids of each of some objects, in their order: in one loop, since it is done for each delete."""
    ids = []
    for facts in objects:
        operation = sha256(_operation(facts.ref.bucket, facts.ref.key, policy_version))
        command = sha256(f"{operation.hexdigest()}\n{incarnation(facts)}".encode())
        ids.append(command.digest() + operation.digest())
    return ids
