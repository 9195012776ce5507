"""Writes responses to the transport of one connection, with back-pressure.

A small response is one write and may wait for those of other connections (`response_batcher.py`). A streamed body is written
piece by piece, or by the kernel when it is stored in files (`sendfile.py`).
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import closing
from time import monotonic
from typing import Any, cast

from verditer.rest.http.message import ClientGone, FileBody, FilePart, Response
from verditer.rest.http.parser import ReceivedRequest
from verditer.rest.http.response_batcher import ResponseBatcher
from verditer.rest.http.sendfile import SENDFILE_AVAILABLE, SocketFileSender
from verditer.rest.http.wire import LAST_CHUNK, Refusal, framing_lines, response_head

logger = logging.getLogger("verditer")

_WRITE_HIGH_WATER = 1024 * 1024
_SENT_WITH_HEAD = 64 * 1024  # a body up to this size is appended to its head: one buffer, one system call
_WITHOUT_BODY = (204, 304)


class ResponseWriter:
    def __init__(self, transport: asyncio.Transport, batcher: ResponseBatcher, *, secure: bool) -> None:
        transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        self.is_paused = False  # the transport's buffer, or the socket's, is full
        self.held = b""  # a response that waits for others; it is written before anything else happens on this connection
        self._transport = transport
        self._batcher = batcher
        self._secure = secure
        self._loop = asyncio.get_running_loop()
        self._drained: asyncio.Future[None] | None = None
        self._lost = False
        self._unwritten_bytes = 0
        self._progress_at = 0.0  # when the number of unwritten bytes last changed

    # Events of the transport.

    def pause(self) -> None:
        self.is_paused = True
        self._progress_at = monotonic()

    def resume(self) -> None:
        self.is_paused = False
        self._wake()

    def connection_lost(self) -> None:
        self._lost = True
        self.held = b""
        self._wake()

    # Progress, for the time limits.

    def has_progressed(self, now: float) -> bool:
        """Whether bytes were written since the last call."""
        unwritten_bytes = self._transport.get_write_buffer_size()
        if unwritten_bytes == self._unwritten_bytes:
            return False
        self._unwritten_bytes = unwritten_bytes
        self._progress_at = now
        return True

    def stalled_seconds(self, now: float) -> float:
        """For how long the client has accepted no byte, while there were bytes to send."""
        return now - self._progress_at if self._unwritten_bytes > 0 or self.is_paused else 0.0

    # Sending.

    def flush(self) -> None:
        if self.held:
            response, self.held = self.held, b""
            self._transport.write(response)

    def send_refusal(self, refusal: Refusal) -> None:
        response = refusal.response()
        body = cast(bytes, response.body)
        framing = framing_lines(response.status, len(body), http_1_0=False, close=True)
        self._transport.write(response_head(response, framing) + body)

    async def send(self, received: ReceivedRequest, response: Response, *, close: bool, may_hold: bool) -> None:
        """Write the response. It is held for a batch only if `may_hold`: nothing else is about to be written or closed."""
        body, length = response.body, response.length
        head_only = received.request.method == "HEAD"
        if isinstance(body, bytes) and not (head_only and length is not None):
            length = len(body)
        head = response_head(response, framing_lines(response.status, length, http_1_0=received.http_1_0, close=close))
        without_body = head_only or response.status in _WITHOUT_BODY
        if isinstance(body, bytes):
            self._send_bytes(head, b"" if without_body else body, may_hold=may_hold)
        else:
            self._transport.write(head)
            if without_body:
                await close_body(response)
            else:
                await self._stream(body, length, chunked=length is None and not received.http_1_0)
        if self.is_paused:
            await self._wait_until_writable()

    def _send_bytes(self, head: bytes, body: bytes, *, may_hold: bool) -> None:
        if len(body) > _SENT_WITH_HEAD:
            self._transport.writelines((head, body))
        elif may_hold and not self.is_paused and self._batcher.is_batching:
            self.held = head + body
            self._batcher.hold(self)
        else:
            self._transport.write(head + body)

    async def _stream(self, body: AsyncIterator[bytes], length: int | None, *, chunked: bool) -> None:
        """Every failure aborts the connection: the client sees a truncated body, never one that looks complete."""
        source: AsyncIterator[bytes | FilePart] = body
        if SENDFILE_AVAILABLE and not self._secure and not chunked and isinstance(body, FileBody):
            source = body.parts()
        sent_bytes = 0
        try:
            async for piece in source:
                sent_bytes += len(piece) if isinstance(piece, bytes) else piece.left
                if self._lost or (length is not None and sent_bytes > length):
                    break
                await self._send_piece(piece, chunked=chunked)
            if chunked and not self._lost:
                self._transport.write(LAST_CHUNK)
            if length is not None and sent_bytes != length and not self._lost:
                raise ValueError(f"The response has {sent_bytes} bytes instead of {length}.")
        except ClientGone:
            self._transport.abort()
        except Exception:
            logger.exception("a response was cut off after %s bytes", sent_bytes)
            self._transport.abort()
        finally:
            await _close(source)

    async def _send_piece(self, piece: bytes | FilePart, *, chunked: bool) -> None:
        if not isinstance(piece, bytes):
            await self._send_file(piece)
        elif not chunked:
            self._transport.write(piece)
        elif piece:
            self._transport.writelines((b"%x\r\n" % len(piece), piece, b"\r\n"))
        if self.is_paused:
            await self._wait_until_writable()

    async def _send_file(self, file: FilePart) -> None:
        """By sendfile, which bypasses the transport: the transport's buffer has to be empty first."""
        self._transport.set_write_buffer_limits(high=0)
        if self.is_paused:
            await self._wait_until_writable()
        if self._lost or self._transport.is_closing():
            return
        with closing(SocketFileSender(self._transport)) as sender:
            while file.left:
                await file.copy(sender.send)
                if sender.full:
                    await self._wait_for_socket(sender)
                if self._lost:
                    return
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)

    async def _wait_for_socket(self, sender: SocketFileSender) -> None:
        """The writer counts as paused meanwhile, so the time limit for a client that does not read applies."""
        self.pause()
        self._loop.add_writer(sender.descriptor, self.resume)
        try:
            await self._wait_until_writable()
        finally:
            self._loop.remove_writer(sender.descriptor)

    async def _wait_until_writable(self) -> None:
        if not self._lost:
            self._drained = self._loop.create_future()
            await self._drained

    def _wake(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)


async def close_body(response: Response | None) -> None:
    """Close the body of a response that is not sent: generators hold files and locks until they are closed."""
    if response is not None and not isinstance(response.body, bytes):
        await _close(response.body)


async def _close(source: AsyncIterator[Any]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()
