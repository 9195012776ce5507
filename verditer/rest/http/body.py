"""The body of a request while it arrives: `parser.py` feeds it, a handler reads it, with back-pressure in between."""

import asyncio
from typing import Protocol

from verditer.core.errors import Code, StorageError
from verditer.rest.http.message import ClientGone

_JOINED_BYTES = 1024 * 1024  # several small packets are read as one piece up to about this size
_LARGE_BYTES = 32 * 1024  # from this size on, joining costs more than another read


class BodySource(Protocol):
    """The part of `HttpConnection` that a body calls."""

    def body_awaited(self, body: "IncomingBody") -> None:
        """A handler starts to wait for bytes."""

    def body_consumed(self) -> None:
        """A handler has read buffered bytes, so more may be received."""


class IncomingBody:
    """The implementation of `message.Body` for a network connection."""

    __slots__ = (
        "_discarded",
        "_failed",
        "_pieces",
        "_source",
        "_waiter",
        "buffered",
        "ended",
        "expects_continue",
        "length",
        "received",
    )

    def __init__(self, source: BodySource, length: int | None, *, expects_continue: bool) -> None:
        self.length = length
        self.expects_continue = expects_continue  # the client waits for 100 Continue
        self.received = 0
        self.buffered = 0
        self.ended = False
        self._discarded = False
        self._failed = False
        self._pieces: list[bytes | bytearray] = []
        self._source = source
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes | bytearray:
        while not self._pieces:
            if self._failed:
                raise ClientGone
            if self.ended:
                return b""
            self._source.body_awaited(self)
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._failed:
            raise ClientGone
        piece = self._next_piece()
        self.buffered -= len(piece)
        self._source.body_consumed()
        return piece

    async def read_all(self, limit: int) -> bytes:
        if self.length is not None:
            if self.length > limit:
                raise StorageError(Code.RequestBodyTooLarge)
            if self.ended and len(self._pieces) == 1 and not self._failed:  # received together with the head
                self.buffered = 0
                self._source.body_consumed()
                return bytes(self._pieces.pop())
        pieces: list[bytes | bytearray] = []
        size = 0
        while piece := await self.read():
            size += len(piece)
            if size > limit:
                raise StorageError(Code.RequestBodyTooLarge)
            pieces.append(piece)
        return b"".join(pieces)  # a single bytes object is returned without a copy

    @property
    def waiting(self) -> bool:
        """A handler waits for bytes."""
        return self._waiter is not None

    def feed(self, piece: bytes | bytearray) -> None:
        self.received += len(piece)
        if not self._discarded:
            self._pieces.append(piece)
            self.buffered += len(piece)
            if self._waiter is not None:
                self._wake()

    def end(self) -> None:
        self.ended = True
        if self._waiter is not None:
            self._wake()

    def fail(self) -> None:
        """The rest will not arrive."""
        if not self.ended:
            self._failed = True
            self._wake()

    def discard(self) -> None:
        """Drop what was received and what still arrives: no handler reads this body any more."""
        self._discarded = True
        self._pieces.clear()
        self.buffered = 0

    def _next_piece(self) -> bytes | bytearray:
        pieces = self._pieces
        piece = pieces.pop(0)
        if not pieces or len(piece) >= _LARGE_BYTES:
            return piece
        size, count = len(piece), 0
        while count < len(pieces) and size + len(pieces[count]) <= _JOINED_BYTES:
            size += len(pieces[count])
            count += 1
        joined = b"".join([piece, *pieces[:count]])
        del pieces[:count]
        return joined

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
