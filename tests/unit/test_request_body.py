"""Long requests are written past botocore's serializer, and what is sent is what it would have sent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Barrier
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.s3 import request_body
from s3_retention.s3.checksums import send_md5
from s3_retention.s3.keys import xml_can_carry
from s3_retention.s3.request_body import Identifiers, write_quickly

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NOTHING = b"<DeleteResult/>"
# They are made of the time of the request, or of what botocore calls itself by the threads and the tries.
OF_THE_MOMENT = {"x-amz-date", "authorization", "amz-sdk-invocation-id", "amz-sdk-request", "user-agent"}
texts = st.text(
    st.characters(codec="utf-8") | st.sampled_from("&<>\"'\r\n\t ]"), min_size=1, max_size=12
).filter(lambda text: xml_can_carry(text.replace("\r", "")))
identifiers = st.fixed_dictionaries({"Key": texts}) | st.one_of(
    *(st.fixed_dictionaries({"Key": texts, name: texts}) for name in ("VersionId", "ETag"))
)


class _Raw:
    """As much of an answer as botocore reads of its stream."""

    @staticmethod
    def stream() -> list[bytes]:
        return [NOTHING]


def _client(*, is_quick: bool, with_md5: bool = False) -> tuple[S3Client, list[Any]]:
    """A client that sends nothing, and what it would have sent."""
    client = boto3.client(
        "s3",
        region_name="eu-central-1",
        aws_access_key_id="K",
        aws_secret_access_key="S",  # noqa: S106
        endpoint_url="http://127.0.0.1:1",
        config=Config(s3={"addressing_style": "path"}),
    )
    sent: list[Any] = []

    def answer(request: Any, **_: Any) -> Any:
        sent.append(request)
        return AWSResponse(request.url, 200, HTTPHeaders(), _Raw())

    client.meta.events.register("before-send.s3.DeleteObjects", answer)
    if with_md5:
        send_md5(client)
    if is_quick:
        write_quickly(client)
        write_quickly(client)
    return client, sent


client_of = lru_cache(_client)


def sent_for(objects: Any, *, is_quick: bool, with_md5: bool = False, quiet: bool = False) -> Any:
    client, sent = client_of(is_quick=is_quick, with_md5=with_md5)
    sent.clear()
    client.delete_objects(Bucket="b", Delete={"Objects": objects, "Quiet": quiet})
    (request,) = sent
    headers = {name.lower(): value for name, value in request.headers.items()}
    return request.method, request.url, request.body, {n: headers[n] for n in headers.keys() - OF_THE_MOMENT}


def keys_of(body: bytes) -> list[str]:
    return [element.text or "" for element in ET.fromstring(body).iter() if element.tag.endswith("}Key")]  # noqa: S314


@given(st.lists(identifiers, min_size=1, max_size=12), st.booleans(), st.booleans())
def test_what_is_sent_is_what_botocore_sends_with_its_checksum(
    objects: list[Any], with_md5: bool, quiet: bool
) -> None:
    ours = sent_for(Identifiers(objects), is_quick=True, with_md5=with_md5, quiet=quiet)
    assert ours == sent_for(objects, is_quick=False, with_md5=with_md5, quiet=quiet)
    names = ours[3].keys()
    assert ("content-md5" in names, "x-amz-checksum-crc32" in names) == (with_md5, not with_md5)


@pytest.mark.parametrize("num", [2, 1000])
def test_a_long_request_is_written_past_the_serializer(num: int, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = request_body._written
    monkeypatch.setattr(request_body, "_written", lambda some: (written.append(len(some)), write(some))[1])  # type: ignore[func-returns-value]
    objects = [{"Key": f"k{place}", "ETag": '"e"'} for place in range(num)]
    _, _, body, _ = sent_for(Identifiers(objects), is_quick=True)
    assert written == [num - 1]
    assert keys_of(body) == [one["Key"] for one in objects]


def test_a_plain_list_is_written_by_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "_written", None)
    objects = [{"Key": "a"}, {"Key": "b", "ETag": '"e"'}]
    assert sent_for(objects, is_quick=True) == sent_for(objects, is_quick=False)
    assert sent_for(Identifiers(objects[:1]), is_quick=True) == sent_for(objects[:1], is_quick=False)


def test_what_the_caller_gave_is_left_as_it_was() -> None:
    objects = Identifiers({"Key": f"a&{place}"} for place in range(3))
    given_ = {"Objects": objects, "Quiet": False}
    client, sent = client_of(is_quick=True)
    for _ in range(2):
        sent.clear()
        client.delete_objects(Bucket="b", Delete=given_)  # type: ignore[arg-type]
        assert keys_of(sent[0].body) == ["a&0", "a&1", "a&2"]
    assert given_ == {"Objects": [{"Key": "a&0"}, {"Key": "a&1"}, {"Key": "a&2"}], "Quiet": False}


def test_threads_that_share_a_client_do_not_mix_their_lists() -> None:
    client, sent = _client(is_quick=True)
    num_threads, num_requests = 4, 25
    barrier = Barrier(num_threads)
    # Held between the two hooks, where a list that was kept for the client would be another thread's.

    def wait_for_all(**_: Any) -> None:
        barrier.wait(30)

    client.meta.events.register_last("before-parameter-build.s3.DeleteObjects", wait_for_all)

    def send(name: str) -> None:
        for number in range(num_requests):
            objects = Identifiers({"Key": f"{name}-{number}-{place}"} for place in range(3 + number))
            client.delete_objects(Bucket=name, Delete={"Objects": objects})

    with ThreadPoolExecutor(num_threads) as pool:
        list(pool.map(send, [f"bucket-{thread}" for thread in range(num_threads)]))
    requested: dict[str, list[list[str]]] = {}
    for request in sent:
        requested.setdefault(request.url.split("/")[3].partition("?")[0], []).append(keys_of(request.body))
    assert requested == {
        name: [[f"{name}-{number}-{place}" for place in range(3 + number)] for number in range(num_requests)]
        for name in requested
    }
    assert len(requested) == num_threads


def test_a_list_that_no_request_was_made_of_is_not_sent_with_the_next_one() -> None:
    client, sent = _client(is_quick=True)
    with pytest.raises(Exception, match="Parameter validation failed"):
        client.delete_objects(
            Bucket="b",
            Delete={"Objects": Identifiers([{"Key": 1}, {"Key": "lost"}])},
        )
    client.delete_objects(Bucket="b", Delete={"Objects": Identifiers([{"Key": "a"}, {"Key": "b"}])})
    client.delete_objects(Bucket="b", Delete={"Objects": [{"Key": "c"}]})
    assert [keys_of(request.body) for request in sent] == [["a", "b"], ["c"]]
