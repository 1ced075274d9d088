"""The table of S3 codes and classes, and what each class leads to."""

from __future__ import annotations

import pytest

from s3_retention.core.outcome import FailureClass, Final, Outcome, classify, distinct, kept

CODES = {
    "throttled": "SlowDown ServiceUnavailable Throttling ThrottlingException RequestLimitExceeded TooManyRequests",
    "transient": "InternalError RequestTimeout IncompleteBody BadDigest",
    "conflict": "OperationAborted ConditionalRequestConflict",
    "changed": "PreconditionFailed",
    "already_absent": "NoSuchKey NoSuchVersion",
    "permission": "AccessDenied",
    "malformed": "MalformedXML KeyTooLongError InvalidArgument InvalidURI",
    "config": "NoSuchBucket InvalidBucketName PermanentRedirect TemporaryRedirect AuthorizationHeaderMalformed "
    "MissingContentMD5",
    "auth": "InvalidAccessKeyId SignatureDoesNotMatch AccountProblem AllAccessDisabled ExpiredToken",
    "clock": "RequestTimeTooSkewed",
    "unsupported": "NotImplemented MethodNotAllowed",
    "unknown": "Nonsense nosuchkey 418 200",
}
STATUSES = {
    301: "config",
    307: "config",
    403: "permission",
    404: "unknown",
    409: "conflict",
    412: "changed",
    429: "throttled",
    500: "transient",
    501: "unsupported",
    502: "transient",
    503: "throttled",
    504: "transient",
}


@pytest.mark.parametrize(
    ("code", "kind"), [(code, kind) for kind, codes in CODES.items() for code in codes.split()]
)
def test_each_code_has_its_class(code: str, kind: str) -> None:
    assert classify(code).value == kind


@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
def test_a_bare_status_has_its_class_with_and_without_a_body(status: int, kind: str) -> None:
    assert classify(str(status)).value == kind
    assert classify("", status).value == kind


def test_the_code_counts_before_the_status() -> None:
    assert classify("NoSuchBucket", 404) is FailureClass.CONFIG
    assert classify("SlowDown", 500) is FailureClass.THROTTLED


def test_only_two_codes_mean_that_an_object_is_gone() -> None:
    gone = [
        code for codes in CODES.values() for code in codes.split() if classify(code) is Final.ALREADY_ABSENT
    ]
    assert gone == ["NoSuchKey", "NoSuchVersion"]
    assert all(classify("", status) is not Final.ALREADY_ABSENT for status in range(100, 600))


@pytest.mark.parametrize("kind", Final)
def test_a_final_outcome_is_neither_tried_again_nor_stops(kind: Final) -> None:
    outcome = Outcome(kind)
    assert (outcome.is_final, outcome.is_retried, outcome.stops_batch) == (True, False, False)


def test_each_failure_class_is_tried_again_or_stops_or_waits_for_a_person() -> None:
    retried = {kind.value for kind in FailureClass if Outcome(kind).is_retried}
    stopping = {kind.value for kind in FailureClass if Outcome(kind).stops_batch}
    assert retried == {"throttled", "transient", "conflict", "unknown"}
    assert stopping == {"config", "auth", "clock"}
    assert not any(Outcome(kind).is_final for kind in FailureClass)


def test_a_denial_stops_only_where_it_denies_the_whole_request() -> None:
    assert not Outcome(FailureClass.PERMISSION).stops_batch
    assert Outcome(FailureClass.PERMISSION, whole_request=True).stops_batch


def test_what_is_kept_says_why() -> None:
    assert kept("held") == Outcome(Final.KEPT, reason="held")


def test_values_are_told_apart_by_what_they_are_and_each_is_given_once() -> None:
    one, other = kept("held"), kept("held")
    assert [id(found) for found in distinct([one, other, one, one])] == [id(one), id(other)]
    assert list(distinct([])) == []
