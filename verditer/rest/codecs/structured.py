"""Structured bodies: content in segments, each followed by its CRC64, so that a transfer is verified while it runs.

The form is `x-ms-structured-body: XSM/1.0; properties=crc64`, on uploads and on downloads alike. It belongs to the wire: a
service receives and returns plain content. `decode.py` puts a `StructuredBody` in front of an upload, `encode.py` calls
`encode`. The numbers are little-endian:

    message header  version (1 byte, 1), length of the message (8), flags (2, bit 0 means CRC64), number of segments (2)
    each segment    its number from 1 (2), length of its content (8), the content, CRC64 of the content (8)
    message footer  CRC64 of all content (8)
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from struct import Struct

from verditer.core.crc64 import crc64nvme
from verditer.core.errors import Code, Digests, StorageError
from verditer.core.limits import MIB
from verditer.rest.http.message import Body, Request
from verditer.rest.wire_errors import invalid_header, missing_header

HEADER, LENGTH_HEADER = "x-ms-structured-body", "x-ms-structured-content-length"
SEGMENT_BYTES = 4 * MIB  # the segment size of Azure's SDKs
MAX_SEGMENTS = 0xFFFF

_KNOWN = re.compile(r"XSM/1\.0\s*;\s*properties=crc64", re.IGNORECASE)
_VERSION, _CRC64 = 1, 1
_MESSAGE, _SEGMENT, _FOOTER = Struct("<BQHH"), Struct("<HQ"), Struct("<Q")


def check_form(request: Request) -> None:
    """Check that the request names the only form that exists."""
    form = request.headers[HEADER]
    if _KNOWN.fullmatch(form.strip()) is None:
        raise invalid_header(HEADER, form)


def plain_body(request: Request) -> "StructuredBody":
    """A body that gives the content of a structured upload."""
    length = request.headers.get(LENGTH_HEADER)
    if length is None:
        raise missing_header(LENGTH_HEADER)
    if re.fullmatch(r"[0-9]{1,18}", length) is None:
        raise invalid_header(LENGTH_HEADER, length)
    return StructuredBody(request.body, int(length))


class StructuredBody:
    """A `Body` that gives the content of the structured body it reads. The last read raises on a wrong length or checksum."""

    __slots__ = ("_body", "_decoder", "length")

    def __init__(self, body: Body, length: int) -> None:
        self.length: int | None = length
        self._body = body
        self._decoder = Decoder(length, body.length)

    @property
    def ended(self) -> bool:
        return self._body.ended

    async def read(self) -> bytes | bytearray:
        while piece := await self._body.read():
            if content := self._decoder.feed(piece):
                return content
        self._decoder.end()
        return b""

    async def read_all(self, limit: int) -> bytes:
        assert self.length is not None
        if self.length > limit:
            raise StorageError(Code.RequestBodyTooLarge)
        pieces = []
        while piece := await self.read():
            pieces.append(piece)
        return b"".join(pieces)


class Decoder:
    """Decodes a message that arrives in pieces of any size. An error is raised as soon as it is found."""

    def __init__(self, content_length: int, message_length: int | None) -> None:
        self._left = content_length  # content that no segment has announced yet
        self._message_length = message_length
        self._content_length = content_length
        self._segments = self._number = 0
        self._segment_left = 0
        self._segment_crc = self._crc = 0
        self._field = b""  # the header or footer that is arriving
        self._wanted = _MESSAGE.size
        self._step: Callable[[bytes], None] = self._message_header

    def feed(self, piece: bytes | bytearray) -> bytes | bytearray:
        content = []
        at = 0
        while at < len(piece):
            if self._segment_left:
                content.append(self._content(piece[at : at + self._segment_left]))
                at += len(content[-1])
            elif self._wanted:
                part = piece[at : at + self._wanted - len(self._field)]
                self._field += part
                at += len(part)
                if len(self._field) == self._wanted:
                    field, self._field = self._field, b""
                    self._step(field)
            else:
                raise _malformed("bytes follow the end of the message")
        return content[0] if len(content) == 1 else b"".join(content)

    def end(self) -> None:
        if self._wanted:
            raise _malformed("the message is incomplete")

    def _message_header(self, field: bytes) -> None:
        version, length, flags, self._segments = _MESSAGE.unpack(field)
        if version != _VERSION or flags != _CRC64:
            raise _malformed(f"version {version} with flags {flags} is not known")
        expected = _message_length(self._content_length, self._segments)
        if length != expected or self._message_length not in (None, expected):
            raise _malformed(f"{self._segments} segments with {self._content_length} bytes are not {length} bytes")
        self._await_next()

    def _segment_header(self, field: bytes) -> None:
        self._number += 1
        number, self._segment_left = _SEGMENT.unpack(field)
        if number != self._number or self._segment_left > self._left:
            raise _malformed(f"segment {number} of {self._segment_left} bytes is out of place")
        self._left -= self._segment_left
        self._segment_crc = 0
        self._wanted, self._step = _FOOTER.size, self._segment_footer

    def _content(self, part: bytes | bytearray) -> bytes | bytearray:
        self._segment_left -= len(part)
        self._segment_crc = crc64nvme(part, self._segment_crc)
        self._crc = crc64nvme(part, self._crc)
        return part

    def _segment_footer(self, field: bytes) -> None:
        _compare(field, self._segment_crc)
        self._await_next()

    def _message_footer(self, field: bytes) -> None:
        _compare(field, self._crc)
        self._wanted = 0

    def _await_next(self) -> None:
        if self._number < self._segments:
            self._wanted, self._step = _SEGMENT.size, self._segment_header
        elif self._left:
            raise _malformed(f"{self._left} bytes are in no segment")
        else:
            self._wanted, self._step = _FOOTER.size, self._message_footer


def encode(content: bytes | AsyncIterator[bytes], length: int) -> tuple[bytes | AsyncIterator[bytes], int]:
    """The structured message of this content, and its length."""
    encoder = Encoder(length)
    if isinstance(content, bytes):
        return b"".join([encoder.begin(), *encoder.feed(content)]), encoder.message_length
    return _stream(encoder, content), encoder.message_length


async def _stream(encoder: "Encoder", content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield encoder.begin()
    async with aclosing(content) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            for part in encoder.feed(piece):
                yield part


class Encoder:
    """Encodes content of a known length. Empty content becomes one empty segment, because SDKs expect a first segment."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._segment_bytes = max(SEGMENT_BYTES, -(-length // MAX_SEGMENTS))
        self._segments = max(1, -(-length // self._segment_bytes))
        self._number = self._left = self._segment_crc = self._crc = 0
        self.message_length = _message_length(length, self._segments)

    def begin(self) -> bytes:
        return _MESSAGE.pack(_VERSION, self.message_length, _CRC64, self._segments) + self._open_segment()

    def feed(self, piece: bytes) -> list[bytes]:
        message = []
        at = 0
        while at < len(piece):
            part = piece[at : at + self._left]
            at += len(part)
            self._left -= len(part)
            self._segment_crc = crc64nvme(part, self._segment_crc)
            self._crc = crc64nvme(part, self._crc)
            message.append(part)
            if not self._left:
                message.append(self._close_segment())
        return message

    def _open_segment(self) -> bytes:
        self._left = min(self._segment_bytes, self._length - self._number * self._segment_bytes)
        self._number += 1
        self._segment_crc = 0
        header = _SEGMENT.pack(self._number, self._left)
        return header if self._left else header + self._close_segment()

    def _close_segment(self) -> bytes:
        footer = _FOOTER.pack(self._segment_crc)
        return footer + (self._open_segment() if self._number < self._segments else _FOOTER.pack(self._crc))


def _message_length(content_length: int, segments: int) -> int:
    return _MESSAGE.size + segments * (_SEGMENT.size + _FOOTER.size) + content_length + _FOOTER.size


def _compare(specified: bytes, calculated: int) -> None:
    expected = _FOOTER.pack(calculated)
    if specified != expected:
        raise StorageError(Code.Crc64Mismatch, details=Digests(specified, expected))


def _malformed(reason: str) -> StorageError:
    return StorageError(Code.InvalidInput, message=f"The structured message in the body is not valid: {reason}.")
