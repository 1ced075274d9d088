"""What botocore gives or raises, as outcomes."""

from __future__ import annotations

from datetime import datetime, timezone
from math import inf

import pytest
import time_machine
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.outcome import FailureClass, Final, Outcome
from s3_retention.s3.answers import (
    is_settled_by_look,
    outcome_of_entry,
    outcome_of_error,
    request_id_of,
    retry_after_of,
)
from s3_retention.s3.delete_results import join
from tests.factories import facts
from tests.fakes import refusal

URL = "https://store.example/b?X-Amz-Signature=SECRET"
RAISED = [
    (ReadTimeoutError(endpoint_url=URL), "unknown", "ReadTimeoutError"),
    (ConnectionClosedError(endpoint_url=URL), "unknown", "ConnectionClosedError"),
    (ResponseParserError(f"no XML: {URL}"), "unknown", "ResponseParserError"),
    (ParamValidationError(report=URL), "unknown", "ParamValidationError"),
    (EndpointConnectionError(endpoint_url=URL), "transient", "EndpointConnectionError"),
    (ConnectTimeoutError(endpoint_url=URL), "transient", "ConnectTimeoutError"),
    (NoCredentialsError(), "auth", "NoCredentialsError"),
    (PartialCredentialsError(provider="p", cred_var="v"), "auth", "PartialCredentialsError"),
    (CredentialRetrievalError(provider="p", error_msg=URL), "auth", "CredentialRetrievalError"),
]


@pytest.mark.parametrize(("error", "kind", "code"), RAISED)
def test_each_error_of_botocore_has_its_class_and_shows_no_url(
    error: ResponseParserError, kind: str, code: str
) -> None:
    outcome = outcome_of_error(error, whole_request=True)
    assert (outcome.kind.value, outcome.code, outcome.message) == (kind, code, None)
    assert outcome.whole_request
    assert "SECRET" not in repr(outcome)


def test_an_error_answer_keeps_code_message_and_request_id() -> None:
    assert outcome_of_error(refusal("AccessDenied", 403, "no"), whole_request=False) == Outcome(
        FailureClass.PERMISSION, code="AccessDenied", message="no", request_id="R1"
    )


def test_a_bare_404_is_unknown_for_it_may_be_the_key_or_the_bucket() -> None:
    assert outcome_of_error(refusal("404", 404), whole_request=False).kind is FailureClass.UNKNOWN


def test_a_long_message_is_cut() -> None:
    assert len(outcome_of_error(refusal("X", message="m" * 9999), whole_request=False).message or "") == 500
    assert len(outcome_of_entry({"Code": "X", "Message": "m" * 9999}, request_id=None).message or "") == 500


def test_an_error_answer_without_a_body_is_classed_by_its_status() -> None:
    bare = ClientError({"ResponseMetadata": {"HTTPStatusCode": 503}}, "DeleteObjects")  # type: ignore[typeddict-item]
    outcome = outcome_of_error(bare, whole_request=True)
    assert (outcome.kind, outcome.code, outcome.message) == (FailureClass.THROTTLED, None, None)


def test_an_entry_of_a_bulk_answer_is_one_objects_outcome() -> None:
    entry = {"Key": "k", "Code": "SlowDown", "Message": "m"}
    assert outcome_of_entry(entry, request_id="R") == Outcome(
        FailureClass.THROTTLED, code="SlowDown", message="m", request_id="R"
    )
    assert outcome_of_entry({"Key": "k"}, request_id=None) == Outcome(FailureClass.UNKNOWN)


def test_the_request_id_comes_from_the_body_else_from_the_header() -> None:
    assert request_id_of({}) is None
    assert request_id_of({"ResponseMetadata": {"RequestId": "R"}}) == "R"
    assert request_id_of({"ResponseMetadata": {"HTTPHeaders": {"x-amz-request-id": "H"}}}) == "H"


def test_only_what_is_unknown_or_failed_a_condition_is_looked_at() -> None:
    looked_at = [kind for kind in (*FailureClass, *Final) if is_settled_by_look(Outcome(kind))]
    assert looked_at == [FailureClass.UNKNOWN, Final.CHANGED]


# How long a store asks to be left alone -------------------------------------------------------------------
NOON = "Tue, 01 Dec 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "Tue, 01 Dec 2026 12:00:30 GMT", "date": NOON}, 30.0),
        ({"retry-after": "Tue, 01 Dec 2026 11:59:30 GMT", "date": NOON}, 0.0),
        ({"x-amz-retry-after": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-7"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "Tue, 01 Dec 2026 12:00:30 -0000", "date": NOON}, 0.0),
        ({"retry-after": ""}, 0.0),
        ({"retry-after": "Tue, 01 Dec 99999999999999999999 12:00:00 GMT"}, 0.0),
        ({"retry-after": "Tue, 01 Dec 2026 12:00:00 +99999999999999999999"}, 0.0),
        ({"retry-after": "Tue, 01 Dec 2026 12:00:30 GMT", "date": NOON.replace("GMT", "-9999999999")}, 0.0),
        ({"x-amz-retry-after": "9" * 5000}, inf),
        ({"retry-after": "9" * 5000}, inf),
        ({}, 0.0),
    ],
)
def test_retry_after_is_read_in_each_of_its_forms(headers: dict[str, str], seconds: float) -> None:
    assert retry_after_of({"ResponseMetadata": {"HTTPHeaders": headers}}) == seconds


def test_a_date_to_retry_after_is_held_against_our_clock_where_the_store_tells_none() -> None:
    headers = {"retry-after": "Tue, 01 Dec 2026 12:00:30 GMT"}
    with time_machine.travel(datetime(2026, 12, 1, 12, tzinfo=timezone.utc), tick=False):
        assert retry_after_of({"ResponseMetadata": {"HTTPHeaders": headers}}) == 30.0


def test_an_error_without_headers_asks_for_nothing() -> None:
    assert retry_after_of({}) == 0.0


ENTRIES = st.fixed_dictionaries(
    {"Key": st.sampled_from("abc")},
    optional={"VersionId": st.sampled_from(["", "v"]), "DeleteMarkerVersionId": st.sampled_from(["v", "m"])},
)
REFS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, "v"])), max_size=3, unique=True)


@given(REFS, st.lists(ENTRIES, max_size=4), st.lists(st.sampled_from("abc"), max_size=2))
def test_the_order_of_an_answer_says_nothing(
    refs: list[tuple[str, str | None]], entries: list[dict[str, str]], failed: list[str]
) -> None:
    targets = [facts(key, version_id=version_id) for key, version_id in refs]
    plain = [{"Key": key} for key, _ in refs]
    errors = [{"Key": key, "Code": "AccessDenied"} for key in failed]
    for found in (entries, plain, [*plain, *entries]):
        # One that nobody asked for, at the end or before all others: only an exact answer is read at once.
        answer = {"Deleted": found, "Errors": errors, "ResponseMetadata": {"RequestId": "R"}}
        other = answer | {"Deleted": [{"Key": "z"}, *found]}
        assert join(targets, answer) == join(targets, other)


def test_an_answer_that_names_just_what_was_asked_is_one_value_for_all() -> None:
    targets = [facts("a"), facts("b")]
    answer = {"Deleted": [{"Key": "a"}, {"Key": "b"}], "ResponseMetadata": {"RequestId": "R"}}
    first, second = join(targets, answer)
    assert first is second
    assert first == Outcome(Final.DELETED, request_id="R")


def test_an_answer_without_the_version_that_was_asked_for_confirms_nothing() -> None:
    answer = {"Deleted": [{"Key": "a"}]}
    assert [one.kind for one in join([facts("a", version_id="v")], answer)] == [FailureClass.UNKNOWN]
