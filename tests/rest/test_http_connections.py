"""The life of a connection: kept alive, pipelined, timed out, refused, closed, and over TLS."""

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from tests.rest.copies import wait_for
from tests.rest.http_wire import PATIENCE_SECONDS, Wire, echo, pace, request, serving
from verditer.rest.http.connection import HttpConnection
from verditer.rest.http.message import Request, Response
from verditer.rest.http.server import HttpLimits, HttpServer
from verditer.serving import tls

__all__ = ["pace"]  # a fixture
pytestmark = pytest.mark.usefixtures("pace")


class Gate:
    """A handler that answers when told to, and says what it has begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.entered = threading.Event()
        self.open = threading.Event()

    async def handler(self, request: Request) -> Response:
        self.begun.append(request.target)
        self.entered.set()
        await asyncio.to_thread(self.open.wait, PATIENCE_SECONDS)
        return Response(status=200, headers=[], body=request.target.encode())


def test_a_connection_serves_one_request_after_another() -> None:
    with serving(echo) as server, server.connect() as wire:
        for number in range(3):
            answer = wire.send(request("PUT", f"/{number}", body=b"abc")).answer()
            assert (answer.header("x-target"), answer.header("Connection")) == (f"/{number}", None)


def test_a_client_may_ask_to_close() -> None:
    with serving(echo) as server, server.connect() as wire:
        answer = wire.send(request("GET", "/1", "Connection: close") + request("GET", "/2")).answer()
        assert (answer.header("x-target"), answer.header("Connection")) == ("/1", "close")
        assert wire.ended()


def test_a_handler_may_ask_to_close() -> None:
    async def handler(_: Request) -> Response:
        return Response(status=200, headers=[], close=True)

    with serving(handler) as server, server.connect() as wire:
        assert wire.send(request()).answer().header("Connection") == "close"
        assert wire.ended()


def test_http_1_0_closes_unless_asked_to_stay() -> None:
    with serving(echo) as server:
        with server.connect() as wire:
            assert wire.send(b"GET / HTTP/1.0\r\n\r\n").answer().header("Connection") == "close"
            assert wire.ended()
        with server.connect() as wire:
            for _ in range(2):
                answer = wire.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").answer()
                assert answer.header("Connection") == "keep-alive"


def test_http_1_0_gets_no_chunks() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"def"

    async def handler(_: Request) -> Response:
        return Response(status=200, headers=[], body=source())

    with serving(handler) as server:
        answer = server.ask(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert (answer.headers, answer.body) == ([("Connection", "close")], b"abcdef")


@pytest.mark.parametrize("piece_bytes", [11, 1 << 20])
def test_pipelined_requests_are_answered_in_order(piece_bytes: int) -> None:
    data = b"".join(request("PUT", f"/{number}", body=b"x" * number) for number in range(100))
    with serving(echo, limits=HttpLimits(max_pipelined=4)) as server, server.connect() as wire:
        for start in range(0, len(data), piece_bytes):
            wire.send(data[start : start + piece_bytes])
        for number in range(100):
            answer = wire.answer()
            assert (answer.header("x-target"), len(answer.body)) == (f"/{number}", number)


def test_one_request_of_a_connection_runs_at_a_time() -> None:
    gate = Gate()
    with serving(gate.handler) as server, server.connect() as wire:
        wire.send(request("GET", "/1") + request("GET", "/2"))
        assert gate.entered.wait(PATIENCE_SECONDS)
        assert wire.silent(0.05)
        assert gate.begun == ["/1"]
        gate.open.set()
        assert [wire.answer().body, wire.answer().body] == [b"/1", b"/2"]


def test_a_client_that_pipelines_without_end_is_held_back() -> None:
    gate = Gate()
    with serving(gate.handler, limits=HttpLimits(max_pipelined=4)) as server, server.connect() as wire:
        data = request("GET", "/" + "a" * 1000) * 64_000
        assert wire.send_until_held_back(data) < len(data) / 2
        assert len(gate.begun) == 1
        gate.open.set()
        for _ in range(3000):
            assert wire.answer().status == 200


def test_a_bad_request_behind_good_ones_is_refused_in_its_turn() -> None:
    gate = Gate()
    with serving(gate.handler) as server, server.connect() as wire:
        wire.send(request("GET", "/1") + request("GET", "/2") + b"nonsense\r\n\r\n" + request("GET", "/3"))
        assert gate.entered.wait(PATIENCE_SECONDS)
        gate.open.set()
        assert [wire.answer().status for _ in range(3)] == [200, 200, 400]
        assert wire.ended()
    assert gate.begun == ["/1", "/2"]


def test_a_client_may_close_its_sending_half_and_still_be_answered() -> None:
    with serving(echo) as server, server.connect() as wire:
        wire.send(request("GET", "/1") + request("PUT", "/2", body=b"abc"))
        wire.sock.shutdown(socket.SHUT_WR)
        assert [wire.answer().header("x-target"), wire.answer().body] == ["/1", b"abc"]
        assert wire.ended()


def test_a_client_may_close_its_sending_half_while_its_answer_is_made() -> None:
    gate = Gate()
    with serving(gate.handler) as server, server.connect() as wire:
        wire.send(request("GET", "/a"))
        assert gate.entered.wait(PATIENCE_SECONDS)
        wire.sock.shutdown(socket.SHUT_WR)
        wait_for(lambda: all(cast(HttpConnection, each)._eof for each in server.server._connections))
        gate.open.set()
        assert wire.answer().body == b"/a"
        assert wire.ended()


def test_blank_lines_before_a_request_are_ignored() -> None:
    with serving(echo) as server, server.connect() as wire:
        assert wire.send(b"\r\n\r\n" + request()).answer().status == 200
        assert wire.send(b"\r\n" + request()).answer().status == 200


# --- time ---


def test_an_idle_connection_is_closed_without_a_word() -> None:
    with serving(echo, limits=HttpLimits(idle_seconds=0.1)) as server:
        with server.connect() as wire:
            assert wire.ended()
        with server.connect() as wire:
            wire.send(request()).answer()
            assert wire.ended()


def test_a_head_that_drips_in_is_timed_out() -> None:
    with serving(echo, limits=HttpLimits(header_seconds=0.1)) as server, server.connect() as wire:
        wire.send(request()).answer()
        wire.send(b"GET / HTTP/1.1\r\n")
        for _ in range(100):
            wire.send(b"x")
            if not wire.silent(0.01):
                break
        answer = wire.answer()
        assert (answer.status, answer.header("Connection")) == (408, "close")
        assert wire.ended()


def test_a_head_is_not_timed_out_for_a_slow_answer_before_it() -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(1.2)
        return Response(status=200, headers=[])

    with serving(slow, limits=HttpLimits(header_seconds=1)) as server, server.connect() as wire:
        following = request("GET", "/2")
        assert wire.send(request() + following[:10]).answer().status == 200
        assert wire.send(following[10:]).answer().status == 200


@pytest.mark.parametrize("framing", ["Content-Length: 10", "Transfer-Encoding: chunked"])
def test_a_body_that_stalls_is_timed_out(framing: str) -> None:
    with serving(echo, limits=HttpLimits(body_stall_seconds=0.1)) as server, server.connect() as wire:
        answer = wire.send(request("PUT", "/", framing) + b"3\r\n").answer()
        assert (answer.status, answer.header("Connection")) == (408, "close")
        assert wire.ended()


def test_a_swallowed_body_that_stalls_costs_the_connection() -> None:
    async def refuse(_: Request) -> Response:
        return Response(status=403, headers=[])

    with serving(refuse, limits=HttpLimits(body_stall_seconds=0.1)) as server, server.connect() as wire:
        assert wire.send(request("PUT", "/", "Content-Length: 10") + b"abc").answer().status == 403
        assert wire.ended()


def test_a_slow_handler_is_not_timed_out() -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(0.4)
        return Response(status=200, headers=[], body=await request.body.read_all(100))

    limits = HttpLimits(idle_seconds=0.1, header_seconds=0.1, body_stall_seconds=0.2)
    with serving(slow, limits=limits) as server:
        assert server.ask(request("PUT", "/", body=b"abc")).body == b"abc"


def test_a_body_has_its_full_time_from_when_it_is_asked_for() -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(1.2)
        return Response(status=200, headers=[], body=await request.body.read_all(100))

    with serving(slow, limits=HttpLimits(body_stall_seconds=1)) as server, server.connect() as wire:
        assert wire.send(request("PUT", "/", "Expect: 100-continue", "Content-Length: 3")).answer().status == 100
        assert wire.silent(0.1)
        assert wire.send(b"abc").answer().body == b"abc"


def test_connections_past_the_limit_are_turned_away() -> None:
    with serving(echo, limits=HttpLimits(max_connections=2)) as server:
        with server.connect() as first, server.connect() as second:
            assert first.send(request()).answer().status == second.send(request()).answer().status == 200
            with server.connect() as third:
                answer = third.answer()
                assert (answer.status, answer.header("x-ms-error-code")) == (503, "ServerBusy")
                assert third.ended()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (status := _status_of_a_new_connection(server.port)) == 503 and time.monotonic() < deadline:
            pass  # the server has not yet noticed that the others left
        assert status == 200


def _status_of_a_new_connection(port: int) -> int:
    with Wire(socket.create_connection(("127.0.0.1", port))) as wire:
        try:
            return wire.send(request()).answer().status
        except ConnectionError:
            return 503


# --- the end ---


def test_stopping_closes_idle_connections_and_lets_a_running_request_finish() -> None:
    gate = Gate()
    with serving(gate.handler) as server, server.connect() as idle, server.connect() as busy:
        busy.send(request("GET", "/1") + request("GET", "/2"))
        assert gate.entered.wait(PATIENCE_SECONDS)
        stopping = asyncio.run_coroutine_threadsafe(server.server.stop(PATIENCE_SECONDS), server.loop)
        assert idle.ended()
        with pytest.raises(ConnectionRefusedError):
            server.connect()
        assert not stopping.done()
        gate.open.set()
        answer = busy.answer()
        assert (answer.body, answer.header("Connection")) == (b"/1", "close")
        assert busy.ended()
        stopping.result(PATIENCE_SECONDS)
    assert gate.begun == ["/1"]


def test_stopping_closes_behind_an_answer_that_is_about_to_leave() -> None:
    async def stops(request: Request) -> Response:
        asyncio.get_running_loop().call_soon(stop_all)  # runs before anything that follows upon the answer
        return Response(status=200, headers=[], body=b"said")

    def stop_all() -> None:
        for connection in server.server._connections:
            connection.shut_down()

    with serving(stops) as server, server.connect() as wire:
        assert wire.send(request()).answer().body == b"said"
        assert wire.ended()


def test_stopping_waits_for_a_handler_whose_client_is_gone() -> None:
    gate = Gate()
    with serving(gate.handler) as server:
        with server.connect() as wire:
            wire.send(request("PUT", "/", body=b"abc"))
            assert gate.entered.wait(PATIENCE_SECONDS)
        stopping = asyncio.run_coroutine_threadsafe(server.server.stop(PATIENCE_SECONDS), server.loop)
        time.sleep(0.05)
        assert not stopping.done()
        gate.open.set()
        stopping.result(PATIENCE_SECONDS)


def test_stopping_cuts_off_what_does_not_finish() -> None:
    async def forever(_: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    with serving(forever) as server, server.connect() as wire:
        wire.send(request())
        assert wire.silent(0.05)
        server.stop(grace_seconds=0.05)
        with contextlib.suppress(ConnectionResetError):
            assert wire.ended()


def test_stopping_waits_for_what_a_handler_that_is_cut_off_has_to_put_in_order() -> None:
    begun, go = threading.Event(), threading.Event()
    ended: list[str] = []

    async def orderly(_: Request) -> Response:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            begun.set()
            await asyncio.to_thread(go.wait, PATIENCE_SECONDS)
            ended.append("in order")
        raise AssertionError

    with serving(orderly) as server, server.connect() as wire:
        wire.send(request())
        assert wire.silent(0.05)
        stopping = asyncio.run_coroutine_threadsafe(server.server.stop(0.05), server.loop)
        assert begun.wait(PATIENCE_SECONDS)
        with pytest.raises(TimeoutError):
            stopping.result(0.1)
        go.set()
        stopping.result(PATIENCE_SECONDS)
        assert ended == ["in order"]


def test_stopping_cuts_off_a_handler_that_has_just_stopped_waiting() -> None:
    """What it waited for was there in the same moment, and it waits for the next thing."""
    first: list[asyncio.Future[None]] = []
    second = threading.Event()

    async def stubborn(_: Request) -> Response:
        first.append(asyncio.get_running_loop().create_future())
        await first[0]
        second.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def cancel(server: HttpServer) -> None:
        first[0].set_result(None)
        await server._cancel_requests()
        assert second.is_set()

    with serving(stubborn) as server, server.connect() as wire:
        wire.send(request())
        assert wire.silent(0.05)
        asyncio.run_coroutine_threadsafe(cancel(server.server), server.loop).result(PATIENCE_SECONDS)
        assert not [connection.task for connection in server.server._connections if connection.task is not None]


def test_stopping_cuts_off_a_handler_that_has_not_begun() -> None:
    """Its task is cancelled in its first step, not before, so the connection is closed and forgotten."""
    begun = threading.Event()

    async def waiting(_: Request) -> Response:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def receive_and_stop(server: HttpServer) -> None:
        [connection] = cast(set[HttpConnection], server._connections)
        connection.data_received(request())
        assert not begun.is_set()
        await server.stop(0)
        await asyncio.sleep(0.01)
        assert not server._connections

    with serving(waiting) as server, server.connect() as wire:
        wait_for(lambda: len(server.server._connections) == 1)
        asyncio.run_coroutine_threadsafe(receive_and_stop(server.server), server.loop).result(PATIENCE_SECONDS)
        assert begun.is_set()
        with contextlib.suppress(ConnectionResetError):
            assert wire.ended()


# --- TLS ---


def test_a_connection_over_tls(tmp_path: Path) -> None:
    cert, key = tls.development_certificate(tmp_path)
    seen: list[Request] = []

    async def bounded_cache(request: Request) -> Response:
        seen.append(request)
        return await echo(request)

    client = ssl.create_default_context(cafile=str(cert))
    with serving(bounded_cache, tls=tls.server_context(cert, key)) as server:
        sock = client.wrap_socket(socket.create_connection(("127.0.0.1", server.port)), server_hostname="localhost")
        with Wire(sock) as wire:
            body = bytes(range(251)) * 12_000
            assert wire.send(request("PUT", "/1", body=body)).answer().body == body
            assert wire.send(request("GET", "/2", "Connection: close")).answer().status == 200
            assert wire.ended()
        assert [request.secure for request in seen] == [True, True]
        with server.connect() as plain:
            plain.send(request())
            with contextlib.suppress(ConnectionError):
                plain.ended()  # an alert or a reset, as OpenSSL likes
        sock = client.wrap_socket(socket.create_connection(("127.0.0.1", server.port)), server_hostname="localhost")
        with Wire(sock) as wire:
            assert wire.send(b"nonsense\r\n\r\n").answer().status == 400
