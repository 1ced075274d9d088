"""What a store can do wrong, and what becomes of it: the rows that the tests try and docs/stores.md shows."""

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


FIRST = frozenset({1})
EVERY = None


def _rules(
    fault: Fault, *, nth: frozenset[int] | None = FIRST, operation: str = "DeleteObjects"
) -> tuple[Rule, ...]:
    return (Rule(fault, operation=operation, nth=nth),)


def _for_key(
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
    return FaultRow(fault, _rules(what), ONCE, ALL_DELETED, waits=backoff(1) if waits is None else waits)


def lasting(fault: str, what: Fault, stopped: str) -> FaultRow:
    """The store refuses every request, and each is worth another attempt."""
    rules = _rules(what, nth=EVERY)
    return FaultRow(fault, rules, FIVE, stopped=stopped, may_pass=True, waits=backoff(4), left=(A, B, C))


def stopping(fault: str, what: Fault, stopped: str, requests: Mapping[str, int] = STOPPED) -> FaultRow:
    """The store refuses the request, and no other attempt can help."""
    return FaultRow(fault, _rules(what, nth=EVERY), requests, stopped=stopped, left=(A, B, C))


SLOW = refusing(503, "SlowDown")
INTERNAL = refusing(500, "InternalError")
HTML = Fault(Way.ANSWER, status=502, body=b"<html><body>Bad Gateway</body></html>")
TOP_LEVEL = replace(INTERNAL, status=200)
EMPTY = Fault(Way.ANSWER)

DELETE_FAULTS: tuple[FaultRow, ...] = (
    # Throttled
    passing("503 SlowDown, once", SLOW),
    lasting("503 SlowDown, every time", SLOW, "throttled"),
    passing(
        "503 SlowDown with `Retry-After: 42`", refusing(503, "SlowDown", Retry_After="42"), ((42.0, 42.0),)
    ),
    passing(
        "503 SlowDown with `Retry-After` as a date, 42 s after the store's `Date`",
        refusing(503, "SlowDown", Date=GMT.format(0), Retry_After=GMT.format(42)),
        ((42.0, 42.0),),
    ),
    passing(
        "503 SlowDown with `x-amz-retry-after: 42000`, in ms",
        refusing(503, "SlowDown", x_amz_retry_after="42000"),
        ((42.0, 42.0),),
    ),
    FaultRow(
        "503 SlowDown with a `Retry-After` beyond the deadline of the attempts",
        _rules(refusing(503, "SlowDown", Retry_After="301")),
        STOPPED,
        stopped="throttled",
        may_pass=True,
        left=(A, B, C),
    ),
    passing("429 TooManyRequests, once", refusing(429, "TooManyRequests")),
    lasting("429 without a code, every time", Fault(Way.ANSWER, status=429), "throttled"),
    # Transient
    passing("500 InternalError, once", INTERNAL),
    lasting("500 InternalError, every time", INTERNAL, "transient"),
    FaultRow(
        "500 InternalError, once, and the store has deleted all the same",
        _rules(replace(INTERNAL, is_acted_on=True)),
        ONCE,
        ALL_ABSENT,
        waits=backoff(1),
    ),
    passing("502 with a page of HTML, once", HTML),
    passing("504 without a body, once", Fault(Way.ANSWER, status=504)),
    # 200, and yet no success
    passing("200 with `<Error>` InternalError at the top, once", TOP_LEVEL),
    lasting("200 with `<Error>` SlowDown at the top, every time", replace(SLOW, status=200), "throttled"),
    FaultRow("200 with an empty body, not acted on", _rules(EMPTY), BEFORE, ALL_DELETED, waits=backoff(1)),
    FaultRow("200 with an empty body, acted on", _rules(replace(EMPTY, is_acted_on=True)), AFTER, ALL_ABSENT),
    FaultRow(
        "200 with an empty body, every time",
        _rules(EMPTY, nth=EVERY),
        {"DeleteObjects": 5, "HeadObject": 15},
        stopped="unknown",
        may_pass=True,
        waits=backoff(4),
        left=(A, B, C),
    ),
    # One key in a 200
    FaultRow(
        "200 with InternalError for one key, once",
        _for_key("InternalError"),
        ONCE,
        ALL_DELETED,
        waits=backoff(1),
    ),
    FaultRow(
        "200 with InternalError for one key, once, and the store has deleted it all the same",
        _for_key("InternalError", is_acted_on=True),
        ONCE,
        REST_DELETED | {B: "already_absent"},
        waits=backoff(1),
    ),
    FaultRow(
        "200 with InternalError for one key, every time",
        _for_key("InternalError", nth=EVERY),
        FIVE,
        REST_DELETED,
        {B: "transient"},
        waits=backoff(4),
        left=(B,),
    ),
    FaultRow(
        "200 with SlowDown for one key, once", _for_key("SlowDown"), ONCE, ALL_DELETED, waits=backoff(1)
    ),
    FaultRow(
        "200 with SlowDown for one key, every time",
        _for_key("SlowDown", nth=EVERY),
        FIVE,
        REST_DELETED,
        {B: "throttled"},
        waits=backoff(4),
        left=(B,),
    ),
    FaultRow(
        "200 with AccessDenied for one key",
        _for_key("AccessDenied", nth=EVERY),
        STOPPED,
        REST_DELETED,
        {B: "permission"},
        left=(B,),
    ),
    FaultRow(
        "200 with a code for one key that nobody knows",
        _for_key("Unheard", nth=EVERY),
        FIVE | {"HeadObject": 5},
        REST_DELETED,
        {B: "unknown"},
        waits=backoff(4),
        left=(B,),
    ),
    FaultRow(
        "200 with PreconditionFailed for a key that is as it was planned, once",
        _for_key("PreconditionFailed"),
        ONCE | {"HeadObject": 1},
        ALL_DELETED,
        waits=backoff(1),
    ),
    FaultRow(
        "200 that does not name a key, which is deleted",
        _for_key("", is_acted_on=True, way=Way.UNNAMED),
        {"DeleteObjects": 1, "HeadObject": 1, "HeadBucket": 1},
        REST_DELETED | {B: "already_absent"},
    ),
    FaultRow(
        "200 that does not name a key, which is still there",
        _for_key("", way=Way.UNNAMED),
        ONCE | {"HeadObject": 1},
        ALL_DELETED,
        waits=backoff(1),
    ),
    FaultRow(
        "200 that never names one certain key",
        _for_key("", nth=EVERY, way=Way.UNNAMED),
        FIVE | {"HeadObject": 5},
        REST_DELETED,
        {B: "unknown"},
        waits=backoff(4),
        left=(B,),
    ),
    FaultRow(
        "400 MalformedXML for every request with one certain key",
        (Rule(refusing(400, "MalformedXML"), operation="DeleteObjects", key=B),),
        {"DeleteObjects": 5},
        REST_DELETED,
        {B: "malformed"},
        left=(B,),
    ),
    # The connection
    FaultRow("reset before the store acted", _rules(Fault(Way.RESET)), BEFORE, ALL_DELETED, waits=backoff(1)),
    FaultRow("reset after the store acted", _rules(Fault(Way.RESET, is_acted_on=True)), AFTER, ALL_ABSENT),
    FaultRow(
        "reset, whatever is asked",
        (Rule(Fault(Way.RESET)),),
        {"DeleteObjects": 5, "HeadObject": 5},
        stopped="unknown",
        may_pass=True,
        waits=backoff(4),
        left=(A, B, C),
    ),
    FaultRow(
        "an answer that breaks off in the middle",
        _rules(Fault(Way.CUT, is_acted_on=True)),
        ONCE,  # botocore makes a 500 InternalError of it
        ALL_ABSENT,
        waits=backoff(1),
    ),
    FaultRow(
        "an answer that comes too late, not acted on",
        _rules(Fault(Way.SILENCE)),
        BEFORE,
        ALL_DELETED,
        waits=backoff(1),
        read_timeout=SHORT,
    ),
    FaultRow(
        "an answer that comes too late, acted on",
        _rules(Fault(Way.SILENCE, is_acted_on=True)),
        AFTER,
        ALL_ABSENT,
        read_timeout=SHORT,
    ),
    FaultRow(
        "no answer, whatever is asked",
        (Rule(Fault(Way.SILENCE)),),
        {"DeleteObjects": 5, "HeadObject": 5},
        stopped="unknown",
        may_pass=True,
        waits=backoff(4),
        left=(A, B, C),
        read_timeout=NONE,
    ),
    # The store, the bucket or the identity is at fault
    # Of a redirect, botocore asks the bucket for its region, and where it learns of another it tries that once.
    stopping("301 PermanentRedirect", refusing(301, "PermanentRedirect"), "config", REDIRECTED),
    stopping(
        "307 TemporaryRedirect",
        refusing(307, "TemporaryRedirect", Location="http://127.0.0.1:9/"),
        "config",
        REDIRECTED,
    ),
    stopping(
        "400 AuthorizationHeaderMalformed: another region is right",
        refusing(400, "AuthorizationHeaderMalformed", inside="<Region>eu-central-1</Region>"),
        "config",
        ONCE,
    ),
    FaultRow(
        "400 AuthorizationHeaderMalformed, once: the region that it names is right",
        _rules(refusing(400, "AuthorizationHeaderMalformed", inside="<Region>eu-central-1</Region>")),
        ONCE,
        ALL_DELETED,
    ),
    stopping("400 ExpiredToken", refusing(400, "ExpiredToken"), "auth"),
    stopping("403 InvalidAccessKeyId", refusing(403, "InvalidAccessKeyId"), "auth"),
    stopping("403 SignatureDoesNotMatch", refusing(403, "SignatureDoesNotMatch"), "auth"),
    stopping("403 RequestTimeTooSkewed", refusing(403, "RequestTimeTooSkewed"), "clock"),
    stopping("403 AccessDenied for the whole request", refusing(403, "AccessDenied"), "permission"),
    stopping("404 NoSuchBucket", refusing(404, "NoSuchBucket"), "config"),
    stopping("501 NotImplemented", refusing(501, "NotImplemented"), "unsupported"),
    # DeleteObject
    FaultRow(
        "503 SlowDown, once",
        _rules(SLOW, operation="DeleteObject"),
        {"DeleteObject": 2},
        {ODD: "deleted"},
        waits=backoff(1),
        scene=ALONE,
    ),
    FaultRow(
        "500 InternalError, every time",
        _rules(INTERNAL, operation="DeleteObject", nth=EVERY),
        {"DeleteObject": 5},
        waiting={ODD: "transient"},
        waits=backoff(4),
        left=(ODD,),
        scene=ALONE,
    ),
    FaultRow(
        "reset after the store acted",
        _rules(Fault(Way.RESET, is_acted_on=True), operation="DeleteObject"),
        {"DeleteObject": 1, "HeadObject": 1, "HeadBucket": 1},
        {ODD: "already_absent"},
        scene=ALONE,
    ),
    FaultRow(
        "reset before the store acted",
        _rules(Fault(Way.RESET), operation="DeleteObject"),
        {"DeleteObject": 2, "HeadObject": 1},
        {ODD: "deleted"},
        waits=backoff(1),
        scene=ALONE,
    ),
    FaultRow(
        "403 RequestTimeTooSkewed",
        _rules(refusing(403, "RequestTimeTooSkewed"), operation="DeleteObject", nth=EVERY),
        {"DeleteObject": 1},
        stopped="clock",
        left=(ODD,),
        scene=ALONE,
    ),
    # HeadObject
    FaultRow(
        "503, once",
        _rules(SLOW, operation="HeadObject"),
        {"HeadObject": 3, "DeleteObjects": 1},
        {OLD_A: "deleted", OLD_B: "deleted"},
        waits=backoff(1),
        scene=KEEPERS,
    ),
    FaultRow(
        "503, every time",
        _rules(SLOW, operation="HeadObject", nth=EVERY),
        {"HeadObject": 5},
        stopped="throttled",
        may_pass=True,
        waits=backoff(4),
        left=(OLD_A, OLD_B),
        scene=KEEPERS,
    ),
    FaultRow(
        "404, and the bucket is missing",
        (
            Rule(refusing(404, "NoSuchKey"), operation="HeadObject"),
            Rule(refusing(404, "NoSuchBucket"), operation="HeadBucket"),
        ),
        {"HeadObject": 1, "HeadBucket": 1},
        stopped="config",
        left=(OLD_A, OLD_B),
        scene=KEEPERS,
    ),
    FaultRow(
        "403, and a listing says ExpiredToken",
        (
            Rule(refusing(403, "AccessDenied"), operation="HeadObject"),
            Rule(refusing(400, "ExpiredToken"), operation="ListObjectsV2"),
        ),
        {"HeadObject": 1, "ListObjectsV2": 1},
        stopped="auth",
        left=(OLD_A, OLD_B),
        scene=KEEPERS,
    ),
)


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


SECOND = frozenset({2})


def _second_page(fault: Fault, *, nth: frozenset[int] | None = SECOND) -> tuple[Rule, ...]:
    return (Rule(fault, operation="ListObjectsV2", nth=nth),)


FROM_SECOND = frozenset(range(2, 100))

LISTING_FAULTS: tuple[ListingRow, ...] = (
    ListingRow("503 SlowDown for the second page, once", _second_page(SLOW), 3, waits=backoff(1)),
    ListingRow(
        "503 SlowDown with `Retry-After: 42`, once",
        _second_page(refusing(503, "SlowDown", Retry_After="42")),
        3,
        waits=((42.0, 42.0),),
    ),
    ListingRow(
        "503 SlowDown from the second page on",
        _second_page(SLOW, nth=FROM_SECOND),
        6,
        "ListingError",
        backoff(4),
    ),
    ListingRow("500 InternalError, once", _second_page(INTERNAL), 3, waits=backoff(1)),
    ListingRow(
        "200 with `<Error>` InternalError at the top, once", _second_page(TOP_LEVEL), 3, waits=backoff(1)
    ),
    ListingRow("200 with an empty body, once", _second_page(EMPTY), 3, waits=backoff(1)),
    ListingRow(
        "200 with an empty body from the second page on",
        _second_page(EMPTY, nth=FROM_SECOND),
        6,
        "ListingError",
        backoff(4),
    ),
    ListingRow("reset, once", _second_page(Fault(Way.RESET)), 3, waits=backoff(1)),
    ListingRow(
        "a page that breaks off in the middle, once",
        _second_page(Fault(Way.CUT, is_acted_on=True)),
        3,
        waits=backoff(1),
    ),
    ListingRow(
        "a page that comes too late, once",
        _second_page(Fault(Way.SILENCE)),
        3,
        waits=backoff(1),
        read_timeout=SHORT,
    ),
    ListingRow(
        "301 PermanentRedirect", _second_page(refusing(301, "PermanentRedirect")), 2, "ListingRefusedError"
    ),
    ListingRow("400 ExpiredToken", _second_page(refusing(400, "ExpiredToken")), 2, "ListingRefusedError"),
    ListingRow(
        "403 RequestTimeTooSkewed",
        _second_page(refusing(403, "RequestTimeTooSkewed")),
        2,
        "ListingRefusedError",
    ),
    ListingRow("403 AccessDenied", _second_page(refusing(403, "AccessDenied")), 2, "ListingRefusedError"),
    ListingRow("404 NoSuchBucket", _second_page(refusing(404, "NoSuchBucket")), 2, "ListingRefusedError"),
)
