"""What a store can do wrong with a listing, and what becomes of the plan: one row each."""

from __future__ import annotations

from sandbox.faults import Fault, Rule, Way, refusing
from tests.faults.fault_rows import EMPTY, INTERNAL, SHORT, SLOW, TOP_LEVEL, ListingRow, backoff

SECOND = frozenset({2})


def second_page(fault: Fault, *, nth: frozenset[int] | None = SECOND) -> tuple[Rule, ...]:
    return (Rule(fault, operation="ListObjectsV2", nth=nth),)


FROM_SECOND = frozenset(range(2, 100))

LISTING_FAULTS: tuple[ListingRow, ...] = (
    ListingRow("503 SlowDown for the second page, once", second_page(SLOW), 3, waits=backoff(1)),
    ListingRow(
        "503 SlowDown with `Retry-After: 42`, once",
        second_page(refusing(503, "SlowDown", Retry_After="42")),
        3,
        waits=((42.0, 42.0),),
    ),
    ListingRow(
        "503 SlowDown from the second page on",
        second_page(SLOW, nth=FROM_SECOND),
        6,
        "ListingError",
        backoff(4),
    ),
    ListingRow("500 InternalError, once", second_page(INTERNAL), 3, waits=backoff(1)),
    ListingRow(
        "200 with `<Error>` InternalError at the top, once", second_page(TOP_LEVEL), 3, waits=backoff(1)
    ),
    ListingRow("200 with an empty body, once", second_page(EMPTY), 3, waits=backoff(1)),
    ListingRow(
        "200 with an empty body from the second page on",
        second_page(EMPTY, nth=FROM_SECOND),
        6,
        "ListingError",
        backoff(4),
    ),
    ListingRow("reset, once", second_page(Fault(Way.RESET)), 3, waits=backoff(1)),
    ListingRow(
        "a page that breaks off in the middle, once",
        second_page(Fault(Way.CUT, is_acted_on=True)),
        3,
        waits=backoff(1),
    ),
    ListingRow(
        "a page that comes too late, once",
        second_page(Fault(Way.SILENCE)),
        3,
        waits=backoff(1),
        read_timeout=SHORT,
    ),
    ListingRow(
        "301 PermanentRedirect", second_page(refusing(301, "PermanentRedirect")), 2, "ListingRefusedError"
    ),
    ListingRow("400 ExpiredToken", second_page(refusing(400, "ExpiredToken")), 2, "ListingRefusedError"),
    ListingRow(
        "403 RequestTimeTooSkewed",
        second_page(refusing(403, "RequestTimeTooSkewed")),
        2,
        "ListingRefusedError",
    ),
    ListingRow("403 AccessDenied", second_page(refusing(403, "AccessDenied")), 2, "ListingRefusedError"),
    ListingRow("404 NoSuchBucket", second_page(refusing(404, "NoSuchBucket")), 2, "ListingRefusedError"),
)
