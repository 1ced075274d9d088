"""Which requests a rule of the server of faults hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox.fault_server import FaultServer
from sandbox.faults import Fault, Request, Rule, Way, refusing, status_of
from sandbox.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator

XML = '<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{}<Quiet>false</Quiet></Delete>'
FAULT = refusing(503, "SlowDown")


def deletes(*keys: str) -> Request:
    objects = "".join(f"<Object><Key>{key}</Key><ETag>e</ETag></Object>" for key in keys)
    return Request("POST", "/b?delete", b"", XML.format(objects).encode())


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer("http://127.0.0.1:9", Identity("nobody", ())) as made:
        yield made


@pytest.mark.parametrize(
    ("method", "target", "operation", "keys"),
    [
        ("GET", "/b?list-type=2&prefix=a%2Fb", "ListObjectsV2", ()),
        ("GET", "/b/a?versionId=1", "GET", ()),
        ("HEAD", "/b", "HeadBucket", ()),
        ("HEAD", "/b/", "HeadBucket", ()),
        ("HEAD", "/b/a%01/b", "HeadObject", ("a\x01/b",)),
        ("DELETE", "/b/a%2Fb%3F", "DeleteObject", ("a/b?",)),
        ("DELETE", "/b//a", "DeleteObject", ("/a",)),
        ("DELETE", "/b", "DELETE", ()),
        ("PUT", "/b/a", "PUT", ()),
    ],
)
def test_a_request_tells_its_operation_and_the_keys_that_it_names(
    method: str, target: str, operation: str, keys: tuple[str, ...]
) -> None:
    request = Request(method, target, b"", b"")
    assert (request.operation, request.keys) == (operation, keys)


def test_the_keys_of_a_bulk_delete_are_those_of_its_body() -> None:
    assert deletes("a", "b&amp;c", "cr&#xD;").keys == ("a", "b&c", "cr\r")
    assert deletes("a").operation == "DeleteObjects"


def test_a_rule_holds_where_operation_method_and_key_are_its_own() -> None:
    request = deletes("a", "b")
    assert Rule(FAULT).names(request)
    assert Rule(FAULT, operation="DeleteObjects", method="POST", key="b").names(request)
    assert not Rule(FAULT, operation="HeadObject").names(request)
    assert not Rule(FAULT, method="GET").names(request)
    assert not Rule(FAULT, key="c").names(request)


def test_the_first_rule_that_holds_wins_and_each_counts_its_own_requests(server: FaultServer) -> None:
    cut = Fault(Way.CUT)
    server.script(Rule(cut, key="b", nth=frozenset({2})), Rule(FAULT, nth=frozenset({1, 3})))
    drawn = [server.find_fault(deletes(*keys)) for keys in ("a", "b", "b", "b", "a")]
    assert drawn == [FAULT, None, cut, FAULT, None]


def test_chance_hits_its_share_and_the_same_requests_for_the_same_seed(server: FaultServer) -> None:
    def draw(seed: int) -> list[bool]:
        server.script(Rule(FAULT, probability=0.1), seed=seed)
        return [server.find_fault(deletes("a")) is not None for _ in range(2_000)]

    assert draw(1) == draw(1) != draw(2)
    assert 140 < sum(draw(3)) < 260


def test_a_new_script_forgets_what_passed(server: FaultServer) -> None:
    log = server.script(Rule(FAULT, nth=frozenset({1})))
    assert server.find_fault(deletes("a")) is FAULT
    assert server.script() is not log
    assert server.find_fault(deletes("a")) is None


def test_a_status_is_read_from_the_first_line_of_an_answer() -> None:
    assert status_of(b"HTTP/1.1 204 No Content\r\n\r\n") == 204
    with pytest.raises(ValueError, match="no status line"):
        status_of(b"SSH-2.0")
