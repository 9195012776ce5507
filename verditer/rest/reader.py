"""The incoming half of a connection: bytes become requests and the bodies they carry.

httptools reads heads and chunked bodies; a body of known length is counted here, so that its bytes are not copied. What is
ambiguous or too large is refused (`wire.Refusal`), never guessed. `connection.py` runs the requests and writes the answers.
"""

from time import monotonic
from typing import Protocol

import httptools

from verditer.core.caches import remember
from verditer.rest.body import IncomingBody, Source
from verditer.rest.message import Request
from verditer.rest.wire import HttpLimits, Refusal, malformed

# The parser cannot pause: the first bounds how many pipelined requests become objects before the backlog is looked at again,
# the second keeps the pieces of a chunked body large.
_HEADS_PARSED_AT_ONCE = 16 * 1024
_CHUNKS_PARSED_AT_ONCE = 256 * 1024

_LEAST_ROOM = 256 * 1024  # smaller pieces of a body are copied with less trouble
_MOST_ROOM = 1024 * 1024


@remember(1024, 64)  # names come again and again
def _spellings(name: bytes) -> tuple[str, str]:
    """As it was sent, and in lower case."""
    spelled = name.decode("latin-1")
    return spelled, spelled.lower()


class Exchange:
    """A request and what its answer depends on."""

    __slots__ = ("body", "http_1_0", "keep_alive", "refusal", "request")

    def __init__(self, request: Request, body: IncomingBody, *, keep_alive: bool, http_1_0: bool) -> None:
        self.request = request
        self.body = body
        self.keep_alive = keep_alive
        self.http_1_0 = http_1_0
        self.refusal: Refusal | None = None  # why the body broke off, when the client can still be told


class Owner(Source, Protocol):
    """The connection, as far as its reader knows it."""

    peer: str
    secure: bool

    def accept(self, exchange: Exchange) -> None: ...
    def refuse(self, refusal: Refusal) -> None: ...
    @property
    def backlog(self) -> int: ...


class RequestReader:
    """Methods named `on_…` are called by httptools."""

    def __init__(self, owner: Owner, limits: HttpLimits) -> None:
        self.arriving: Exchange | None = None  # its body is not complete; its turn may not have come
        self.in_head = False
        self.head_since = 0.0
        self.deaf = False  # no further request is read
        self._owner = owner
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        self._counting = False  # the body of `arriving` has a known length and does not go through the parser
        self._piece: bytearray | None = None  # of a large body: what has landed of it ends at `_landed`
        self._landed = 0
        self._upgrading = False
        self._unparsed = b""
        self._target = b""
        self._raw_headers: list[tuple[str, str]] = []
        self._headers: dict[str, str] = {}
        self._lines_left = self._bytes_left = 0  # of the headers
        self._held_bytes = 0  # what an incomplete head, or a trailer, may have made the parser keep

    @property
    def has_room(self) -> bool:
        """Whether the next bytes may land in `room`, where those of a large body stay instead of being copied."""
        return self._piece is not None or self._room_bytes() >= _LEAST_ROOM

    def _room_bytes(self) -> int:
        """No more than has come already: who sends little holds little, whatever was announced."""
        if not self._counting or self.arriving is None:
            return 0
        body = self.arriving.body
        unused = max(self._limits.max_buffered_body_bytes - body.buffered, _LEAST_ROOM)
        return min(self._left, body.received, unused, _MOST_ROOM)

    @property
    def room(self) -> memoryview:
        if self._piece is None:
            self._piece, self._landed = bytearray(self._room_bytes() or _LEAST_ROOM), 0  # a deaf one drops what lands
        return memoryview(self._piece)[self._landed :]

    def landed(self, count: int) -> None:
        """So many bytes are in the room that was given last."""
        assert self._piece is not None
        self._landed += count
        if self._landed == len(self._piece):
            piece, self._piece = self._piece, None
            self._count(piece, 0)

    def feed(self, data: bytes) -> None:
        if self._unparsed:
            self._unparsed += data
        else:
            self._read(data)

    def resume(self) -> None:
        """The backlog has become shorter."""
        if self._unparsed:
            data, self._unparsed = self._unparsed, b""
            self._read(data)

    def stop(self) -> None:
        self.deaf = True
        self.in_head = False
        self.arriving = None
        self._counting = False
        self._unparsed = b""

    @property
    def full(self) -> bool:
        """More bytes would only pile up."""
        return (
            (self.arriving is not None and self.arriving.body.buffered > self._limits.max_buffered_body_bytes)
            or bool(self._unparsed)
            or self._owner.backlog >= self._limits.max_pipelined
        )

    def _read(self, data: bytes) -> None:
        position, end = 0, len(data)
        while position < end and not self.deaf:
            if self._counting:
                position += self._count(data, position)
            elif self._owner.backlog >= self._limits.max_pipelined:
                self._unparsed = data[position:]
                return
            else:
                size = _HEADS_PARSED_AT_ONCE if self.arriving is None else _CHUNKS_PARSED_AT_ONCE
                whole = position == 0 and end <= size
                position += self._parse(data if whole else memoryview(data)[position : position + size])

    @property
    def _left(self) -> int:
        assert self.arriving is not None
        body = self.arriving.body
        assert body.length is not None
        return body.length - body.received

    def _count(self, data: bytes | bytearray, position: int) -> int:
        assert self.arriving is not None
        body = self.arriving.body
        size = min(self._left, len(data) - position)
        body.feed(data if size == len(data) else data[position : position + size])
        if body.received == body.length:
            self._counting = False
            self._parser = httptools.HttpRequestParser(self)  # the former one still waits for this body
            self.on_message_complete()
        return size

    def _parse(self, data: bytes | memoryview) -> int:
        """How many bytes were consumed: all, unless the rest is not for this parser."""
        received = self.arriving.body.received if self.arriving is not None else 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade()
            return int(upgrade.args[0])
        except httptools.HttpParserError as error:
            if not self.deaf:  # what follows the last request does not matter
                self._owner.refuse(_refusal_for(error))
            return len(data)
        if self.arriving is None:
            if self.in_head:
                self._hold(len(data))
        elif self.arriving.body.length is not None:
            self._counting = True
        elif self.arriving.body.received > received:
            self._held_bytes = 0
        else:
            self._hold(len(data))
        return len(data)

    def _hold(self, size: int) -> None:
        if self._held_bytes > self._limits.max_header_bytes + self._limits.max_target_bytes:
            self._owner.refuse(_headers_too_large())
        self._held_bytes += size

    def _ignore_upgrade(self) -> None:
        """No other protocol is spoken here: the request is answered as HTTP/1.1 and its body follows as announced."""
        self._upgrading = False
        assert self.arriving is not None
        if self.arriving.body.length is None:
            self._parser = httptools.HttpRequestParser(_ChunkedBody(self))
            self._parser.feed_data(b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            return
        self._parser = httptools.HttpRequestParser(self)
        self._counting = self.arriving.body.length > 0
        if not self._counting:
            self.on_message_complete()

    def on_message_begin(self) -> None:
        self.in_head = True
        self.head_since = monotonic()
        self._target = b""
        self._raw_headers = []
        self._headers = {}
        self._lines_left = self._limits.max_headers
        self._bytes_left = self._limits.max_header_bytes
        self._held_bytes = 0

    def on_url(self, piece: bytes) -> None:
        self._target += piece
        if len(self._target) > self._limits.max_target_bytes:
            raise Refusal(414, "InvalidUri", "The request URI is too long.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_head:
            return  # a trailer: permitted and ignored
        spelled, key = _spellings(name)
        text = value.decode("latin-1").rstrip(" \t")
        self._raw_headers.append((spelled, text))
        self._lines_left -= 1
        self._bytes_left -= len(name) + len(value) + 4
        if self._lines_left < 0 or self._bytes_left < 0:
            raise _headers_too_large()
        if key not in self._headers:
            self._headers[key] = text
        elif key == "host":
            raise malformed("The Host header was sent twice.")
        else:
            self._headers[key] += "," + text

    def on_headers_complete(self) -> None:
        self.in_head = False
        headers, parser = self._headers, self._parser
        http_1_0 = parser.get_http_version() != "1.1"
        if http_1_0 and parser.get_http_version() != "1.0":
            raise malformed("The HTTP version is not supported.")
        if not http_1_0 and "host" not in headers:
            raise malformed("The Host header is missing.")
        encoding = headers.get("transfer-encoding")
        length = int(headers.get("content-length", 0)) if encoding is None else None
        # llhttp refuses every doubtful Content-Length; what it lets pass of Transfer-Encoding is refused here.
        if encoding is not None and (encoding.lower() != "chunked" or http_1_0):
            raise malformed("The Transfer-Encoding is not supported.")
        method = parser.get_method().decode("latin-1")
        if method == "CONNECT":
            raise Refusal(405, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")
        keep_alive = parser.should_keep_alive()
        if "upgrade" in headers and parser.should_upgrade():
            self._upgrading = True
            keep_alive = keep_alive and length is not None
        expected = not http_1_0 and "expect" in headers and headers["expect"].lower() == "100-continue"
        body = IncomingBody(self._owner, length, expected=expected)
        request = Request(
            method=method,
            target=self._target.decode("latin-1"),
            headers=headers,
            raw_headers=self._raw_headers,
            body=body,
            peer=self._owner.peer,
            secure=self._owner.secure,
        )
        self.arriving = Exchange(request, body, keep_alive=keep_alive, http_1_0=http_1_0)
        self._owner.accept(self.arriving)

    def on_body(self, piece: bytes) -> None:
        assert self.arriving is not None
        self.arriving.body.feed(piece)

    def on_message_complete(self) -> None:
        if self._upgrading:
            return  # for the parser an upgrade ends with its head
        assert self.arriving is not None
        self.arriving.body.end()
        self.deaf = not self.arriving.keep_alive
        self.arriving = None


class _ChunkedBody:
    """Takes only the body from a parser that was given a head of our own."""

    def __init__(self, reader: RequestReader) -> None:
        self.on_body = reader.on_body
        self.on_message_complete = reader.on_message_complete


def _refusal_for(error: httptools.HttpParserError) -> Refusal:
    if not isinstance(error, httptools.HttpParserCallbackError):
        return malformed("The request is not valid HTTP/1.1.")
    if isinstance(error.__context__, Refusal):
        return error.__context__
    raise error


def _headers_too_large() -> Refusal:
    return Refusal(431, "RequestHeaderFieldsTooLarge", "The request headers are too large.")
