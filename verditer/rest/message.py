"""One HTTP exchange as values: what `server.py` hands to the pipeline, and what it gets back.

Nothing here knows Azure; nothing here touches a socket. `Body` is the request's bytes as a stream with back-pressure.
"""

from collections.abc import AsyncIterator, Callable
from typing import Protocol, runtime_checkable

import msgspec


class Body(Protocol):
    """The body of a request while it arrives. Reading it is what answers `Expect: 100-continue`."""

    @property
    def length(self) -> int | None:
        """Content-Length, or None when the body is chunked. 0 when the request has no body."""

    @property
    def ended(self) -> bool:
        """Every byte has arrived."""

    async def read(self) -> bytes | bytearray:
        """The next piece, as it came from the network; `b""` at the end. Raises ClientGone when the client is gone."""

    async def read_all(self, limit: int) -> bytes:
        """The whole body; refuses with RequestBodyTooLarge as soon as more than `limit` bytes are known to come."""


class FilePart(Protocol):
    """A stretch of a body that lies in a file."""

    @property
    def left(self) -> int:
        """How many bytes nobody has taken yet."""

    async def copy(self, take: Callable[[int, int, int], int]) -> None:
        """In a thread, `take(descriptor, offset, count)` some of them; it says how many it took."""


@runtime_checkable
class FileBody(Protocol):
    """A streamed body that can leave its files to whoever sends it: its pieces, or else its parts."""

    def parts(self) -> AsyncIterator[bytes | FilePart]:
        """The whole body. A part has been taken before the next one is asked for."""


class ClientGone(Exception):
    """The peer closed, or stalled past the time-out, before the body was complete. There is nobody to answer."""


class Request(msgspec.Struct, kw_only=True):
    """`headers` has lower-case names, repeated lines joined by a comma; `raw_headers` keeps case and order."""

    method: str
    target: str  # exactly as sent: percent-encoded path and query (signatures cover this form)
    headers: dict[str, str]
    raw_headers: list[tuple[str, str]]
    body: Body
    peer: str  # the client's IP address
    secure: bool  # over TLS
    outer_version: str = ""  # of the batch it came in: such a request names no version itself


class Response(msgspec.Struct, kw_only=True):
    """`body` is bytes, or an iterator of pieces with `length` set when it is known (chunked otherwise)."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes | AsyncIterator[bytes] = b""
    length: int | None = None  # what Content-Length says when it is not len(body): streams, HEAD
    reason: str = ""
    close: bool = False  # close the connection after this answer
