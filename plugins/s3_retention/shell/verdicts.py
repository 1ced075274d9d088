"""What the policies of today say of one object, as the store has it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.decider import Decider
from s3_retention.core.outcome import Outcome
from s3_retention.core.pointers import KEPT_POINTER
from s3_retention.core.policy_parts import Versions
from s3_retention.core.verdict import Verdict
from s3_retention.s3.limits import RetryLimits
from s3_retention.steps import pointers, tags
from s3_retention.store import legal_holds, tenant_pauses, watermarks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from s3_retention.core.objects import ObjectFacts, ObjectRef
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row


def list_verdicts(
    conn: Connection, gateway: S3Gateway, policies: Iterable[RetentionPolicy], ref: ObjectRef
) -> Iterator[Row]:
    """Give a row for each policy that looks at the bucket and the prefix of this key, in the form of a history's.

    One object is decided by itself: whether a keep rule spares it needs its whole group, and is said to be open.
    """
    now = watermarks.read_clock(conn)
    held = bool(legal_holds.find_held(conn, [ref]))
    looking = [one for one in policies if _looks_at(one, ref)]
    if not looking:
        return
    found = gateway.look(ref)
    for policy in looking:
        if isinstance(found, Outcome):
            detail = f"not there: {found.code}" if found.is_final else f"cannot be looked at: {found.code}"
        elif policy.versions is Versions.NONCURRENT:
            detail = "keep: current; what lies beneath is decided by its history"
        else:
            detail = _decide(conn, gateway, policy, found, now=now, is_held=held)
        yield {
            "happened_at": now,
            "event": "verdict",
            "detail": detail,
            "policy": policy.name,
            "interval_key": None,
            "run": None,
            "acted_by": None,
            "operation_id": None,
        }


def _looks_at(policy: RetentionPolicy, ref: ObjectRef) -> bool:
    return policy.source.bucket == ref.bucket and ref.key.startswith(policy.source.prefix)


def _decide(
    conn: Connection,
    gateway: S3Gateway,
    policy: RetentionPolicy,
    facts: ObjectFacts,
    *,
    now: datetime,
    is_held: bool,
) -> str:
    decided = tags.judge(gateway, Decider(policy).candidate, facts, limits=RetryLimits(), now=now)
    if isinstance(decided, Outcome):
        return f"keep: its tags cannot be read: {decided.code}"
    if isinstance(decided, Verdict):
        return f"keep: {decided.reasons[0]}"
    if decided.due_at is None or decided.due_at >= now - policy.window.safety_delay:
        return f"keep: not_due before {decided.due_at:%Y-%m-%d %H:%M:%S} and window.safety_delay after it"
    why = _spared(conn, policy, decided.tenant, is_held=is_held) or _by_pointers(gateway, policy, facts.ref)
    if why is not None:
        return why
    since = f"expire: due since {decided.due_at:%Y-%m-%d %H:%M:%S}"
    if policy.keep is None:
        return since
    return f"{since}, unless a keep rule spares it in its group {decided.group_key}: {policy.keep}"


def _spared(conn: Connection, policy: RetentionPolicy, tenant: str | None, *, is_held: bool) -> str | None:
    if is_held:
        return "keep: held"
    is_paused = tenant is not None and tenant_pauses.find_paused(conn, policy=policy.name, tenants=[tenant])
    return f"keep: tenant_paused ({tenant})" if is_paused else None


def _by_pointers(gateway: S3Gateway, policy: RetentionPolicy, ref: ObjectRef) -> str | None:
    named = pointers.read(gateway, policy, RetryLimits())
    if isinstance(named, pointers.Unread):
        return f"keep: nothing is deleted now: {named.why}"
    return f"keep: {KEPT_POINTER}" if named.keeps(ref.key) else None
