"""Hostile bytes: whatever arrives, the server neither fails nor misreads, and the next client is served as ever."""

import asyncio
import contextlib
import random
import re
import socket
from collections.abc import AsyncIterator
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rest.http_wire import Serving, request, serving
from verditer.rest.http import parser as parser_module
from verditer.rest.http.body import IncomingBody
from verditer.rest.http.message import Request, Response
from verditer.rest.http.parser import ReceivedRequest, RequestParser
from verditer.rest.http.server import HttpLimits
from verditer.rest.http.wire import Refusal

GOOD = [
    request("GET", "/a?b=c"),
    request("HEAD", "/a"),
    request("PUT", "/read", body=b"hello"),
    request("PUT", "/ignore", "Expect: 100-continue", body=b"hello" * 50),
    request("PUT", "/read", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n3;x=y\r\nabc\r\n0\r\nx-t: 1\r\n\r\n",
    request("POST", "/stream", "Connection: Upgrade", "Upgrade: h2c", body=b"abc"),
    request("PUT", "/read", "Connection: Upgrade", "Upgrade: h2c", "Transfer-Encoding: chunked") + b"1\r\na\r\n0\r\n\r\n",
    request("MERGE", "/stream", "Connection: close", version="1.0"),
    request("GET", "/stream", "Connection: keep-alive", version="1.0"),
]
# fmt: off
SPLICES = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b"\xff", b"HTTP/1.1", b"HTTP/1.0", b"-1", b"99999999999999999999",
    b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: b\r\n",
    b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Upgrade: h2c\r\n", b"0\r\n\r\n", b"ffffffff\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
]
# fmt: on


def mutated(chance: random.Random) -> bytes:
    data = bytearray(b"".join(chance.choices(GOOD, k=chance.randint(1, 4))))
    for _ in range(chance.randint(0, 6)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data[at:at] = chance.choice(SPLICES)
            case 1:
                del data[at : at + chance.choice((1, 2, 20))]
            case 2:
                data[at : at + 1] = chance.randbytes(1)
            case 3:
                data[at:at] = data[chance.randrange(len(data) + 1) :][: chance.randint(1, 60)]
            case _:
                data[at:at] = chance.choice((b"a", b"9", b"x-a: 1\r\n")) * chance.choice((10, 1000, 20_000))
    return bytes(data)


def cut(chance: random.Random, data: bytes) -> list[bytes]:
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 1, 3, 10))))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


async def pieces(request: Request) -> AsyncIterator[bytes | bytearray]:
    """However many it says will come."""
    while piece := await request.body.read():
        yield piece


async def handler(request: Request) -> Response:
    async def source() -> AsyncIterator[bytes]:
        yield b"abc"
        await asyncio.sleep(0)
        yield b"def"

    if "/read" in request.target:
        return Response(status=200, headers=[], body=b"".join([piece async for piece in pieces(request)]))
    if "/stream" in request.target:
        return Response(status=200, headers=[], body=source())
    return Response(status=200, headers=[], body=b"ok")


def statuses(server: Serving, pieces: list[bytes]) -> list[int]:
    with server.connect() as wire:
        received = b""
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                wire.send(piece)
        with contextlib.suppress(OSError):  # not connected any more
            wire.sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while piece := wire.sock.recv(1 << 18):
                received += piece
    assert received == b"" or received.startswith(b"HTTP/1.1 ")
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


@pytest.mark.parametrize("number", range(4))
def test_hostile_bytes_never_make_the_server_fail(number: int) -> None:
    seed = random.randrange(1 << 32) if number else 11984834
    print(f"seed {seed}")
    chance = random.Random(seed)
    limits = HttpLimits(
        max_pipelined=2, max_header_bytes=8192, idle_seconds=1, header_seconds=1, body_stall_seconds=1, linger_seconds=1
    )
    with serving(handler, limits=limits) as server:
        for _ in range(150):
            data = mutated(chance)
            assert set(statuses(server, cut(chance, data))) <= {100, 200, 400, 405, 408, 414, 431}, data
        assert server.ask(request("PUT", "/read", body=b"still here")).body == b"still here"


class Understood:
    """What the parser made of some bytes, without a socket."""

    peer = "peer"
    secure = False
    backlog = 0

    def __init__(self, pieces: list[bytes]) -> None:
        self._requests: list[ReceivedRequest] = []
        self._refused: int | None = None
        self._parser = RequestParser(self, HttpLimits())
        for piece in pieces:
            while piece and not self._parser.stopped:
                piece = self._receive(piece)

    def _receive(self, piece: bytes) -> bytes:
        """As a connection does: into the parser's buffer when it wants that. What did not fit is returned."""
        if not self._parser.wants_buffer:
            self._parser.feed(piece)
            return b""
        space = self._parser.buffer_space
        size = min(len(space), len(piece))
        space[:size] = piece[:size]
        self._parser.buffer_filled(size)
        return piece[size:]

    def accept(self, received: ReceivedRequest) -> None:
        self._requests.append(received)

    def refuse(self, refusal: Refusal) -> None:
        self._refused = refusal.status
        self._parser.stop()

    def body_awaited(self, body: IncomingBody) -> None:
        raise AssertionError

    def body_consumed(self) -> None:
        pass

    def summary(self) -> list[object]:
        """Which fault of a target that is too long and also not valid is found first (414 or 400) depends on the packets."""
        refused = 400 if self._refused == 414 else self._refused
        requests = [(e.request.method, e.request.target, e.request.raw_headers, e.keep_alive) for e in self._requests]
        bodies = [b"".join(e.body._pieces) for e in self._requests]
        ended = [e.body.ended for e in self._requests]
        if self._parser._buffer is not None:
            bodies[-1] += self._parser._buffer[: self._parser._filled]
        return [requests, bodies, ended, refused, self._parser.in_head]


def test_a_body_holds_no_more_memory_than_has_come_of_it() -> None:
    head = request("PUT", "/read", f"Content-Length: {1 << 40}")
    for sent in (0, 1, 100_000, 300_000, 5_000_000):
        parser = Understood([head, bytes(sent)])._parser
        assert parser.wants_buffer is (sent >= 300_000)
        assert not parser.wants_buffer or len(parser.buffer_space) <= min(sent, 1 << 20)
    assert len(parser.buffer_space) == parser_module._MIN_BUFFER_BYTES  # no handler has read what was received


@given(st.randoms(use_true_random=False))
@settings(max_examples=400, deadline=None)
def test_how_bytes_are_cut_into_packets_does_not_change_what_they_mean(chance: random.Random) -> None:
    data = mutated(chance)
    whole = Understood([data]).summary()
    with patch.object(parser_module, "_MIN_BUFFER_BYTES", chance.choice((1, 4, parser_module._MIN_BUFFER_BYTES))):
        assert Understood(cut(chance, data)).summary() == whole
        if len(data) < 3000:
            assert Understood([data[i : i + 1] for i in range(len(data))]).summary() == whole
