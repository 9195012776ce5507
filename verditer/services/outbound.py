"""Reading copy sources on other servers: the interface that services are given through the Context.

Services see sources in domain terms. The implementation, which speaks HTTP, is `rest/outbound/sources.py`.
"""

from typing import NoReturn, Protocol

import msgspec

from verditer.core.errors import ErrorClass

TOTAL_SECONDS = 600.0  # for a copy that a client waits for

SourceRange = tuple[int, int | None]
"""First byte, and last byte or None for "to the end"."""


class SourceRequest(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    access: dict[str, str]  # version and credentials, in a form that only the front end and the source reader understand
    conditions: dict[str, str] = {}  # of the client, in the same form
    range: SourceRange | None = None
    etag: str | None = None  # the source must still have this ETag, as far as it can be asked to check that


class SourceProperties(msgspec.Struct, frozen=True, kw_only=True):
    """What a source says of itself with its first bytes."""

    length: int | None  # bytes that follow; None when the source does not say
    is_range: bool  # the bytes are the requested range; False: they are the whole source
    etag: str | None = None
    blob_type: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    content_md5: bytes | None = None  # of the whole source
    metadata: dict[str, str] = {}
    sequence_number: int = 0
    block_count: int = 0


class OpenSource(Protocol):
    """A source while it is read. The reader calls `close` at any time."""

    @property
    def properties(self) -> SourceProperties: ...

    async def read(self, most: int | None = None) -> bytes:
        """The next bytes, at most `most`; `b""` at the end. Raises SourceFailed, also when the source ends too early."""

    def close(self) -> None: ...


class SourceReader(Protocol):
    async def open(self, request: SourceRequest, *, total_seconds: float | None = TOTAL_SECONDS) -> OpenSource:
        """Returns once the source has begun to answer with its bytes. Raises SourceFailed otherwise."""

    def close(self) -> None: ...


class SourceFailed(Exception):
    """A source cannot be read. `status` is a class that this server found, or the number that another server answered."""

    def __init__(self, status: ErrorClass | int, code: str, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.transient = transient  # a later attempt may succeed

    @property
    def is_condition(self) -> bool:
        """The source does not meet a condition of the request."""
        return self.status in (ErrorClass.NOT_MODIFIED, ErrorClass.PRECONDITION_FAILED)


class NoSources:
    """The source reader of a process that reads no other servers."""

    async def open(self, request: SourceRequest, *, total_seconds: float | None = TOTAL_SECONDS) -> NoReturn:
        raise SourceFailed(ErrorClass.FORBIDDEN, "AuthorizationFailure", "This server does not read from other servers.")

    def close(self) -> None:
        pass
