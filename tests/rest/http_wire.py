"""A server in a thread and a client made of a bare socket: what the tests of the HTTP front are written with."""

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import uvloop

from verditer.rest.http.message import Request, Response
from verditer.rest.http.response_batcher import ResponseBatcher
from verditer.rest.http.server import Handler, HttpLimits, HttpServer
from verditer.serving.sockets import ListenAddress, open_sockets

PATIENCE_SECONDS = 10.0  # a test that waits longer than this has failed


class Wire:
    """One client connection. Answers are read strictly: what a careless client would forgive fails here."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(PATIENCE_SECONDS)
        self._buffer = b""

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes) -> "Wire":
        self.sock.sendall(data)
        return self

    def send_until_held_back(self, data: bytes, *, seconds: float = 0.2) -> int:
        """How many bytes the server took before it stopped reading."""
        sent = 0
        self.sock.settimeout(seconds)
        try:
            while sent < len(data):
                sent += self.sock.send(data[sent : sent + (1 << 20)])
        except TimeoutError:
            pass
        self.sock.settimeout(PATIENCE_SECONDS)
        return sent

    def answer(self, *, head_only: bool = False) -> "Answer":
        status_line, *lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status, reason = status_line.split(" ", 2)
        assert version == "HTTP/1.1"
        headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
        answer = Answer(int(status), reason, headers, b"")
        if not head_only and answer.status not in (100, 204, 304):
            answer.body = self._body(answer)
        return answer

    def ended(self) -> bool:
        """The server closed, and sent nothing that was not asked for."""
        return self._buffer == b"" and self._receive() == b""

    def silent(self, seconds: float) -> bool:
        """For this long the server neither says anything nor closes."""
        self.sock.settimeout(seconds)
        try:
            self._buffer += self._receive()
            return False
        except TimeoutError:
            return self._buffer == b""
        finally:
            self.sock.settimeout(PATIENCE_SECONDS)

    def _body(self, answer: "Answer") -> bytes:
        length, encoding = answer.header("Content-Length"), answer.header("Transfer-Encoding")
        assert length is None or encoding is None
        if length is not None:
            return self._exactly(int(length))
        if encoding is not None:
            assert encoding == "chunked"
            return b"".join(self._chunks())
        assert answer.header("Connection") == "close"
        return self._rest()

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._until(b"\r\n"), 16):
            yield self._exactly(size)
            assert self._exactly(2) == b"\r\n"
        assert self._exactly(2) == b"\r\n"

    def _until(self, delimiter: bytes) -> bytes:
        while delimiter not in self._buffer:
            self._more()
        found, _, self._buffer = self._buffer.partition(delimiter)
        return found

    def _exactly(self, size: int) -> bytes:
        pieces, missing = [self._buffer[:size]], size - len(self._buffer)
        self._buffer = self._buffer[size:]
        while missing > 0:
            piece = self._receive()
            if not piece:
                raise EOFError(f"{missing} bytes are missing")
            pieces.append(piece[:missing])
            self._buffer = piece[missing:]
            missing -= len(piece)
        return b"".join(pieces)

    def _rest(self) -> bytes:
        rest, self._buffer = self._buffer, b""
        while piece := self._receive():
            rest += piece
        return rest

    def _more(self) -> None:
        piece = self._receive()
        if not piece:
            raise EOFError(f"The connection ended behind {self._buffer!r}")
        self._buffer += piece

    def _receive(self) -> bytes:
        return self.sock.recv(1 << 18)


@dataclass
class Answer:
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        values = [value for each, value in self.headers if each.lower() == name.lower()]
        assert len(values) <= 1
        return values[0] if values else None


class Serving:
    """A running `HttpServer` and the loop it runs on."""

    def __init__(self, server: HttpServer, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.loop = loop
        self.port = server.port
        self.errors: list[logging.LogRecord] = []

    def connect(self, *, receive_buffer_bytes: int = 0) -> Wire:
        sock = socket.socket()
        if receive_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(("127.0.0.1", self.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Wire(sock)

    def ask(self, data: bytes, *, head_only: bool = False) -> Answer:
        with self.connect() as wire:
            return wire.send(data).answer(head_only=head_only)

    def stop(self, grace_seconds: float = 1.0) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(grace_seconds), self.loop).result(PATIENCE_SECONDS)


@contextmanager
def serving(
    handler: Handler, *, limits: HttpLimits | None = None, tls: ssl.SSLContext | None = None, errors: bool = False
) -> Iterator[Serving]:
    """Serves until the block ends; errors in the log fail the test unless it says that they are `errors` to expect."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = HttpServer(handler, open_sockets(ListenAddress(port=0), "test"), limits=limits, tls=tls)
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(PATIENCE_SECONDS)
    running = Serving(server, loop)
    with _logged_errors(running.errors):
        try:
            yield running
        finally:
            running.stop()
            loop.call_soon_threadsafe(loop.stop)
            thread.join(PATIENCE_SECONDS)
            loop.close()
    if not errors:
        assert [record.getMessage() for record in running.errors] == []


@contextmanager
def _logged_errors(records: list[logging.LogRecord]) -> Iterator[None]:
    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    keep = Keep(logging.WARNING)
    logging.getLogger().addHandler(keep)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(keep)


@pytest.fixture(params=["at once", "batched"])
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Responses are written at once, or in batches as under load. Clients must not see a difference."""
    monkeypatch.setattr(ResponseBatcher, "is_batching", request.param == "batched")


def request(method: str = "GET", target: str = "/", *headers: str, body: bytes = b"", version: str = "1.1") -> bytes:
    lines = [f"{method} {target} HTTP/{version}", "Host: localhost", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def echo(request: Request) -> Response:
    """Says what arrived: the target and headers in headers, the body as the body."""
    body = await request.body.read_all(1 << 30)
    headers = [("x-method", request.method), ("x-target", request.target), ("x-peer", request.peer)]
    return Response(status=200, headers=headers + [(f"got-{name}", value) for name, value in request.raw_headers], body=body)
