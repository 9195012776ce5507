"""One HTTP/1.1 connection: its requests go to the handler one at a time, and the answers leave in order.

`reader.py` turns bytes into requests, `wire.py` answers into bytes; between them this file decides when to read, when to
write and when to close. A handler starts when the head of its request is complete and is never cancelled by its client.
"""

import asyncio
import logging
import types
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import closing
from functools import partial
from time import monotonic
from typing import Any, Protocol, cast

from verditer.rest.body import IncomingBody
from verditer.rest.departures import Departures
from verditer.rest.landing import Landing
from verditer.rest.message import ClientGone, FileBody, FilePart, Request, Response
from verditer.rest.outlet import KERNEL_COPIES, Outlet
from verditer.rest.reader import Exchange, RequestReader
from verditer.rest.wire import CONTINUE, LAST_CHUNK, HttpLimits, Refusal, framing_lines, response_head

Handler = Callable[[Request], Awaitable[Response]]

log = logging.getLogger(__name__)

_WRITE_HIGH_WATER = 1024 * 1024
_SENT_WITH_HEAD = 64 * 1024  # a body up to here is copied behind its head: one buffer, one system call
_WITHOUT_BODY = (204, 304)


class Server(Protocol):
    """`HttpServer`, as far as a connection knows it."""

    handler: Handler
    limits: HttpLimits
    departures: Departures
    stopping: bool

    def admit(self, connection: "HttpConnection") -> bool: ...
    def forget(self, connection: "HttpConnection") -> None: ...


class HttpConnection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.peer = ""
        self.secure = False
        self.task: asyncio.Future[Any] | None = None  # what an answer waits for, or runs in
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._reader = RequestReader(self, server.limits)
        self._current: Exchange | None = None
        self._accepted: Exchange | None = None  # the current one, while the bytes it came with are still being read
        self._pending: deque[Exchange] = deque()
        self._refusal: Refusal | None = None  # given after the answers to everything pending
        self._departures = server.departures
        self._unsent = b""  # an answer that waits for others; it leaves before anything else happens here
        self._drained: asyncio.Future[None] | None = None
        self._lingering = False
        self._lost = False
        self._eof = False
        self._reading_paused = False
        self._writing_paused = False
        self._since = monotonic()  # when the present wait began: for bytes, for the end
        self._written_since = 0.0  # when the write buffer last became smaller
        self._unwritten_bytes = 0

    # The transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        address = transport.get_extra_info("peername")
        self.peer = str(address[0]) if address else ""
        self.secure = transport.get_extra_info("ssl_object") is not None
        if not self._server.admit(self):
            self._reader.stop()
            if self._server.stopping:  # it came in the last moment: to its client, as if in the moment after
                self._transport.abort()
                return
            self._tell(Refusal(503, "ServerBusy", "The server has too many connections. Please retry your request."))
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._reader.deaf:
            return
        if self._unsent:
            self.depart()
        self._since = monotonic()
        self._departures.arrival(self._since)
        try:
            self._reader.feed(data)
        finally:
            exchange, self._accepted = self._accepted, None
            if exchange is not None:
                self._start_now(exchange)
        if self._reader.arriving is not None:
            self._balance_reading()
            if self._reader.has_room:
                self._have_read_by(Landing(self, self._reader))
        elif self._pending or self._reading_paused:
            self._balance_reading()
        self._departures.arrived()

    def landed(self, count: int) -> None:
        """The same for bytes of a large body, which are where they belong already."""
        if not self._reader.deaf:
            self._since = monotonic()
            self._reader.landed(count)
            self._balance_reading()
        if self._reader.deaf or not self._reader.has_room:
            self._have_read_by(self)

    def _have_read_by(self, protocol: asyncio.BaseProtocol) -> None:
        """The transport looks at who it is only when it begins to read."""
        if self._lost or self._transport.is_closing():
            return
        self._transport.pause_reading()
        self._transport.set_protocol(protocol)
        if not self._reading_paused:
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """A client may close its sending half and still wait for the answer to what it sent."""
        self._eof = True
        self.depart()
        if self._reader.arriving is not None:
            self._reader.arriving.body.fail()
        return self._current is not None and not self.secure

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._unsent = b""
        if self._reader.arriving is not None:
            self._reader.arriving.body.fail()
        self._pending.clear()
        self._wake_writer()
        if self._current is None:
            self._server.forget(self)

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._written_since = monotonic()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._wake_writer()

    # The reader and the bodies call.

    @property
    def backlog(self) -> int:
        return len(self._pending)

    def accept(self, exchange: Exchange) -> None:
        if self._current is None:
            self._current = self._accepted = exchange
        else:
            self._pending.append(exchange)

    def refuse(self, refusal: Refusal) -> None:
        """Answers behind everything accepted so far, then closes."""
        self._refusal = refusal
        if self._reader.arriving is not None:
            self._reader.arriving.refusal = refusal
            self._reader.arriving.body.fail()
        self._reader.stop()
        if self._current is None:
            self._tell(refusal)
            self._close(clean=False)

    def _tell(self, refusal: Refusal) -> None:
        response = refusal.response()
        body = cast(bytes, response.body)
        self._transport.write(
            response_head(response, framing_lines(response.status, len(body), http_1_0=False, close=True)) + body
        )

    def body_wanted(self, body: IncomingBody) -> None:
        self._since = monotonic()
        if body.expected and body.received == 0 and not self._lost:
            self._transport.write(CONTINUE)
        body.expected = False

    def body_taken(self) -> None:
        if self._reading_paused:
            self._balance_reading()

    def _balance_reading(self) -> None:
        full = self._reader.full
        if full is self._reading_paused or self._eof or self._lost or self._transport.is_closing():
            return
        self._reading_paused = full
        if full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # Answering.

    def _start_now(self, exchange: Exchange) -> None:
        """Most answers wait for nothing, or once for the store: no task has to be made for them."""
        answer = self._answer(exchange)
        try:
            awaited = answer.send(None)
        except StopIteration:
            return
        if isinstance(awaited, asyncio.Future):
            awaited._asyncio_future_blocking = False  # what a task says to a future that it waits for
            awaited.add_done_callback(partial(self._continue, answer))
            self.task = awaited
        else:
            self.task = self._loop.create_task(_continued(answer, awaited))

    def _continue(self, answer: Coroutine[Any, Any, None], _: "asyncio.Future[Any]") -> None:
        try:
            awaited = answer.send(None)
        except (StopIteration, asyncio.CancelledError):
            return
        self.task = self._loop.create_task(_continued(answer, awaited))

    def _start(self, exchange: Exchange) -> None:
        self._current = exchange
        self.task = self._loop.create_task(self._answer(exchange))

    async def _answer(self, exchange: Exchange) -> None:
        close = True
        try:
            try:
                response: Response | None = await self._server.handler(exchange.request)
            except Exception as problem:
                response = self._apology(exchange, problem)
            if response is None or self._lost:
                self._transport.close()
                await _close_source(response)
            else:
                close = self._must_close(exchange, response)
                if not exchange.body.ended:  # a client may read only after it has sent everything
                    exchange.body.discard()
                    self._balance_reading()
                if not self._send(exchange, response, close):
                    await self._send_rest(exchange, response)
                if self._writing_paused:
                    await self._writable()
        except BaseException:  # half an answer must not be taken for a whole one
            self._transport.abort()
            raise
        finally:
            self._finish(exchange, close)

    def _apology(self, exchange: Exchange, problem: Exception) -> Response | None:
        """What is left to say where the handler gave no answer."""
        if isinstance(problem, ClientGone):
            return exchange.refusal.response() if exchange.refusal is not None else None
        log.error("%s %s failed.", exchange.request.method, exchange.request.target.partition("?")[0], exc_info=problem)
        return Refusal(500, "InternalError", "The server encountered an internal error. Please retry the request.").response()

    def _must_close(self, exchange: Exchange, response: Response) -> bool:
        if not exchange.keep_alive or response.close or exchange.refusal is not None or self._server.stopping:
            return True
        if exchange.http_1_0 and response.length is None and not isinstance(response.body, bytes):
            return True  # the end of the connection is the end of this body
        body = exchange.body
        if body.ended:
            return False
        # A client that saw no 100 Continue may send its body or not, so the bytes that follow would be ambiguous.
        return body.expected or body.length is None or body.length - body.received > self._server.limits.max_drained_body_bytes

    def _send(self, exchange: Exchange, response: Response, close: bool) -> bool:
        """The whole answer, or False where only its head was sent: the rest takes its time."""
        body = response.body
        head_only = exchange.request.method == "HEAD"
        length = response.length
        if isinstance(body, bytes) and not (head_only and length is not None):
            length = len(body)
        head = response_head(response, framing_lines(response.status, length, http_1_0=exchange.http_1_0, close=close))
        if not isinstance(body, bytes):
            self._transport.write(head)
            return False
        if head_only or response.status in _WITHOUT_BODY:
            self._leave(head, close)
        elif len(body) <= _SENT_WITH_HEAD:
            self._leave(head + body, close)
        else:
            self._transport.writelines((head, body))
        return True

    def _leave(self, answer: bytes, close: bool) -> None:
        """At once, unless it may wait for others because nothing comes behind it yet."""
        followed = close or self._pending or self._refusal is not None or self._eof
        if followed or self._writing_paused or not self._departures.gathering:
            self._transport.write(answer)
        else:
            self._unsent = answer
            self._departures.wait(self)

    def depart(self) -> None:
        if self._unsent:
            answer, self._unsent = self._unsent, b""
            self._transport.write(answer)

    async def _send_rest(self, exchange: Exchange, response: Response) -> None:
        if exchange.request.method == "HEAD" or response.status in _WITHOUT_BODY:
            await _close_source(response)
        else:
            assert not isinstance(response.body, bytes)
            length = response.length
            await self._stream(response.body, length, chunked=length is None and not exchange.http_1_0)

    async def _stream(self, body: AsyncIterator[bytes], length: int | None, *, chunked: bool) -> None:
        """Whatever goes wrong here aborts the connection: the client sees a body cut off, never one that looks complete."""
        source: AsyncIterator[bytes | FilePart] = body
        if KERNEL_COPIES and not self.secure and not chunked and isinstance(body, FileBody):
            source = body.parts()
        sent_bytes = 0
        try:
            async for piece in source:
                sent_bytes += len(piece) if isinstance(piece, bytes) else piece.left
                if self._lost or (length is not None and sent_bytes > length):
                    break
                if not isinstance(piece, bytes):
                    await self._copy(piece)
                elif not chunked:
                    self._transport.write(piece)
                elif piece:
                    self._transport.writelines((b"%x\r\n" % len(piece), piece, b"\r\n"))
                if self._writing_paused:
                    await self._writable()
            if chunked and not self._lost:
                self._transport.write(LAST_CHUNK)
            if length is not None and sent_bytes != length and not self._lost:
                raise ValueError(f"The answer has {sent_bytes} bytes instead of {length}.")
        except ClientGone:
            self._transport.abort()
        except Exception:
            log.exception("An answer broke off after %s bytes.", sent_bytes)
            self._transport.abort()
        finally:
            await _close_iterator(source)

    async def _copy(self, file: FilePart) -> None:
        """Past the transport, so its buffer has to be empty first."""
        self._transport.set_write_buffer_limits(high=0)
        if self._writing_paused:
            await self._writable()
        if self._lost or self._transport.is_closing():
            return
        with closing(Outlet(self._transport)) as outlet:
            while file.left:
                await file.copy(outlet.send)
                if outlet.full:
                    await self._room(outlet)
                if self._lost:
                    return
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)

    async def _room(self, outlet: Outlet) -> None:
        """To the time limits, a client that does not read is the same whoever fills its socket."""
        self.pause_writing()
        self._loop.add_writer(outlet.descriptor, self.resume_writing)
        try:
            await self._writable()
        finally:
            self._loop.remove_writer(outlet.descriptor)

    async def _writable(self) -> None:
        if not self._lost:
            self._drained = self._loop.create_future()
            await self._drained

    def _wake_writer(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _finish(self, exchange: Exchange, close: bool) -> None:
        self._current = self.task = None
        self._since = self._reader.head_since = monotonic()  # a next head has its full time, however long this answer took
        if self._lost:
            self._server.forget(self)
        elif self._transport.is_closing():
            pass  # connection_lost follows
        elif close:
            self._close(clean=exchange.body.ended and not exchange.keep_alive)
        else:
            self._proceed()

    def _proceed(self) -> None:
        if self._pending:
            self._start(self._pending.popleft())
            self._reader.resume()
        elif self._refusal is not None:
            self.refuse(self._refusal)
        elif self._eof:
            self._transport.close()
        if self._reading_paused:
            self._balance_reading()

    # Closing.

    def _close(self, *, clean: bool) -> None:
        """A socket closed over unread bytes is reset and takes the answer with it, so the client's own end is awaited."""
        self._since = monotonic()
        self._reader.stop()
        self._pending.clear()
        if clean or self._eof or self._server.stopping:
            self._transport.close()
            return
        self._lingering = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._balance_reading()

    def shut_down(self) -> None:
        """The server stops: an idle connection closes at once, a busy one behind its answer."""
        self.depart()
        if self._current is None:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def enforce_time_limits(self, now: float) -> None:
        """Called every now and then by the server: one clock for all connections instead of a timer for each request."""
        limits = self._server.limits
        waited = now - self._since
        arriving = self._reader.arriving
        if self._writing_paused or self._lingering or self._transport.is_closing():
            self._enforce_progress(now)
        elif self._current is not None:
            if arriving is self._current and arriving.body.waiting and waited > limits.body_stall_seconds:
                self.refuse(Refusal(408, "RequestTimeout", "The request body did not arrive in time."))
        elif self._reader.in_head:
            if now - self._reader.head_since > limits.header_seconds:
                self.refuse(Refusal(408, "RequestTimeout", "The request headers did not arrive in time."))
        elif waited > (limits.idle_seconds if arriving is None else limits.body_stall_seconds):
            self._transport.close()

    def _enforce_progress(self, now: float) -> None:
        unwritten_bytes = self._transport.get_write_buffer_size()
        if unwritten_bytes != self._unwritten_bytes:
            self._unwritten_bytes = unwritten_bytes
            self._written_since = now
            return
        waiting = unwritten_bytes > 0 or self._writing_paused
        stalled = waiting and now - self._written_since > self._server.limits.write_stall_seconds
        if stalled or (self._lingering and now - self._since > self._server.limits.linger_seconds):
            self._transport.abort()


async def _continued(coroutine: Coroutine[Any, Any, None], awaited: Any) -> None:
    """The rest of a coroutine that was run up to its first wait."""
    await _driven(coroutine, awaited)


@types.coroutine
def _driven(coroutine: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    try:
        while True:
            try:
                value = yield awaited
            except BaseException as error:
                awaited = None  # it knows the error, whose traceback knows us: a circle
                awaited = coroutine.throw(error)
            else:
                awaited = coroutine.send(value)
    except StopIteration:
        return


async def _close_source(response: Response | None) -> None:
    if response is not None and not isinstance(response.body, bytes):
        await _close_iterator(response.body)


async def _close_iterator(source: AsyncIterator[Any]) -> None:
    """Generators hold files and leases of their own until they are closed."""
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()
