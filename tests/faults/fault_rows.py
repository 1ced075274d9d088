"""The shape of a row of the tables of faults, and what many rows share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from s3_retention.s3.limits import RetryLimits
from sandbox.faults import Fault, Rule, Way, refusing
from tests.factories import KEEP_LATEST

if TYPE_CHECKING:
    from collections.abc import Mapping

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")
ODD = "exports/2020-01/\x01.json"
OLD_A, NEW_A, OLD_B, NEW_B = (f"exports/2020-0{month}/{group}.json" for group in "ab" for month in (1, 2))
PATIENCE = 20.0
"""Seconds for which the client waits for an answer where no answer is to come too late."""
SHORT, NONE = 2.0, 0.3
"""Where one answer is to come too late, and where none is to come."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What is there: keys, those of them that are due, and the policy's sections that are not the usual ones."""

    operation: str
    keys: tuple[str, ...]
    due: tuple[str, ...]
    policy: Mapping[str, object] = field(default_factory=dict)

    @property
    def not_due(self) -> set[str]:
        """What must survive everything."""
        return set(self.keys) - set(self.due)


TOGETHER = Scene("DeleteObjects", (A, B, C), (A, B, C))
ALONE = Scene("DeleteObject", (ODD,), (ODD,))
KEEPERS = Scene("HeadObject", (OLD_A, NEW_A, OLD_B, NEW_B), (OLD_A, OLD_B), {"keep": KEEP_LATEST})

Wait = tuple[float, float]
"""The least and the most that a wait may last, in seconds."""
LIMITS = RetryLimits()


def backoff(num_waits: int) -> tuple[Wait, ...]:
    """Full jitter, by the limits that the product has."""
    return tuple((0.0, min(LIMITS.longest_wait, LIMITS.first_wait * 2**n)) for n in range(num_waits))


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A fault, and all that the delete step, the sweep and the bucket must show of it.

    ``requests`` counts what reached the server, by operation. ``ledger`` and ``waiting`` name keys with their
    outcome, and their failure class. ``stopped`` is the class that stopped the batch; what is in neither is pending
    then. ``left`` is what is still in the bucket of what was due.
    """

    fault: str
    rules: tuple[Rule, ...]
    requests: Mapping[str, int]
    ledger: Mapping[str, str] = field(default_factory=dict)
    waiting: Mapping[str, str] = field(default_factory=dict)
    stopped: str | None = None
    may_pass: bool = False
    waits: tuple[Wait, ...] = ()
    left: tuple[str, ...] = ()
    scene: Scene = TOGETHER
    read_timeout: float = PATIENCE


@dataclass(frozen=True, slots=True)
class ListingRow:
    """A fault of a listing of two pages, and what the plan step must do.

    ``error`` names the exception; the plan stored nothing then. None: the plan is whole.
    """

    fault: str
    rules: tuple[Rule, ...]
    num_requests: int
    error: str | None = None
    waits: tuple[Wait, ...] = ()
    read_timeout: float = PATIENCE


FIRST = frozenset({1})
EVERY = None


def rules_for(
    fault: Fault, *, nth: frozenset[int] | None = FIRST, operation: str = "DeleteObjects"
) -> tuple[Rule, ...]:
    return (Rule(fault, operation=operation, nth=nth),)


def for_key(
    code: str, *, nth: frozenset[int] | None = FIRST, is_acted_on: bool = False, way: Way = Way.KEYS
) -> tuple[Rule, ...]:
    fault = Fault(way, is_acted_on, code=code, keys=frozenset({B}))
    return (Rule(fault, operation="DeleteObjects", key=B, nth=nth),)


ALL_DELETED = {A: "deleted", B: "deleted", C: "deleted"}
ALL_ABSENT = dict.fromkeys(ALL_DELETED, "already_absent")
REST_DELETED = {A: "deleted", C: "deleted"}
GMT = "Tue, 01 Dec 2026 12:00:{:02} GMT"
ONCE = {"DeleteObjects": 2}
FIVE = {"DeleteObjects": 5}
STOPPED = {"DeleteObjects": 1}
REDIRECTED = {"DeleteObjects": 1, "HeadBucket": 1}
AFTER = {"DeleteObjects": 1, "HeadObject": 3, "HeadBucket": 3}
BEFORE = {"DeleteObjects": 2, "HeadObject": 3}


def passing(fault: str, what: Fault, waits: tuple[Wait, ...] | None = None) -> FaultRow:
    """The store refuses a whole request once, and did not act on it."""
    return FaultRow(fault, rules_for(what), ONCE, ALL_DELETED, waits=backoff(1) if waits is None else waits)


def lasting(fault: str, what: Fault, stopped: str) -> FaultRow:
    """The store refuses every request, and each is worth another attempt."""
    rules = rules_for(what, nth=EVERY)
    return FaultRow(fault, rules, FIVE, stopped=stopped, may_pass=True, waits=backoff(4), left=(A, B, C))


def stopping(fault: str, what: Fault, stopped: str, requests: Mapping[str, int] = STOPPED) -> FaultRow:
    """The store refuses the request, and no other attempt can help."""
    return FaultRow(fault, rules_for(what, nth=EVERY), requests, stopped=stopped, left=(A, B, C))


SLOW = refusing(503, "SlowDown")
INTERNAL = refusing(500, "InternalError")
HTML = Fault(Way.ANSWER, status=502, body=b"<html><body>Bad Gateway</body></html>")
TOP_LEVEL = replace(INTERNAL, status=200)
EMPTY = Fault(Way.ANSWER)
