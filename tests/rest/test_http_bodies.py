"""Bodies both ways: streamed, bounded in memory, complete or visibly cut off."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator

import pytest

from tests.rest.http_wire import PATIENCE_SECONDS, Wire, echo, pace, request, serving
from verditer.core.errors import StorageError
from verditer.rest.http.message import ClientGone, Request, Response
from verditer.rest.http.server import Handler, HttpLimits
from verditer.rest.statuses import STATUS

__all__ = ["pace"]  # a fixture
pytestmark = pytest.mark.usefixtures("pace")

MIB = 1024 * 1024
CONTINUED = request("PUT", "/", "Expect: 100-continue", "Content-Length: 5")


async def refuse(_: Request) -> Response:
    return Response(status=403, headers=[], body=b"no")


def streaming(pieces: list[bytes], *, length: int | None = None, failure: Exception | None = None) -> Handler:
    async def source() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
        if failure is not None:
            raise failure

    async def handler(_: Request) -> Response:
        return Response(status=200, headers=[], body=source(), length=length)

    return handler


# --- request bodies ---


@pytest.mark.parametrize("size", [1, 70_000, 512 * 1024, MIB + 1, 3 * MIB])
@pytest.mark.parametrize("piece_bytes", [1 << 16, 1 << 20])
def test_a_body_of_known_length_arrives_whole(size: int, piece_bytes: int) -> None:
    body = bytes(range(251)) * (size // 251 + 1)
    data = request("PUT", "/", body=body[:size]) + request("GET", "/next")
    with serving(echo) as server, server.connect() as wire:
        for start in range(0, len(data), piece_bytes):
            wire.send(data[start : start + piece_bytes])
        assert wire.answer().body == body[:size]
        assert wire.answer().header("x-target") == "/next"


@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 20])
def test_a_chunked_body_arrives_whole(piece_bytes: int) -> None:
    data = request("PUT", "/", "Transfer-Encoding: Chunked") + b"3\r\nabc\r\nA;name=value\r\n0123456789\r\n0\r\nx-t: 1\r\n\r\n"
    data += request("GET", "/next")
    with serving(echo) as server, server.connect() as wire:
        for start in range(0, len(data), piece_bytes):
            wire.send(data[start : start + piece_bytes])
        answer = wire.answer()
        assert answer.body == b"abc0123456789"
        assert answer.header("got-x-t") is None
        assert wire.answer().header("x-target") == "/next"


@pytest.mark.parametrize(
    ("lines", "body", "length"),
    [
        ([], b"", 0),
        (["Content-Length: 0"], b"", 0),
        (["Content-Length: 3"], b"abc", 3),
        (["Transfer-Encoding: chunked"], b"0\r\n\r\n", None),
    ],
)
def test_the_handler_knows_the_length_before_it_reads(lines: list[str], body: bytes, length: int | None) -> None:
    lengths: list[int | None] = []

    async def bounded_cache(request: Request) -> Response:
        lengths.append(request.body.length)
        return Response(status=200, headers=[])

    with serving(bounded_cache) as server:
        server.ask(request("PUT", "/", *lines) + body)
    assert lengths == [length]


def test_the_handler_starts_before_the_body_comes() -> None:
    with serving(refuse) as server, server.connect() as wire:
        assert wire.send(request("PUT", "/", "Content-Length: 5")).answer().status == 403


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        ("Content-Length: 11", b""),
        ("Transfer-Encoding: chunked", b"b\r\n01234567890\r\n"),
        ("Transfer-Encoding: chunked", b"b\r\n01234567890\r\n0\r\n\r\n"),
    ],
)
def test_a_body_past_the_limit_is_refused_as_soon_as_it_is_known(framing: str, body: bytes) -> None:
    async def reads_ten(request: Request) -> Response:
        try:
            await request.body.read_all(10)
        except StorageError as error:
            return Response(status=STATUS[error.code.error_class], headers=[])
        return Response(status=200, headers=[])

    with serving(reads_ten) as server:
        assert server.ask(request("PUT", "/", framing) + body).status == 413


def test_a_handler_that_does_not_read_holds_the_client_back() -> None:
    go = threading.Event()

    async def waits(request: Request) -> Response:
        await asyncio.to_thread(go.wait, PATIENCE_SECONDS)
        size = 0
        while piece := await request.body.read():
            size += len(piece)
            assert len(piece) <= 2 * MIB
        return Response(status=200, headers=[("x-size", str(size))])

    with serving(waits) as server, server.connect() as wire:
        wire.send(request("PUT", "/", f"Content-Length: {64 * MIB}"))
        sent = wire.send_until_held_back(b"x" * (64 * MIB))
        assert sent < 32 * MIB  # what the buffers of two sockets and the connection hold
        go.set()
        wire.send(b"x" * (64 * MIB - sent))
        assert wire.answer().header("x-size") == str(64 * MIB)


def test_100_continue_is_sent_when_the_handler_first_reads() -> None:
    with serving(echo) as server, server.connect() as wire:
        assert wire.send(CONTINUED).answer().status == 100
        answer = wire.send(b"hello").answer()
        assert (answer.status, answer.body) == (200, b"hello")
        assert wire.send(request()).answer().status == 200


def test_100_continue_is_left_out_when_the_body_came_anyway() -> None:
    with serving(echo) as server, server.connect() as wire:
        assert wire.send(CONTINUED + b"hello").answer().status == 200


def test_100_continue_is_not_sent_when_the_handler_answers_at_once() -> None:
    """Whether the client now sends its body is for it to say, so the connection cannot be used again."""
    with serving(refuse) as server, server.connect() as wire:
        answer = wire.send(CONTINUED).answer()
        assert (answer.status, answer.header("Connection")) == (403, "close")
        assert wire.ended()


def test_100_continue_is_not_sent_to_http_1_0() -> None:
    with serving(echo) as server, server.connect() as wire:
        wire.send(request("PUT", "/", "Expect: 100-continue", "Content-Length: 5", version="1.0"))
        assert wire.silent(0.05)
        assert wire.send(b"hello").answer().status == 200


def test_a_short_unread_body_is_swallowed() -> None:
    with serving(refuse) as server, server.connect() as wire:
        answer = wire.send(request("PUT", "/", "Content-Length: 60000")).answer()
        assert (answer.status, answer.header("Connection")) == (403, None)
        assert wire.send(b"x" * 60_000 + request()).answer().status == 403
        assert wire.send(request("PUT", "/", "Transfer-Encoding: chunked") + b"0\r\n\r\n").answer().header("Connection") is None


@pytest.mark.parametrize("framing", [f"Content-Length: {32 * MIB}", "Transfer-Encoding: chunked"])
def test_a_client_that_sends_a_long_unread_body_still_sees_the_answer(framing: str) -> None:
    with serving(refuse) as server, server.connect() as wire:
        wire.send(request("PUT", "/", framing))
        if framing.startswith("Content"):
            wire.send(b"x" * (32 * MIB))
        else:
            for _ in range(32):
                wire.send(b"100000\r\n" + b"x" * MIB + b"\r\n")
        answer = wire.answer()
        assert (answer.status, answer.header("Connection"), answer.body) == (403, "close", b"no")
        assert wire.ended()


def test_a_refused_client_that_never_stops_sending_is_reset() -> None:
    with serving(refuse, limits=HttpLimits(linger_seconds=0.1)) as server, server.connect() as wire:
        wire.send(request("PUT", "/", f"Content-Length: {1 << 40}"))
        with pytest.raises(ConnectionError):
            _send_without_end(wire)


def _send_without_end(wire: Wire) -> None:
    while True:
        wire.send(b"x" * 1000)


BROKEN_CHUNKS = {
    "no number": b"zz\r\n",
    "nothing": b"\r\n",
    "a sign": b"+3\r\nabc\r\n0\r\n\r\n",
    "a prefix": b"0x3\r\nabc\r\n0\r\n\r\n",
    "a blank": b"3 \r\nabc\r\n0\r\n\r\n",
    "an endless number": b"11111111111111111\r\nabc\r\n0\r\n\r\n",
    "a bare line feed": b"3\nabc\r\n0\r\n\r\n",
    "a bare line feed at the end": b"3\r\nabc\n0\r\n\r\n",
    "a longer chunk than it says": b"3\r\nabcd\r\n0\r\n\r\n",
    "a shorter chunk than it says": b"3\r\nab\r\n0\r\n\r\n",
    "an extension that is none": b"3;x=y z\r\nabc\r\n0\r\n\r\n",
    "a trailer that is none": b"0\r\nabc\r\n\r\n",
    "a trailer about the length": b"0\r\nContent-Length: 3\r\n\r\n",
    "a trailer about the encoding": b"0\r\ntransfer-encoding: chunked\r\n\r\n",
    "a bare line feed behind everything": b"0\r\n\n",
}


@pytest.mark.parametrize("name", BROKEN_CHUNKS)
def test_broken_chunks_are_refused_while_the_handler_reads(name: str) -> None:
    with serving(echo) as server, server.connect() as wire:
        wire.send(request("PUT", "/", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n")
        answer = wire.send(BROKEN_CHUNKS[name]).answer()
        assert (answer.status, answer.header("Connection")) == (400, "close")
        assert wire.ended()


def test_extensions_and_trailers_are_ignored() -> None:
    with serving(echo) as server, server.connect() as wire:
        wire.send(request("PUT", "/", "Transfer-Encoding: chunked"))
        wire.send(b'3;a;b=c;d="e f"\r\nabc\r\n00A\r\n0123456789\r\n0;last\r\nx-a: 1\r\nExpect: 2\r\n\r\n' + request("GET", "/2"))
        assert (wire.answer().body, wire.answer().header("x-target")) == (b"abc0123456789", "/2")


def test_broken_chunks_behind_a_full_buffer_are_refused_too() -> None:
    go = threading.Event()

    async def waits(request: Request) -> Response:
        await asyncio.to_thread(go.wait, PATIENCE_SECONDS)
        await request.body.read_all(10 * MIB)
        raise AssertionError("the body was broken")

    with serving(waits, limits=HttpLimits(linger_seconds=1000)) as server, server.connect() as wire:
        wire.send(request("PUT", "/", "Transfer-Encoding: chunked") + b"180000\r\n" + b"x" * (3 * MIB // 2) + b"zz\r\n")
        go.set()
        assert wire.answer().status == 400
        assert wire.ended()


@pytest.mark.parametrize("framing", ["Content-Length: 10", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("half", [False, True])
def test_a_body_that_breaks_off_raises_client_gone(framing: str, half: bool) -> None:
    outcome: list[str] = []
    done = threading.Event()

    async def reads(request: Request) -> Response:
        try:
            await request.body.read_all(100)
        except ClientGone:
            outcome.append("gone")
            raise
        finally:
            done.set()
        raise AssertionError("the body was not complete")

    with serving(reads) as server, server.connect() as wire:
        wire.send(request("PUT", "/", framing) + b"3\r\nabc\r\n")
        if half:
            wire.sock.shutdown(socket.SHUT_WR)
        else:
            wire.sock.close()
        assert done.wait(PATIENCE_SECONDS)
        if half:
            assert not _receives_anything(wire)
    assert outcome == ["gone"]


def _receives_anything(wire: Wire) -> bool:
    try:
        return not wire.ended()
    except ConnectionError:
        return False


def test_a_handler_is_not_cancelled_when_its_client_leaves() -> None:
    left, finished = threading.Event(), threading.Event()

    async def commits(request: Request) -> Response:
        await asyncio.to_thread(left.wait, PATIENCE_SECONDS)
        await asyncio.sleep(0.05)
        finished.set()
        return Response(status=201, headers=[])

    with serving(commits) as server:
        with server.connect() as wire:
            wire.send(request("PUT"))
        left.set()
        assert finished.wait(PATIENCE_SECONDS)


# --- response bodies ---


def test_a_streamed_body_of_known_length_is_sent_as_it_is() -> None:
    with serving(streaming([b"abc", b"", b"def"], length=6)) as server, server.connect() as wire:
        answer = wire.send(request()).answer()
        assert answer.headers == [("Content-Length", "6")]
        assert answer.body == b"abcdef"
        assert wire.send(request()).answer().body == b"abcdef"


def test_a_streamed_body_of_unknown_length_is_chunked() -> None:
    with serving(streaming([b"abc", b"", b"d" * 100_000])) as server, server.connect() as wire:
        for _ in range(2):
            answer = wire.send(request()).answer()
            assert answer.headers == [("Transfer-Encoding", "chunked")]
            assert answer.body == b"abc" + b"d" * 100_000


@pytest.mark.parametrize("size", [0, 1000, 65_536, 65_537, 5 * MIB])
def test_a_body_of_bytes_is_sent_whole(size: int) -> None:
    async def handler(_: Request) -> Response:
        return Response(status=200, headers=[], body=b"x" * size)

    with serving(handler) as server, server.connect() as wire:
        assert wire.send(request() * 2).answer().body == b"x" * size
        assert wire.answer().body == b"x" * size


@pytest.mark.parametrize("length", [None, 100])
def test_a_body_whose_source_fails_is_cut_off(length: int | None) -> None:
    handler = streaming([b"abc"], length=length, failure=RuntimeError("disk"))
    with serving(handler, errors=True) as server, pytest.raises((EOFError, ConnectionError)):
        server.ask(request())
    assert [record.getMessage() for record in server.errors] == ["a response was cut off after 3 bytes"]


@pytest.mark.parametrize("pieces", [[b"abc"], [b"abcd", b"efgh"]])
def test_a_body_of_another_length_than_promised_is_cut_off(pieces: list[bytes]) -> None:
    with serving(streaming(pieces, length=7), errors=True) as server, pytest.raises((EOFError, ConnectionError)):
        server.ask(request())
    assert len(server.errors) == 1


def test_a_client_that_does_not_read_holds_the_source_back_and_one_that_leaves_stops_it() -> None:
    produced: list[int] = []
    closed = threading.Event()

    async def source() -> AsyncIterator[bytes]:
        try:
            while True:
                produced.append(MIB)
                yield b"x" * MIB
        finally:
            closed.set()

    async def handler(_: Request) -> Response:
        return Response(status=200, headers=[], body=source(), length=1 << 40)

    with serving(handler) as server:
        with server.connect(receive_buffer_bytes=65_536) as wire:
            wire.send(request()).answer(head_only=True)
            assert not closed.wait(0.2)
            assert sum(produced) < 16 * MIB
            assert len(wire.sock.recv(MIB)) > 0
        assert closed.wait(PATIENCE_SECONDS)


def test_a_client_that_stops_reading_is_cut_off() -> None:
    closed = threading.Event()

    async def source() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * MIB
        finally:
            closed.set()

    async def handler(_: Request) -> Response:
        return Response(status=200, headers=[], body=source())

    with serving(handler, limits=HttpLimits(write_stall_seconds=0.1)) as server, server.connect() as wire:
        wire.send(request())
        assert closed.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("streamed", [False, True])
def test_head_has_the_length_of_get_and_no_body(streamed: bool) -> None:
    closed: list[bool] = []

    class Source:
        def __aiter__(self) -> "Source":
            return self

        async def __anext__(self) -> bytes:
            raise AssertionError("nobody asked for the body")

        async def aclose(self) -> None:
            closed.append(True)

    async def handler(_: Request) -> Response:
        return Response(status=200, headers=[("ETag", "1")], body=Source() if streamed else b"", length=1234)

    with serving(handler) as server, server.connect() as wire:
        for _ in range(2):
            answer = wire.send(request("HEAD")).answer(head_only=True)
            assert answer.headers == [("ETag", "1"), ("Content-Length", "1234")]
        assert wire.silent(0.02)
    assert closed == [True, True] * streamed


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_never_have_a_body(status: int) -> None:
    async def handler(_: Request) -> Response:
        return Response(status=status, headers=[("ETag", "1")], body=b"surprise" if status == 204 else b"")

    with serving(handler) as server, server.connect() as wire:
        for _ in range(2):
            assert wire.send(request()).answer().headers == [("ETag", "1")]
        assert wire.silent(0.02)
