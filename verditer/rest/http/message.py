"""HTTP requests and responses as values: what `connection.py` passes to a handler, and what it gets back.

Nothing here knows Azure or a socket. `Body` is the body of a request as a stream with back-pressure.
"""

from collections.abc import AsyncIterator, Callable
from typing import Protocol, runtime_checkable

import msgspec


class Body(Protocol):
    """The body of a request while it arrives. Reading it sends `100 Continue` to a client that waits for that."""

    @property
    def length(self) -> int | None:
        """Content-Length, or None when the body is chunked. 0 when the request has no body."""

    @property
    def ended(self) -> bool:
        """Every byte has arrived."""

    async def read(self) -> bytes | bytearray:
        """The next bytes, in pieces as the network delivers them; `b""` at the end. Raises ClientGone when the client left."""

    async def read_all(self, limit: int) -> bytes:
        """The whole body. Raises RequestBodyTooLarge as soon as it is known to be longer than `limit` bytes."""


class FilePart(Protocol):
    """A part of a response body that is stored in a file."""

    @property
    def left(self) -> int:
        """How many bytes have not been sent yet."""

    async def copy(self, take: Callable[[int, int, int], int]) -> None:
        """Call `take(descriptor, offset, count)` in a thread. It sends some of the bytes and returns how many."""


@runtime_checkable
class FileBody(Protocol):
    """A streamed response body that can be sent by sendfile: iterate over `parts()` instead of the body itself."""

    def parts(self) -> AsyncIterator[bytes | FilePart]:
        """The whole body. A part has to be sent before the next one is requested."""


class ClientGone(Exception):
    """The client closed the connection, or stalled for too long, before its body was complete. It cannot be answered."""


class Request(msgspec.Struct, kw_only=True):
    """`headers` has lower-case names, repeated lines joined by a comma; `raw_headers` keeps case and order."""

    method: str
    target: str  # exactly as sent: percent-encoded path and query (signatures cover this form)
    headers: dict[str, str]
    raw_headers: list[tuple[str, str]]
    body: Body
    peer: str  # the client's IP address
    secure: bool  # over TLS
    outer_version: str = ""  # of the batch that contains this request: such a request names no version itself


class Response(msgspec.Struct, kw_only=True):
    """`body` is bytes, or an iterator of bytes with `length` set when it is known (chunked otherwise)."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes | AsyncIterator[bytes] = b""
    length: int | None = None  # Content-Length when it is not len(body): streams, HEAD
    reason: str = ""
    close: bool = False  # close the connection after this response
    names_version: bool = True  # the common headers include x-ms-version
    error_code: str | None = None  # for the request log; Table sends the code in the body only
    sent: Callable[[], None] | None = None  # called when the last byte is sent, or when the rest cannot be sent
