"""The gateway to a real store, and to one that misbehaves in ways that no real one does on demand."""

from __future__ import annotations

import http.server
import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from s3_retention.core.command import DeleteCommand, command_id
from s3_retention.core.condition import Guard
from s3_retention.core.objects import ObjectFacts, ObjectRef
from s3_retention.core.outcome import FailureClass, Final, Outcome
from s3_retention.errors import ListingError, ListingRefusedError
from s3_retention.s3.gateway import S3Gateway
from s3_retention.s3.limits import RetryLimits
from s3_retention.steps.retry import delete_with_retries
from tests.factories import ODD_KEYS, facts
from tests.fakes import NO_WAIT, asked, deleted, fake_gateway, faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_s3 import S3Client

    from s3_retention.steps.retry import Attempted
    from tests.factories import World

UTC = timezone.utc
A, B, C, D = (facts(key) for key in "abcd")
RESET = ConnectionClosedError(endpoint_url="http://store")
HEAD = {"ETag": '"e"', "ContentLength": 1, "LastModified": datetime(2020, 1, 1, tzinfo=UTC)}
GONE = {"head_object": one_after_another(refusal("404", 404)), "head_bucket": one_after_another({})}


def kinds(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.kind.value for outcome in outcomes]


def listed(world: World, prefix: str = "exports/") -> list[ObjectFacts]:
    return [one for page in world.gateway.list_pages(world.bucket, prefix) for one in page]


def attempts_at(gateway: S3Gateway, commands: list[DeleteCommand], limits: RetryLimits) -> list[Attempted]:
    return delete_with_retries(gateway, commands, Guard(), limits).attempted


# A real store ---------------------------------------------------------------------------------------------
def test_odd_keys_are_listed_as_they_are(world: World) -> None:
    world.put(*ODD_KEYS)
    assert {one.ref.key for one in listed(world)} == set(ODD_KEYS)


def test_a_listing_tells_etag_size_and_time(world: World) -> None:
    world.put("exports/a", body=b"hello")
    (one,) = listed(world)
    assert (one.ref, one.size) == (ObjectRef(world.bucket, "exports/a"), 5)
    assert one.etag == '"5d41402abc4b2a76b9719d911017c592"'
    assert one.last_modified_at.utcoffset() == timedelta(0)


def test_a_listing_of_several_pages_names_each_object_once(world: World) -> None:
    keys = [f"exports/{number:04d}" for number in range(1001)]
    world.put(*keys)
    pages = list(world.gateway.list_pages(world.bucket, "exports/"))
    assert [len(page) for page in pages] == [1000, 1]
    assert sorted(one.ref.key for page in pages for one in page) == keys


def test_a_listing_leaves_a_sibling_prefix_alone(world: World) -> None:
    world.put("exports/a", "exports-archive/a", "export")
    assert [one.ref.key for one in listed(world)] == ["exports/a"]


def test_a_listing_of_a_bucket_that_is_missing_is_an_error(world: World) -> None:
    with pytest.raises(ListingError, match=r"s3://t-never/exports/ broke off with NoSuchBucket \(config\)"):
        list(world.gateway.list_pages("t-never", "exports/"))


def test_a_listing_that_is_denied_is_an_error(world: World) -> None:
    with pytest.raises(ListingError, match=r"AccessDenied \(permission\)"):
        list(world.gateway.list_pages("not-ours", "exports/"))


def test_outcomes_come_in_the_order_of_the_request(world: World) -> None:
    world.put(*(f"exports/{name}" for name in "abcdef"), "exports/\x01")
    world.s3.deny(world.bucket, ["exports/b"])
    found = {one.ref.key[-1]: one for one in listed(world)}
    world.admin.delete_object(Bucket=world.bucket, Key="exports/c")
    world.put("exports/d", body=b"new")
    targets = [found[name] for name in "f\x01dcbae"]
    outcomes = world.gateway.delete_chunk(targets)
    assert kinds(outcomes) == [
        "deleted",
        "deleted",
        "changed",
        "already_absent",
        "permission",
        "deleted",
        "deleted",
    ]
    assert all(outcome.request_id for outcome in outcomes)
    assert world.keys() == {"exports/b", "exports/d"}


def test_odd_keys_are_deleted_and_nothing_else_is(world: World) -> None:
    beside = {"exports/2020-01/a", "exports/2020-01/a b", "exports/2020-01/n"}
    world.put(*ODD_KEYS, *beside)
    targets = [one for one in listed(world) if one.ref.key in ODD_KEYS]
    assert kinds(world.gateway.delete_chunk(targets)) == ["deleted"] * len(ODD_KEYS)
    assert world.keys() == beside


def test_keys_that_xml_cannot_carry_go_one_by_one(world: World) -> None:
    world.put("exports/\x01", "exports/cr\r", "exports/a", "exports/b")
    requests: list[list[str]] = []
    real = world.gateway.client.delete_objects

    def recorded(**arguments: Any) -> Any:
        requests.append(asked(arguments))
        return real(**arguments)

    gateway = faulty_gateway(world.gateway, delete_objects=recorded)
    targets = sorted(listed(world), key=lambda one: one.ref.key)
    assert kinds(gateway.delete_chunk(targets)) == ["deleted"] * 4
    assert requests == [["exports/a", "exports/b"]]


def test_a_bucket_that_is_missing_is_a_config_fault_however_it_is_asked(world: World) -> None:
    missing = [facts("a", bucket="t-never"), facts("b", bucket="t-never"), facts("\x01", bucket="t-never")]
    outcomes = world.gateway.delete_chunk(missing)
    assert kinds(outcomes) == ["config"] * 3
    assert all(outcome.stops_batch and outcome.code == "NoSuchBucket" for outcome in outcomes)
    looked = world.gateway.look(ObjectRef("t-never", "a"))
    assert isinstance(looked, Outcome)
    assert (looked.kind, looked.code) == (FailureClass.CONFIG, "NoSuchBucket")


def test_a_look_gives_the_facts_of_the_listing_in_whole_seconds(world: World) -> None:
    world.put("exports/a b+c")
    (one,) = listed(world)
    whole = replace(one, last_modified_at=one.last_modified_at.replace(microsecond=0))
    assert world.gateway.look(one.ref) == whole


def test_listing_and_look_tell_the_storage_class_and_none_of_what_is_standard(world: World) -> None:
    world.admin.put_object(Bucket=world.bucket, Key="exports/ice", Body=b"x", StorageClass="GLACIER_IR")
    world.admin.put_object(Bucket=world.bucket, Key="exports/warm", Body=b"x", StorageClass="STANDARD")
    world.put("exports/unsaid")
    told = {one.ref.key: one.storage_class for one in listed(world)}
    assert told == {"exports/ice": "GLACIER_IR", "exports/warm": None, "exports/unsaid": None}
    for key, storage_class in told.items():
        looked = world.gateway.look(ObjectRef(world.bucket, key))
        assert isinstance(looked, ObjectFacts)
        assert looked.storage_class == storage_class


def test_a_look_at_a_missing_object_says_already_absent(world: World) -> None:
    looked = world.gateway.look(ObjectRef(world.bucket, "nothing"))
    assert isinstance(looked, Outcome)
    assert looked.kind is Final.ALREADY_ABSENT


def test_a_look_that_is_denied_is_no_answer(world: World) -> None:
    looked = world.gateway.look(ObjectRef("not-ours", "a"))
    assert isinstance(looked, Outcome)
    assert looked.kind is FailureClass.PERMISSION


# Requests that are faults of ours -------------------------------------------------------------------------
def test_more_than_1000_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="1001 keys: a request takes 1000"):
        fake_gateway().delete_chunk([A] * 1001)


def test_keys_of_two_buckets_are_refused_before_any_request() -> None:
    with pytest.raises(ValueError, match="several buckets"):
        fake_gateway().delete_chunk([A, facts("a", bucket="t-other")])


def test_no_keys_need_no_request() -> None:
    assert fake_gateway().delete_chunk([]) == []


def test_the_etag_of_the_plan_goes_with_each_key_and_never_beside_a_version() -> None:
    requests: list[Any] = []

    def recorded(**arguments: Any) -> Any:
        requests.append(arguments)
        return deleted("a", "b") | {"Deleted": [{"Key": "a"}, {"Key": "b", "VersionId": "v1"}]}

    targets = [A, facts("b", version_id="v1")]
    assert kinds(fake_gateway(delete_objects=recorded).delete_chunk(targets)) == ["deleted"] * 2
    (request,) = requests
    assert request["Delete"] == {
        "Objects": [{"Key": "a", "ETag": '"e"'}, {"Key": "b", "VersionId": "v1"}],
        "Quiet": False,
    }


# Answers that cannot be taken at their word ---------------------------------------------------------------
def test_answers_are_matched_by_key_and_not_by_place() -> None:
    answer = deleted("c", "a", errors=[("b", "AccessDenied")])
    outcomes = fake_gateway(delete_objects=lambda **_: answer).delete_chunk([A, B, C])
    assert kinds(outcomes) == ["deleted", "permission", "deleted"]
    assert outcomes[1] == Outcome(
        FailureClass.PERMISSION, code="AccessDenied", message="about b", request_id="R2"
    )


def test_a_key_that_the_answer_does_not_name_is_settled_by_a_look() -> None:
    gateway = fake_gateway(delete_objects=lambda **_: deleted("b"), **GONE)
    assert kinds(gateway.delete_chunk([A, B])) == ["already_absent", "deleted"]
    there = fake_gateway(delete_objects=lambda **_: deleted("b"), head_object=lambda **_: HEAD)
    outcomes = there.delete_chunk([A, B])
    assert (outcomes[0].kind, outcomes[0].code) == (FailureClass.UNKNOWN, "NoAnswerForKey")
    assert outcomes[0].is_retried


def test_a_key_that_the_answer_names_twice_is_settled_by_a_look() -> None:
    both = deleted("a", errors=[("a", "AccessDenied")])
    gateway = fake_gateway(delete_objects=lambda **_: both, head_object=lambda **_: HEAD)
    assert kinds(gateway.delete_chunk([A])) == ["unknown"]


def test_a_key_that_nobody_asked_for_changes_nothing() -> None:
    gateway = fake_gateway(delete_objects=lambda **_: deleted("a", "z", errors=[("y", "AccessDenied")]))
    assert kinds(gateway.delete_chunk([A])) == ["deleted"]


@pytest.mark.parametrize("answer", [{}, {"ResponseMetadata": {}}, {"Deleted": [], "Errors": []}])
def test_an_empty_answer_is_no_success(answer: dict[str, Any]) -> None:
    gateway = fake_gateway(delete_objects=lambda **_: answer, head_object=lambda **_: HEAD)
    assert kinds(gateway.delete_chunk([A, B])) == ["unknown", "unknown"]


@pytest.mark.parametrize(
    ("code", "kind", "stops"),
    [
        ("SlowDown", "throttled", False),
        ("AccessDenied", "permission", True),
        ("NoSuchBucket", "config", True),
        ("InvalidAccessKeyId", "auth", True),
        ("RequestTimeTooSkewed", "clock", True),
        ("InternalError", "transient", False),
    ],
)
def test_an_error_of_the_whole_request_is_every_objects_outcome(code: str, kind: str, *, stops: bool) -> None:
    outcomes = fake_gateway(delete_objects=one_after_another(refusal(code))).delete_chunk([A, B])
    assert kinds(outcomes) == [kind, kind]
    assert all(outcome.whole_request and outcome.stops_batch is stops for outcome in outcomes)


@pytest.mark.parametrize("culprits", [{"a"}, {"c"}, {"d"}, {"a", "d"}])
def test_a_request_that_is_malformed_is_halved_until_the_culprit_stands_alone(culprits: set[str]) -> None:
    requests: list[list[str]] = []

    def picky(**arguments: Any) -> Any:
        requests.append(asked(arguments))
        if culprits & set(requests[-1]):
            raise refusal("MalformedXML")
        return deleted(*requests[-1])

    outcomes = fake_gateway(delete_objects=picky).delete_chunk([A, B, C, D])
    assert kinds(outcomes) == ["malformed" if key in culprits else "deleted" for key in "abcd"]
    # The culprit is at fault, and not the store: the batch goes on.
    assert not any(outcome.whole_request for outcome in outcomes)
    assert len(requests) <= 7


def test_a_connection_that_breaks_is_settled_by_looks() -> None:
    answers = {"a": refusal("404", 404), "b": HEAD, "c": HEAD | {"ETag": '"other"'}}

    def head(**arguments: Any) -> Any:
        answer = answers[arguments["Key"]]
        if isinstance(answer, Exception):
            raise answer
        return answer

    gateway = fake_gateway(
        delete_objects=one_after_another(RESET), head_object=head, head_bucket=one_after_another({})
    )
    assert kinds(gateway.delete_chunk([A, B, C])) == ["already_absent", "unknown", "changed"]


def test_a_connection_that_breaks_over_a_missing_bucket_is_a_config_fault() -> None:
    gateway = fake_gateway(
        delete_objects=one_after_another(RESET),
        head_object=one_after_another(refusal("404", 404)),
        head_bucket=one_after_another(refusal("404", 404)),
    )
    outcomes = gateway.delete_chunk([A, B])
    assert kinds(outcomes) == ["config", "config"]
    assert all(outcome.stops_batch for outcome in outcomes)


def test_a_404_whose_bucket_cannot_be_looked_at_is_not_already_gone() -> None:
    gateway = fake_gateway(
        head_object=one_after_another(refusal("404", 404)), head_bucket=one_after_another(refusal("403", 403))
    )
    looked = gateway.look(A.ref)
    assert isinstance(looked, Outcome)
    assert looked.kind is FailureClass.PERMISSION


def test_a_store_that_answers_neither_request_nor_look_is_not_asked_for_each_key() -> None:
    looks: list[str] = []

    def silent(**arguments: Any) -> Any:
        looks.append(arguments["Key"])
        raise ReadTimeoutError(endpoint_url="http://store")

    gateway = fake_gateway(delete_objects=one_after_another(RESET), head_object=silent)
    outcomes = gateway.delete_chunk([A, B, C])
    assert kinds(outcomes) == ["unknown"] * 3
    assert all(outcome.whole_request for outcome in outcomes)
    assert looks == ["a"]


def test_a_failed_condition_on_the_incarnation_of_the_plan_is_a_conflict() -> None:
    refused = deleted(errors=[("a", "PreconditionFailed")])
    gateway = fake_gateway(delete_objects=lambda **_: refused, head_object=lambda **_: HEAD)
    assert kinds(gateway.delete_chunk([A])) == ["conflict"]


def test_a_failed_condition_on_a_missing_key_is_already_gone() -> None:
    refused = deleted(errors=[("a", "PreconditionFailed")])
    assert kinds(fake_gateway(delete_objects=lambda **_: refused, **GONE).delete_chunk([A])) == [
        "already_absent"
    ]


def test_a_request_that_never_left_needs_no_look() -> None:
    never = EndpointConnectionError(endpoint_url="http://store")
    assert kinds(fake_gateway(delete_objects=one_after_another(never)).delete_chunk([A])) == ["transient"]


# Listings that cannot be trusted --------------------------------------------------------------------------
def page(*keys: str, **more: Any) -> dict[str, Any]:
    contents = [
        {"Key": key, "ETag": '"e"', "Size": 1, "LastModified": datetime(2020, 1, 1, tzinfo=UTC)}
        for key in keys
    ]
    return {"IsTruncated": False, "Contents": contents} | more


def list_from(*answers: Any) -> list[str]:
    gateway = fake_gateway(list_objects_v2=one_after_another(*answers))
    return [one.ref.key for each in gateway.list_pages("b", "p/") for one in each]


@pytest.mark.parametrize("answer", [{}, {"Contents": page("p/a")["Contents"]}])
def test_an_answer_without_is_truncated_is_a_fault_and_not_the_end(answer: dict[str, Any]) -> None:
    with pytest.raises(ListingError, match="without IsTruncated"):
        list_from(answer)


@pytest.mark.parametrize(
    "fault", [RESET, refusal("SlowDown", 503), refusal("InternalError", 500), refusal("ExpiredToken")]
)
def test_a_listing_that_breaks_off_raises_whatever_it_gave_before(fault: Exception) -> None:
    first = page("p/a", IsTruncated=True, NextContinuationToken="t")
    with pytest.raises(ListingError, match="broke off"):
        list_from(first, fault)


def test_a_listing_that_promises_more_without_a_token_is_a_fault() -> None:
    with pytest.raises(ListingError, match="without a new token"):
        list_from(page("p/a", IsTruncated=True))


def test_a_listing_that_gives_the_same_token_again_is_a_fault_and_no_endless_loop() -> None:
    with pytest.raises(ListingError, match="without a new token"):
        list_from(page("p/a", IsTruncated=True, NextContinuationToken="t"))


def test_a_key_outside_the_prefix_is_a_fault() -> None:
    with pytest.raises(ListingError, match="outside the prefix: 'other/a'"):
        list_from(page("p/a", "other/a"))


def test_a_page_without_contents_is_empty_and_the_listing_goes_on() -> None:
    empty = {"IsTruncated": True, "NextContinuationToken": "t"}
    assert list_from(empty, page("p/a")) == ["p/a"]


def test_keys_are_unquoted_only_where_the_answer_says_so() -> None:
    assert list_from(page("p/a%20b+c", EncodingType="url")) == ["p/a b c"]
    assert list_from(page("p/a%20b+c")) == ["p/a%20b+c"]


def test_a_key_that_is_no_utf8_is_listed_with_surrogates() -> None:
    assert list_from(page("p/%FFa", EncodingType="url")) == ["p/\udcffa"]


# Answers over a real connection ---------------------------------------------------------------------------
@contextmanager
def answering(body: bytes, *, cut: int = 0) -> Iterator[S3Client]:
    """A client of a server that answers every request with 200 and this body, `cut` bytes short of its word."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + cut))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the names of the standard library

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with closing(
            boto3.Session().client(
                "s3",
                endpoint_url=f"http://127.0.0.1:{server.server_port}",
                aws_access_key_id="K",
                aws_secret_access_key="S",  # noqa: S106
                region_name="us-east-1",
                config=Config(
                    retries={"total_max_attempts": 1},
                    s3={"addressing_style": "path"},
                    proxies={},
                    read_timeout=5,
                ),
            )
        ) as client:
            yield client
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("body", "cut"),
    [
        (b"", 0),
        (b"<html>proxy error</html>", 0),
        (b"not XML at all", 0),
        (b"<DeleteResult><Deleted><Key>a</Key></Deleted>", 0),
        (b"<DeleteResult></DeleteResult>", 10),
    ],
)
def test_an_answer_that_is_empty_cut_or_no_answer_is_no_success(body: bytes, cut: int) -> None:
    with answering(body, cut=cut) as client:
        gateway = faulty_gateway(S3Gateway(client), head_object=lambda **_: HEAD)
        outcomes = gateway.delete_chunk([A, B])
    # botocore makes an InternalError of a 200 that is no XML; what it takes as an answer names no key.
    assert set(kinds(outcomes)) <= {"unknown", "transient"}
    assert all(outcome.is_retried for outcome in outcomes)


@pytest.mark.parametrize(
    ("body", "cut"),
    [(b"", 0), (b"<html/>", 0), (b"no XML", 0), (b"<ListBucketResult>", 0), (b"<ListBucketResult/>", 10)],
)
def test_a_listing_that_is_empty_cut_or_no_listing_is_an_error(body: bytes, cut: int) -> None:
    with answering(body, cut=cut) as client, pytest.raises(ListingError):
        list(S3Gateway(client, NO_WAIT).list_pages("b", "p/"))


# Attempts in the task -------------------------------------------------------------------------------------
def a_command(one: ObjectFacts, num_attempts: int = 0) -> DeleteCommand:
    return DeleteCommand(
        command_id(one, "v1") + b"o" * 32, one, one.last_modified_at, 1, 0, "v1", num_attempts=num_attempts
    )


def test_what_is_throttled_is_tried_again_alone_with_growing_waits() -> None:
    requests: list[list[str]] = []
    waits: list[float] = []

    def slow(**arguments: Any) -> Any:
        requests.append(asked(arguments))
        return deleted(*({"b"} & set(requests[-1])), errors=[("a", "SlowDown")])

    limits = RetryLimits(max_attempts=5, first_wait=0.5, longest_wait=2.0, sleep=waits.append)
    commands = [a_command(A, num_attempts=3), a_command(B)]
    attempted = attempts_at(fake_gateway(delete_objects=slow), commands, limits)
    assert [(one.ref.key, outcome.kind.value, attempts) for one, outcome, attempts in attempted] == [
        ("a", "throttled", 8),
        ("b", "deleted", 1),
    ]
    assert requests == [["a", "b"], ["a"], ["a"], ["a"], ["a"]]
    # Full jitter: anything from nothing to the bound of each attempt.
    assert len(waits) == 4
    assert all(0 <= wait <= bound for wait, bound in zip(waits, (0.5, 1.0, 2.0, 2.0), strict=True))


def test_waits_are_drawn_from_the_whole_range() -> None:
    waits: list[float] = []
    limits = RetryLimits(max_attempts=200, first_wait=8.0, longest_wait=8.0, sleep=waits.append)
    gateway = fake_gateway(delete_objects=lambda **_: deleted(errors=[("a", "SlowDown")]))
    attempts_at(gateway, [a_command(A)], limits)
    assert len(waits) == 199
    assert min(waits) < 2
    assert max(waits) > 6
    assert max(waits) <= 8


def test_a_store_that_asks_to_be_left_alone_is_left_alone_at_least_so_long() -> None:
    waits: list[float] = []
    answers = one_after_another(refusal("SlowDown", 503, headers={"retry-after": "42"}), deleted("a"))
    limits = RetryLimits(first_wait=0.5, sleep=waits.append)
    ((_, outcome, _),) = attempts_at(fake_gateway(delete_objects=answers), [a_command(A)], limits)
    assert outcome.kind is Final.DELETED
    assert waits == [42.0]


def test_a_store_that_asks_for_more_than_the_deadline_is_not_asked_again_by_this_try() -> None:
    waits: list[float] = []
    answer = refusal("SlowDown", 503, headers={"retry-after": "301"})
    gateway = fake_gateway(delete_objects=one_after_another(answer))
    ((_, outcome, attempts),) = attempts_at(
        gateway, [a_command(A)], RetryLimits(deadline=300, sleep=waits.append)
    )
    assert (outcome.kind, outcome.whole_request, attempts) == (FailureClass.THROTTLED, True, 1)
    assert waits == []


def test_what_passes_by_itself_ends_the_attempts() -> None:
    waits: list[float] = []
    answers = one_after_another(refusal("SlowDown", 503), RESET, deleted("a"))
    gateway = fake_gateway(delete_objects=answers, head_object=lambda **_: HEAD)
    limits = RetryLimits(sleep=waits.append)
    ((_, outcome, attempts),) = attempts_at(gateway, [a_command(A)], limits)
    assert (outcome.kind, attempts, len(waits)) == (Final.DELETED, 3, 2)


@pytest.mark.parametrize("code", ["AccessDenied", "KeyTooLongError", "NotImplemented"])
def test_what_does_not_pass_by_itself_is_tried_once(code: str) -> None:
    def never(_: float) -> None:
        raise AssertionError("there is nothing to wait for")

    gateway = fake_gateway(delete_objects=lambda **_: deleted(errors=[("a", code)]))
    ((_, outcome, attempts),) = attempts_at(gateway, [a_command(A)], RetryLimits(sleep=never))
    assert (outcome.code, attempts) == (code, 1)


def test_a_fault_of_the_store_ends_the_attempts_of_all() -> None:
    waits: list[float] = []
    answer = deleted(errors=[("a", "SlowDown"), ("b", "ExpiredToken")])
    gateway = fake_gateway(delete_objects=lambda **_: answer)
    attempted = attempts_at(gateway, [a_command(A), a_command(B)], RetryLimits(sleep=waits.append))
    assert [(outcome.kind.value, attempts) for _, outcome, attempts in attempted] == [
        ("throttled", 1),
        ("auth", 1),
    ]
    assert waits == []


def test_no_commands_need_no_attempt() -> None:
    assert attempts_at(fake_gateway(), [], RetryLimits()) == []


# Found by review ------------------------------------------------------------------------------------------
def test_an_object_without_an_etag_is_not_deleted_since_nothing_would_hold_the_delete_to_it() -> None:
    for key in ("bare", "bare\x01"):
        (outcome,) = fake_gateway().delete_chunk([facts(key, etag=None)])
        assert (outcome.kind, outcome.code) == (FailureClass.UNSUPPORTED, "NoETag")


@pytest.mark.parametrize("etag", ["", " ", "*", '"*"', '""'])
def test_an_etag_that_is_no_condition_deletes_nothing(world: World, etag: str) -> None:
    # SeaweedFS takes an empty ETag for none, and "*" for any: whatever is there by now would go.
    world.put("exports/a", "exports/a\r")
    targets = [
        replace(one, etag=etag) for page in world.gateway.list_pages(world.bucket, "exports/") for one in page
    ]
    assert [outcome.code for outcome in world.gateway.delete_chunk(targets)] == ["NoETag"] * 2
    assert len(world.keys()) == 2


@pytest.mark.parametrize("code", ["NoSuchKey", "PreconditionFailed"])
def test_a_whole_request_that_is_not_found_or_failed_proves_nothing_of_any_key(code: str) -> None:
    gateway = fake_gateway(
        delete_objects=one_after_another(refusal(code, 404)),
        head_object=one_after_another(refusal("503", 503)),
    )
    assert kinds(gateway.delete_chunk([A, B])) == ["unknown", "unknown"]


def test_a_look_that_is_refused_asks_for_an_answer_with_a_body() -> None:
    for code, kind in (
        ("InvalidAccessKeyId", FailureClass.AUTH),
        ("RequestTimeTooSkewed", FailureClass.CLOCK),
        ("AccessDenied", FailureClass.PERMISSION),
    ):
        gateway = fake_gateway(
            head_object=one_after_another(refusal("403", 403)),
            list_objects_v2=one_after_another(refusal(code, 403)),
        )
        found = gateway.look(A.ref)
        assert isinstance(found, Outcome)
        assert found.kind is kind
        assert found.stops_batch == (kind is not FailureClass.PERMISSION)


@pytest.mark.parametrize("missing", ["ContentLength", "LastModified"])
def test_a_look_whose_answer_broke_off_in_its_headers_is_no_look(missing: str) -> None:
    # Python takes the end of a connection for the end of the headers.
    cut = {name: value for name, value in HEAD.items() if name != missing}
    found = fake_gateway(head_object=lambda **_: cut).look(A.ref)
    assert isinstance(found, Outcome)
    assert (found.kind, found.code) == (FailureClass.UNKNOWN, f"No{missing}")


def test_a_key_with_a_lone_surrogate_is_refused_without_a_request_and_costs_no_other() -> None:
    odd = facts("a\udcff")
    outcomes = fake_gateway(delete_objects=lambda **_: deleted("a")).delete_chunk([A, odd])
    assert kinds(outcomes) == ["deleted", "malformed"]
    assert fake_gateway().look(odd.ref) == outcomes[1]
    assert (outcomes[1].code, outcomes[1].whole_request) == ("KeyNotUTF8", False)


def test_a_page_of_a_listing_that_is_throttled_is_asked_for_again_with_the_same_token() -> None:
    tokens: list[str | None] = []
    pages = one_after_another(
        {"IsTruncated": True, "NextContinuationToken": "t", "Contents": []},
        refusal("SlowDown", 503),
        {"IsTruncated": False, "Contents": []},
    )

    def recorded(**arguments: Any) -> Any:
        tokens.append(arguments.get("ContinuationToken"))
        return pages(**arguments)

    assert list(fake_gateway(list_objects_v2=recorded).list_pages("b", "p/")) == [[], []]
    assert tokens == [None, "t", "t"]


def test_a_listing_that_is_denied_is_refused_at_once() -> None:
    calls: list[Any] = []

    def denied(**arguments: Any) -> Any:
        calls.append(arguments)
        raise refusal("AccessDenied", 403)

    with pytest.raises(ListingRefusedError, match="broke off with AccessDenied"):
        list(fake_gateway(list_objects_v2=denied).list_pages("b", "p/"))
    assert len(calls) == 1


def test_the_clock_of_a_store_is_read_from_its_answers(world: World) -> None:
    at = world.gateway.read_clock(world.bucket)
    assert at is not None
    assert abs((at - datetime.now(timezone.utc)).total_seconds()) < 60
    assert world.gateway.read_clock("t-never") is None


def test_a_bucket_that_is_missing_is_asked_for_the_clock_once() -> None:
    asked_for: list[Any] = []

    def missing(**arguments: Any) -> Any:
        asked_for.append(arguments)
        raise refusal("404", 404)

    assert fake_gateway(head_bucket=missing).read_clock("b") is None
    assert len(asked_for) == 1


@pytest.mark.parametrize("date", ["Tue, 01 Dec 2026 00:00:00 -0000", "yesterday", None])
def test_a_date_that_names_no_time_is_none(date: str | None) -> None:
    headers = {} if date is None else {"date": date}
    answer = {"ResponseMetadata": {"HTTPHeaders": headers}}
    assert fake_gateway(head_bucket=lambda **_: answer).read_clock("b") is None


def test_a_clock_that_is_throttled_is_asked_for_again() -> None:
    told = {"ResponseMetadata": {"HTTPHeaders": {"date": "Tue, 01 Dec 2026 00:00:00 GMT"}}}
    gateway = fake_gateway(head_bucket=one_after_another(refusal("503", 503), told))
    assert gateway.read_clock("b") == datetime(2026, 12, 1, tzinfo=timezone.utc)
