"""One HTTP/1.1 connection: its requests go to the handler one at a time, and the responses are sent in the same order.

`parser.py` turns bytes into requests and `response_writer.py` writes responses. This module decides when to read, which
request runs and when to close. The handler runs in a task, which starts when the head of its request is complete; a client
that goes away does not cancel it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Protocol, cast

from verditer.rest.http.body import IncomingBody
from verditer.rest.http.body_buffer import BodyBufferProtocol
from verditer.rest.http.message import ClientGone, Request, Response
from verditer.rest.http.parser import ReceivedRequest, RequestParser
from verditer.rest.http.response_batcher import ResponseBatcher
from verditer.rest.http.response_writer import ResponseWriter, close_body
from verditer.rest.http.wire import CONTINUE, HttpLimits, Refusal

Handler = Callable[[Request], Awaitable[Response]]

logger = logging.getLogger("verditer")


class Server(Protocol):
    """The part of `HttpServer` that a connection calls."""

    handler: Handler
    limits: HttpLimits
    response_batcher: ResponseBatcher
    stopping: bool
    draining: bool

    def admit(self, connection: "HttpConnection") -> bool: ...
    def forget(self, connection: "HttpConnection") -> None: ...


class HttpConnection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.peer = ""
        self.secure = False
        self.task: asyncio.Task[None] | None = None  # of the running request
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = RequestParser(self, server.limits)
        self._batcher = server.response_batcher
        self._current: ReceivedRequest | None = None
        self._queue: deque[ReceivedRequest] = deque()  # pipelined behind the current request
        self._refusal: Refusal | None = None  # sent after the responses to everything queued
        self._lingering = False  # the last response was sent, and the client's end is awaited
        self._lost = False
        self._eof = False
        self._reading_paused = False
        self._waiting_since = monotonic()  # for bytes, or for the client to close

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        self.peer = str(address[0]) if address else ""
        self.secure = transport.get_extra_info("ssl_object") is not None
        self._writer = ResponseWriter(self._transport, self._batcher, secure=self.secure)
        if not self._server.admit(self):
            self._parser.stop()
            if self._server.stopping:  # to the client it looks as if the port were closed already
                self._transport.abort()
                return
            self._writer.send_refusal(
                Refusal(503, "ServerBusy", "The server has too many connections. Please retry your request.")
            )
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._parser.stopped:
            return
        if self._writer.held:
            self._writer.flush()
        self._waiting_since = monotonic()
        self._batcher.received(self._waiting_since)
        self._parser.feed(data)
        if self._parser.receiving is not None:
            self._pause_or_resume_reading()
            if self._parser.wants_buffer:
                self._set_protocol(BodyBufferProtocol(self, self._parser))
        elif self._queue or self._reading_paused:
            self._pause_or_resume_reading()
        self._batcher.handled()

    def body_bytes_received(self, count: int) -> None:
        """Called instead of `data_received` while a large body is received into the parser's buffer."""
        if not self._parser.stopped:
            self._waiting_since = monotonic()
            self._parser.buffer_filled(count)
            self._pause_or_resume_reading()
        if self._parser.stopped or not self._parser.wants_buffer:
            self._set_protocol(self)

    def _set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """The transport notices a new protocol only when it starts to read."""
        if self._lost or self._transport.is_closing():
            return
        self._transport.pause_reading()
        self._transport.set_protocol(protocol)
        if not self._reading_paused:
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """A client may close its sending half and still wait for the responses to what it sent."""
        self._eof = True
        self._writer.flush()
        if self._parser.receiving is not None:
            self._parser.receiving.body.fail()
        return self._current is not None and not self.secure

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._parser.receiving is not None:
            self._parser.receiving.body.fail()
        self._queue.clear()
        self._writer.connection_lost()
        if self._current is None:
            self._server.forget(self)

    def pause_writing(self) -> None:
        self._writer.pause()

    def resume_writing(self) -> None:
        self._writer.resume()

    # Called by the parser and by bodies.

    @property
    def backlog(self) -> int:
        return len(self._queue)

    def accept(self, received: ReceivedRequest) -> None:
        if self._current is None:
            self._start(received)
        else:
            self._queue.append(received)

    def refuse(self, refusal: Refusal) -> None:
        """Send the refusal after the responses to everything accepted so far, then close."""
        logger.debug("a request from %s is refused: %d %s %s", self.peer, refusal.status, refusal.code, refusal.message)
        self._refusal = refusal
        if self._parser.receiving is not None:
            self._parser.receiving.refusal = refusal
            self._parser.receiving.body.fail()
        self._parser.stop()
        if self._current is None:
            self._writer.send_refusal(refusal)
            self._close(clean=False)

    def body_awaited(self, body: IncomingBody) -> None:
        self._waiting_since = monotonic()
        if body.expects_continue and body.received == 0 and not self._lost:
            self._transport.write(CONTINUE)
        body.expects_continue = False

    def body_consumed(self) -> None:
        if self._reading_paused:
            self._pause_or_resume_reading()

    def _pause_or_resume_reading(self) -> None:
        full = self._parser.is_full
        if full is self._reading_paused or self._eof or self._lost or self._transport.is_closing():
            return
        self._reading_paused = full
        if full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # Running requests.

    def _start(self, received: ReceivedRequest) -> None:
        self._current = received
        self.task = self._loop.create_task(self._respond(received))

    async def _respond(self, received: ReceivedRequest) -> None:
        close = True
        response: Response | None = None
        try:
            try:
                response = await self._server.handler(received.request)
            except Exception as error:
                response = self._response_to_failure(received, error)
            if response is None or self._lost:
                self._transport.close()
                await close_body(response)
            else:
                close = self._must_close(received, response)
                if not received.body.ended:  # a client may read only after it has sent everything
                    received.body.discard()
                    self._pause_or_resume_reading()
                may_hold = not (close or self._queue or self._refusal is not None or self._eof)
                await self._writer.send(received, response, close=close, may_hold=may_hold)
        except BaseException:  # half a response must not be taken for a whole one
            self._transport.abort()
            raise
        finally:
            if response is not None and response.sent is not None:
                response.sent()
            self._finish(received, close)

    def _response_to_failure(self, received: ReceivedRequest, error: Exception) -> Response | None:
        """None when there is no client to answer."""
        if isinstance(error, ClientGone):
            return received.refusal.response() if received.refusal is not None else None
        logger.error("%s %s failed", received.request.method, received.request.target.partition("?")[0], exc_info=error)
        return Refusal(500, "InternalError", "The server encountered an internal error. Please retry the request.").response()

    def _must_close(self, received: ReceivedRequest, response: Response) -> bool:
        if not received.keep_alive or response.close or received.refusal is not None:
            return True
        if self._server.draining or self._server.stopping:
            return True
        if received.http_1_0 and response.length is None and not isinstance(response.body, bytes):
            return True  # the end of the connection is the end of this body
        body = received.body
        if body.ended:
            return False
        # A client that got no 100 Continue may send its body or not, so the bytes that follow would be ambiguous.
        if body.expects_continue or body.length is None:
            return True
        return body.length - body.received > self._server.limits.max_drained_body_bytes

    def _finish(self, received: ReceivedRequest, close: bool) -> None:
        self._current = self.task = None
        self._waiting_since = self._parser.head_since = monotonic()  # the time limits of the next request start now
        if self._lost:
            self._server.forget(self)
        elif self._transport.is_closing():
            pass  # the transport calls connection_lost next
        elif close:
            self._close(clean=received.body.ended and not received.keep_alive)
        else:
            self._proceed()

    def _proceed(self) -> None:
        if self._queue:
            self._start(self._queue.popleft())
            self._parser.resume()
        elif self._refusal is not None:
            self.refuse(self._refusal)
        elif self._eof:
            self._transport.close()
        if self._reading_paused:
            self._pause_or_resume_reading()

    # Closing. `serving/server.py` calls shut_down, abort and enforce_time_limits.

    def _close(self, *, clean: bool) -> None:
        """A socket that is closed over unread bytes is reset, and the client may lose the response. Unless the close is `clean`,
        only the sending half is closed, and the client's end is awaited."""
        self._waiting_since = monotonic()
        self._parser.stop()
        self._queue.clear()
        if clean or self._eof or self._server.stopping:
            self._transport.close()
            return
        self._lingering = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._pause_or_resume_reading()

    def shut_down(self) -> None:
        self._writer.flush()
        if self._current is None:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def enforce_time_limits(self, now: float) -> None:
        limits = self._server.limits
        waited = now - self._waiting_since
        receiving = self._parser.receiving
        if self._writer.is_paused or self._lingering or self._transport.is_closing():
            self._enforce_progress(now)
        elif self._current is not None:
            if receiving is self._current and receiving.body.waiting and waited > limits.body_stall_seconds:
                self.refuse(Refusal(408, "RequestTimeout", "The request body did not arrive in time."))
        elif self._parser.in_head:
            if now - self._parser.head_since > limits.header_seconds:
                self.refuse(Refusal(408, "RequestTimeout", "The request headers did not arrive in time."))
        elif waited > (limits.idle_seconds if receiving is None else limits.body_stall_seconds):
            self._transport.close()

    def _enforce_progress(self, now: float) -> None:
        if self._writer.has_progressed(now):
            return
        limits = self._server.limits
        stalled = self._writer.stalled_seconds(now) > limits.write_stall_seconds
        if stalled or (self._lingering and now - self._waiting_since > limits.linger_seconds):
            self._transport.abort()
