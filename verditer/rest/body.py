"""The body of a request while it arrives: `connection.py` feeds it, a handler reads it, and neither outruns the other."""

import asyncio
from typing import Protocol

from verditer.core.errors import Code, StorageError
from verditer.rest.message import ClientGone

_PIECE_BYTES = 1024 * 1024  # several small packets are read as one piece up to about this size
_LARGE_BYTES = 32 * 1024  # from here on a copy costs more than another read


class Source(Protocol):
    """The connection, as far as a body knows it."""

    def body_wanted(self, body: "IncomingBody") -> None:
        """A reader starts to wait for bytes."""

    def body_taken(self) -> None:
        """Buffered bytes were read: there is room for more."""


class IncomingBody:
    """See `message.Body`, of which this is the one implementation that has a network behind it."""

    __slots__ = ("_discarded", "_failed", "_pieces", "_source", "_waiter", "buffered", "ended", "expected", "length", "received")

    def __init__(self, source: Source, length: int | None, *, expected: bool) -> None:
        self.length = length
        self.expected = expected  # the client waits for 100 Continue
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
            self._source.body_wanted(self)
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._failed:
            raise ClientGone
        piece = self._next_piece()
        self.buffered -= len(piece)
        self._source.body_taken()
        return piece

    async def read_all(self, limit: int) -> bytes:
        if self.length is not None:
            if self.length > limit:
                raise StorageError(Code.RequestBodyTooLarge)
            if self.ended and len(self._pieces) == 1 and not self._failed:  # it came with its head
                self.buffered = 0
                self._source.body_taken()
                return bytes(self._pieces.pop())
        pieces: list[bytes | bytearray] = []
        size = 0
        while piece := await self.read():
            size += len(piece)
            if size > limit:
                raise StorageError(Code.RequestBodyTooLarge)
            pieces.append(piece)
        return b"".join(pieces)  # one of them alone is not copied

    @property
    def waiting(self) -> bool:
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
        """The rest will never come."""
        if not self.ended:
            self._failed = True
            self._wake()

    def discard(self) -> None:
        """Nobody reads this body any more; what still arrives is dropped."""
        self._discarded = True
        self._pieces.clear()
        self.buffered = 0

    def _next_piece(self) -> bytes | bytearray:
        pieces = self._pieces
        piece = pieces.pop(0)
        if not pieces or len(piece) >= _LARGE_BYTES:
            return piece
        size, count = len(piece), 0
        while count < len(pieces) and size + len(pieces[count]) <= _PIECE_BYTES:
            size += len(pieces[count])
            count += 1
        joined = b"".join([piece, *pieces[:count]])
        del pieces[:count]
        return joined

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
