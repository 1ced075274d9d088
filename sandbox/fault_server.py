"""A server between a client and a store that makes requests fail, by a script, and remembers what passed.

What no rule hits passes byte for byte: a signature covers the Host header, and the store checks it against the one
that it receives, which is the one that the client has signed.
"""

from __future__ import annotations

import random
import re
import socket
import socketserver
import struct
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from sandbox.faults import NAMESPACE, Fault, Passed, Request, Rule, Way, status_of
from sandbox.http_messages import headers_of, read_answer, read_request
from sandbox.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.identity import Identity

RESET_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends RST in place of FIN (socket(7))."""


class FaultServer(socketserver.ThreadingTCPServer):
    """Listens on a free loopback port, a thread for each connection. Make one with `fault_server`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str, identity: Identity) -> None:
        """Stand before the store at the URL `upstream`.

        `identity` signs the requests that a fault for single keys has changed.
        """
        super().__init__((LOOPBACK, 0), _Connection)
        parts = urlsplit(upstream)
        self.upstream = (parts.hostname or LOOPBACK, parts.port or 80)
        self.identity = identity
        self.log: list[Passed] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.script()

    @property
    def endpoint(self) -> str:
        """The URL for the client."""
        return f"http://{LOOPBACK}:{self.server_address[1]}"

    def script(
        self, *rules: Rule, seed: int = 0, hold: Callable[[Request], None] | None = None
    ) -> list[Passed]:
        """Begin anew: with these rules, the first that holds wins, and with an empty log, which is given.

        `hold` is called with each request before it is passed on: the client waits for it.
        """
        with self._lock:
            self._rules = rules
            self._counts = [0] * len(rules)
            self._chance = random.Random(seed)  # noqa: S311 - the same faults every time are what is wanted
            self.hold = hold
            self.log = []
            return self.log

    def find_fault(self, request: Request) -> Fault | None:
        """Draw what is to happen to a request; None lets it pass."""
        with self._lock:
            for place, rule in enumerate(self._rules):
                if not rule.names(request):
                    continue
                self._counts[place] += 1
                if rule.nth is not None and self._counts[place] not in rule.nth:
                    continue
                if rule.probability >= 1 or self._chance.random() < rule.probability:
                    return rule.fault
        return None

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Serve a connection in a thread of its own, and know of it, so that the end can end it."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        """Close a connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Let it be: that a client leaves, or a store ends, is what is tried here."""

    def end_connections(self) -> None:
        """End what clients have left open in their pools."""
        for one in tuple(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def fault_server(upstream: str, identity: Identity) -> Iterator[FaultServer]:
    """Start a server before the store at `upstream` and stop it at the end; it has no faults before a `script`."""
    with FaultServer(upstream, identity) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            server.end_connections()
            thread.join()


class _Connection(socketserver.StreamRequestHandler):
    """One connection of a client, with one to the store of its own."""

    server: FaultServer
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Serve one request after the other until either side leaves."""
        with socket.create_connection(self.server.upstream) as store, store.makefile("rb") as answers:
            store.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (request := read_request(cast("IO[bytes]", self.rfile))) is not None:
                if self.server.hold is not None:
                    self.server.hold(request)
                if not self._serve(request, store, answers):
                    return

    def _serve(self, request: Request, store: socket.socket, answers: IO[bytes]) -> bool:
        """Answer one request, or not; False where the connection has ended with it."""
        fault = self.server.find_fault(request)
        passed = Passed(request.operation, request.keys, None, is_acted_on=False, fault=fault)
        head = body = b""
        sent = _without_keys(request, fault, self.server.identity) if fault else request
        if sent is not None and (fault is None or fault.is_acted_on or fault.way in {Way.KEYS, Way.UNNAMED}):
            store.sendall(sent.head + sent.body)
            head, body = read_answer(answers, has_body=request.method != "HEAD")
            passed = replace(passed, is_acted_on=True)
        if fault is not None:
            head, body = _spoil(request, fault, head, body)
        is_told = fault is None or fault.way not in {Way.RESET, Way.CUT, Way.SILENCE}
        # Before the client hears of it: a test may look as soon as it has its answer.
        self.server.log.append(replace(passed, status=status_of(head) if is_told else None))
        if fault is not None and not is_told:
            return self._break(fault, head, body)
        self.wfile.write(head + body)
        return True

    def _break(self, fault: Fault, head: bytes, body: bytes) -> bool:
        if fault.way is Way.CUT:
            self.wfile.write(head + body[: len(body) // 2] if body else head[: len(head) // 2])
        elif fault.way is Way.SILENCE:
            self.connection.recv(1)  # returns when the client hangs up
        else:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_ONCE)
            # `shutdown` would say goodbye first.
            self.rfile.close()
            self.connection.close()
        return False


def _spoil(request: Request, fault: Fault, head: bytes, body: bytes) -> tuple[bytes, bytes]:
    """Make the answer of a fault from that of the store, which is empty where it was not asked."""
    if fault.way is Way.ANSWER:
        body = b"" if request.method == "HEAD" else fault.body
        named = (*fault.headers, ("Content-Type", "application/xml"), ("Content-Length", str(len(body))))
        lines = [f"HTTP/1.1 {fault.status} Fault", *(f"{name}: {value}" for name, value in named)]
        return "\r\n".join([*lines, "", ""]).encode(), body
    if fault.way in {Way.KEYS, Way.UNNAMED}:
        return _answer_about_keys(request, fault, body)
    return head, body


def _answer_about_keys(request: Request, fault: Fault, body: bytes) -> tuple[bytes, bytes]:
    root = ET.fromstring(body) if body else ET.Element(f"{NAMESPACE}DeleteResult")  # noqa: S314
    if root.tag != f"{NAMESPACE}DeleteResult":
        raise ValueError(f"the store refused what was left of the request: {body[:500]!r}")
    for one in list(root):
        if one.findtext(f"{NAMESPACE}Key") in fault.keys:
            root.remove(one)
    if fault.way is Way.KEYS:
        for key in (key for key in request.keys if key in fault.keys):
            error = ET.SubElement(root, f"{NAMESPACE}Error")
            for name, text in (("Key", key), ("Code", fault.code), ("Message", "a fault was asked for")):
                ET.SubElement(error, f"{NAMESPACE}{name}").text = text
    ET.register_namespace("", NAMESPACE.strip("{}"))
    written = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {len(written)}\r\n\r\n"
    return head.encode(), written


def _without_keys(request: Request, fault: Fault, identity: Identity) -> Request | None:
    """The request without the keys of a fault that the store is not to act on; None where none is left."""
    if fault.is_acted_on or not fault.keys & set(request.keys):
        return request
    if set(request.keys) <= fault.keys:
        return None
    for key in fault.keys & set(request.keys):
        name = re.escape(escape(key, {'"': "&quot;", "\r": "&#xD;", "\n": "&#xA;"}).encode())
        whole = rb"<Object>(?:(?!</Object>).)*?<Key>" + name + rb"</Key>.*?</Object>"
        request = replace(request, body=re.sub(whole, b"", request.body, flags=re.DOTALL))
    return _sign(request, identity)


def _sign(request: Request, identity: Identity) -> Request:
    """Sign a request anew after a change of its body, for the host that its client has named."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    headers = dict(headers_of(request.head))
    url = f"http://{headers['host']}{request.target}"
    signed = AWSRequest(request.method, url, data=request.body, headers={"Host": headers["host"]})
    S3SigV4Auth(Credentials(identity.access_key, identity.secret_key), "s3", "us-east-1").add_auth(signed)
    lines = [f"{request.method} {request.target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in signed.headers.items()]
    lines += [f"Content-Length: {len(request.body)}", "", ""]
    return replace(request, head="\r\n".join(lines).encode())
