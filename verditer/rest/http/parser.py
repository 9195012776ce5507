"""The request parser: bytes become requests and the bodies they carry.

httptools parses heads and chunked bodies. Bodies of known length bypass it, so that their bytes are not copied. Ambiguous or
oversized input is refused (`wire.Refusal`), never guessed. `connection.py` runs the requests.
"""

from time import monotonic
from typing import Protocol

import httptools

from verditer.core.caches import bounded_cache
from verditer.rest.http.body import BodySource, IncomingBody
from verditer.rest.http.message import Request
from verditer.rest.http.wire import HttpLimits, Refusal, malformed

# httptools cannot pause. The first limit bounds how many pipelined requests become objects before the backlog is checked again,
# the second keeps the pieces of a chunked body large.
_HEADS_PARSED_AT_ONCE = 16 * 1024
_CHUNKS_PARSED_AT_ONCE = 256 * 1024

_MIN_BUFFER_BYTES = 256 * 1024  # copying smaller pieces of a body is cheaper than changing the protocol of the transport
_MAX_BUFFER_BYTES = 1024 * 1024


@bounded_cache(1024, 64)  # the same few names are sent with every request
def _spellings(name: bytes) -> tuple[str, str]:
    """A header name as it was sent, and in lower case."""
    spelled = name.decode("latin-1")
    return spelled, spelled.lower()


class ReceivedRequest:
    """A request, and what the connection needs to know to answer it."""

    __slots__ = ("body", "http_1_0", "keep_alive", "refusal", "request")

    def __init__(self, request: Request, body: IncomingBody, *, keep_alive: bool, http_1_0: bool) -> None:
        self.request = request
        self.body = body
        self.keep_alive = keep_alive
        self.http_1_0 = http_1_0
        self.refusal: Refusal | None = None  # why the body is incomplete, when the client can still be answered


class RequestReceiver(BodySource, Protocol):
    """The part of `HttpConnection` that the parser calls."""

    peer: str
    secure: bool

    def accept(self, received: ReceivedRequest) -> None: ...
    def refuse(self, refusal: Refusal) -> None: ...
    @property
    def backlog(self) -> int: ...


class RequestParser:
    """The methods named `on_…` are called by httptools."""

    def __init__(self, owner: RequestReceiver, limits: HttpLimits) -> None:
        self.receiving: ReceivedRequest | None = None  # the request whose body is incomplete; it may still be queued
        self.in_head = False
        self.head_since = 0.0
        self.stopped = False  # no further request is parsed
        self._owner = owner
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        self._in_sized_body = False  # the body of `receiving` has a known length and bypasses httptools
        self._buffer: bytearray | None = None  # of a large body, filled up to `_filled`
        self._filled = 0
        self._upgrading = False
        self._unparsed = b""
        self._target = b""
        self._lines: list[tuple[bytes, bytes]] = []  # names and values of the headers, then of the trailers
        self._parsed_bytes = 0  # of an incomplete head or trailer, which httptools may be keeping

    @property
    def wants_buffer(self) -> bool:
        """Whether the next bytes should be received into `buffer_space`: they belong to a large body."""
        return self._buffer is not None or self._buffer_bytes() >= _MIN_BUFFER_BYTES

    def _buffer_bytes(self) -> int:
        """Not more than was received already: a client that sends little occupies little memory, whatever it announced."""
        if not self._in_sized_body or self.receiving is None:
            return 0
        body = self.receiving.body
        unused = max(self._limits.max_buffered_body_bytes - body.buffered, _MIN_BUFFER_BYTES)
        return min(self._missing_bytes, body.received, unused, _MAX_BUFFER_BYTES)

    @property
    def buffer_space(self) -> memoryview:
        """The unfilled rest of the buffer. A parser that was stopped has one too, whose bytes are dropped."""
        if self._buffer is None:
            self._buffer, self._filled = bytearray(self._buffer_bytes() or _MIN_BUFFER_BYTES), 0
        return memoryview(self._buffer)[self._filled :]

    def buffer_filled(self, count: int) -> None:
        """`count` bytes were received into `buffer_space`."""
        assert self._buffer is not None
        self._filled += count
        if self._filled == len(self._buffer):
            piece, self._buffer = self._buffer, None
            self._take_body(piece, 0)

    def feed(self, data: bytes) -> None:
        if self._unparsed:
            self._unparsed += data
        else:
            self._read(data)

    def resume(self) -> None:
        """Go on parsing: the backlog has become shorter."""
        if self._unparsed:
            data, self._unparsed = self._unparsed, b""
            self._read(data)

    def stop(self) -> None:
        self.stopped = True
        self.in_head = False
        self.receiving = None
        self._in_sized_body = False
        self._unparsed = b""

    @property
    def is_full(self) -> bool:
        """Reading should pause: what is received now could only be buffered."""
        return (
            (self.receiving is not None and self.receiving.body.buffered > self._limits.max_buffered_body_bytes)
            or bool(self._unparsed)
            or self._owner.backlog >= self._limits.max_pipelined
        )

    def _read(self, data: bytes) -> None:
        position, end = 0, len(data)
        while position < end and not self.stopped:
            if self._in_sized_body:
                position += self._take_body(data, position)
            elif self._owner.backlog >= self._limits.max_pipelined:
                self._unparsed = data[position:]
                return
            else:
                size = _HEADS_PARSED_AT_ONCE if self.receiving is None else _CHUNKS_PARSED_AT_ONCE
                whole = position == 0 and end <= size
                position += self._parse(data if whole else memoryview(data)[position : position + size])

    @property
    def _missing_bytes(self) -> int:
        assert self.receiving is not None
        body = self.receiving.body
        assert body.length is not None
        return body.length - body.received

    def _take_body(self, data: bytes | bytearray, position: int) -> int:
        assert self.receiving is not None
        body = self.receiving.body
        size = min(self._missing_bytes, len(data) - position)
        body.feed(data if size == len(data) else data[position : position + size])
        if body.received == body.length:
            self._in_sized_body = False
            self._parser = httptools.HttpRequestParser(self)  # the previous one still expects this body
            self.on_message_complete()
        return size

    def _parse(self, data: bytes | memoryview) -> int:
        """How many bytes were consumed: all, unless an upgrade request ends earlier."""
        received = self.receiving.body.received if self.receiving is not None else 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade()
            return int(upgrade.args[0])
        except httptools.HttpParserError as error:
            if not self.stopped:  # what follows the last request does not matter
                self._owner.refuse(_refusal_for(error))
            return len(data)
        if self.receiving is None:
            if self.in_head:
                self._limit_incomplete_part(len(data))
        elif self.receiving.body.length is not None:
            self._in_sized_body = True
        elif self.receiving.body.received > received:
            self._parsed_bytes = 0
        else:
            self._limit_incomplete_part(len(data))
        return len(data)

    def _limit_incomplete_part(self, size: int) -> None:
        if self._parsed_bytes > self._limits.max_header_bytes + self._limits.max_target_bytes:
            self._owner.refuse(_headers_too_large())
        self._parsed_bytes += size

    def _ignore_upgrade(self) -> None:
        """Other protocols are not supported: the request is answered as HTTP/1.1, and its body follows as announced."""
        self._upgrading = False
        assert self.receiving is not None
        if self.receiving.body.length is None:
            self._parser = httptools.HttpRequestParser(_ChunkedBody(self))
            self._parser.feed_data(b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            return
        self._parser = httptools.HttpRequestParser(self)
        self._in_sized_body = self.receiving.body.length > 0
        if not self._in_sized_body:
            self.on_message_complete()

    def on_message_begin(self) -> None:
        self.in_head = True
        self.head_since = monotonic()
        self._target = b""
        self._lines = []
        self._parsed_bytes = 0

    def on_url(self, piece: bytes) -> None:
        self._target += piece
        if len(self._target) > self._limits.max_target_bytes:
            raise Refusal(414, "InvalidUri", "The request URI is too long.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Also called for trailers, which are allowed and ignored."""
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        self.in_head = False
        raw_headers, headers = self._headers()
        parser = self._parser
        http_1_0 = parser.get_http_version() != "1.1"
        if http_1_0 and parser.get_http_version() != "1.0":
            raise malformed("The HTTP version is not supported.")
        if not http_1_0 and "host" not in headers:
            raise malformed("The Host header is missing.")
        encoding = headers.get("transfer-encoding")
        length = int(headers.get("content-length", 0)) if encoding is None else None
        # llhttp refuses every ambiguous Content-Length. The forms of Transfer-Encoding that it accepts are refused here.
        if encoding is not None and (encoding.lower() != "chunked" or http_1_0):
            raise malformed("The Transfer-Encoding is not supported.")
        method = parser.get_method().decode("latin-1")
        if method == "CONNECT":
            raise Refusal(405, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")
        keep_alive = parser.should_keep_alive()
        if "upgrade" in headers and parser.should_upgrade():
            self._upgrading = True
            keep_alive = keep_alive and length is not None
        expects_continue = not http_1_0 and "expect" in headers and headers["expect"].lower() == "100-continue"
        body = IncomingBody(self._owner, length, expects_continue=expects_continue)
        request = Request(
            method=method,
            target=self._target.decode("latin-1"),
            headers=headers,
            raw_headers=raw_headers,
            body=body,
            peer=self._owner.peer,
            secure=self._owner.secure,
        )
        self.receiving = ReceivedRequest(request, body, keep_alive=keep_alive, http_1_0=http_1_0)
        self._owner.accept(self.receiving)

    def _headers(self) -> tuple[list[tuple[str, str]], dict[str, str]]:
        """The headers as they were sent, and with lower-case names, where the values of equal names are joined."""
        raw_headers: list[tuple[str, str]] = []
        headers: dict[str, str] = {}
        size_bytes = 0
        for name, value in self._lines:
            size_bytes += len(name) + len(value) + 4
            spelled, key = _spellings(name)
            text = value.decode("latin-1").rstrip(" \t")
            raw_headers.append((spelled, text))
            if key not in headers:
                headers[key] = text
            elif key == "host":
                raise malformed("The Host header was sent twice.")
            else:
                headers[key] += "," + text
        if len(raw_headers) > self._limits.max_headers or size_bytes > self._limits.max_header_bytes:
            raise _headers_too_large()
        return raw_headers, headers

    def on_body(self, piece: bytes) -> None:
        assert self.receiving is not None
        self.receiving.body.feed(piece)

    def on_message_complete(self) -> None:
        if self._upgrading:
            return  # httptools ends an upgrade request after its head
        assert self.receiving is not None
        self.receiving.body.end()
        self.stopped = not self.receiving.keep_alive
        self.receiving = None


class _ChunkedBody:
    """Receives only the body from a parser that was given a head made here."""

    def __init__(self, parser: RequestParser) -> None:
        self.on_body = parser.on_body
        self.on_message_complete = parser.on_message_complete


def _refusal_for(error: httptools.HttpParserError) -> Refusal:
    if not isinstance(error, httptools.HttpParserCallbackError):
        return malformed("The request is not valid HTTP/1.1.")
    if isinstance(error.__context__, Refusal):
        return error.__context__
    raise error


def _headers_too_large() -> Refusal:
    return Refusal(431, "RequestHeaderFieldsTooLarge", "The request headers are too large.")
