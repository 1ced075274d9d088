"""What a person may do to the deletes: place and lift a legal hold, stop everything or one tenant, let it go on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from s3_retention.core.form_fields import parse_time
from s3_retention.core.policy_rules import check_bucket, check_name, check_text
from s3_retention.errors import LeverError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

T = TypeVar("T")

MAX_KEY = 1024
"""Bytes of a key: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html"""


class Act(str, Enum):
    """What is done."""

    PLACE = "place"
    LIFT = "lift"
    STOP = "stop"
    RESUME = "resume"
    PAUSE_TENANT = "pause_tenant"
    RESUME_TENANT = "resume_tenant"


class Scope(str, Enum):
    """What a hold covers."""

    KEY = "key"
    PREFIX = "prefix"
    BUCKET = "bucket"


@dataclass(frozen=True, slots=True)
class PlaceHold:
    """Hold these objects from now on: until ``ends_at``, or until it is lifted."""

    bucket: str
    scope: Scope
    name: str
    reason: str
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class LiftHold:
    """Lift one hold."""

    hold_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class StopDeletes:
    """Stop every delete of one policy; of all, where it is None."""

    policy: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ResumeDeletes:
    """Let the deletes go on that exactly such a stop has stopped."""

    policy: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class PauseTenant:
    """Delete nothing of one tenant, by one policy; by any, where it is None. Its objects wait, and no others."""

    policy: str | None
    tenant: str
    reason: str


@dataclass(frozen=True, slots=True)
class ResumeTenant:
    """Let a tenant go on that exactly such a pause has paused."""

    policy: str | None
    tenant: str
    reason: str


Lever: TypeAlias = PlaceHold | LiftHold | StopDeletes | ResumeDeletes | PauseTenant | ResumeTenant

# `scope` has a value in each form.
_FIELDS: dict[Act, frozenset[str]] = {
    Act.PLACE: frozenset({"bucket", "name", "ends_at"}),
    Act.LIFT: frozenset({"hold_id"}),
    Act.STOP: frozenset({"policy"}),
    Act.RESUME: frozenset({"policy"}),
    Act.PAUSE_TENANT: frozenset({"policy", "tenant"}),
    Act.RESUME_TENANT: frozenset({"policy", "tenant"}),
}


def parse_lever(form: Mapping[str, Any]) -> Lever:
    """Read what a form says. Raises ``LeverError``, which names the field, its value and the fix."""
    act = _one_of(form, "action", Act)
    reason = form.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise LeverError("reason is empty: say in a sentence why, it is kept with the act")
    known = frozenset[str]().union(*_FIELDS.values())
    foreign = sorted(name for name in known - _FIELDS[act] if form.get(name) not in (None, ""))
    if foreign:
        raise LeverError(f"{' and '.join(foreign)} are not for action = {act.value}: leave them empty")
    if act is Act.PLACE:
        return _place(form, reason.strip())
    if act is Act.LIFT:
        hold_id = form.get("hold_id")
        if isinstance(hold_id, bool) or not isinstance(hold_id, int) or hold_id < 1:
            raise LeverError(f"hold_id = {hold_id!r}: write the number of the hold, as legal_holds shows it")
        return LiftHold(hold_id, reason.strip())
    policy = form.get("policy") or None
    if policy is not None:
        policy = _checked("policy", policy, lambda one: check_name(_text(one)))
    if act in (Act.PAUSE_TENANT, Act.RESUME_TENANT):
        tenant = _checked("tenant", form.get("tenant"), lambda one: _check_tenant(_text(one)))
        return (PauseTenant if act is Act.PAUSE_TENANT else ResumeTenant)(policy, tenant, reason.strip())
    return (StopDeletes if act is Act.STOP else ResumeDeletes)(policy, reason.strip())


def _place(form: Mapping[str, Any], reason: str) -> PlaceHold:
    bucket = _checked("bucket", form.get("bucket"), lambda one: check_bucket(_text(one)))
    scope = _one_of(form, "scope", Scope)
    name = form.get("name") or ""
    if not isinstance(name, str):
        raise LeverError(f"name = {name!r}: write the key or the prefix as text")
    if scope is Scope.BUCKET and name:
        raise LeverError(
            f"name = {name[:80]!r}: a hold on the whole bucket has none; empty it, or choose a scope"
        )
    if scope is not Scope.BUCKET and not name:
        raise LeverError(
            f"name is empty: write the {scope.value}, byte for byte, without s3:// and the bucket"
        )
    if "\0" in name or len(name.encode(errors="surrogatepass")) > MAX_KEY:
        raise LeverError(f"name = {name[:80]!r}: a key has at most {MAX_KEY} bytes, and none of them is zero")
    return PlaceHold(bucket, scope, name, reason, _checked("ends_at", form.get("ends_at"), parse_time))


def _check_tenant(tenant: str) -> str:
    # Not trimmed: a tenant is part of a key, byte for byte.
    if not tenant:
        raise ValueError("write the tenant as the policy reads it from the key, byte for byte")
    if len(check_text(tenant).encode()) > MAX_KEY:
        raise ValueError(f"a tenant is part of a key, which has at most {MAX_KEY} bytes")
    return tenant


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _checked(field: str, value: Any, check: Callable[[Any], T]) -> T:
    try:
        return check(value)
    except ValueError as error:
        raise LeverError(f"{field} = {value!r}: {error}") from None


def _one_of(form: Mapping[str, Any], field: str, kind: type[Act | Scope]) -> Any:
    value = form.get(field)
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(one.value for one in kind)
        raise LeverError(f"{field} = {value!r}: it is one of {allowed}") from None
