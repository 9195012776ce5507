"""CLOSE, FLUSH, READ and WRITE (MS-SMB2 2.2.15 to 2.2.22). File ids are the sixteen bytes of the message."""

import struct
from typing import NamedTuple

from verditer.smb.wire.create import Times
from verditer.smb.wire.fields import HEADER_BYTES, part

CLOSE_RESPONSE_SIZE, FLUSH_RESPONSE_SIZE, READ_RESPONSE_SIZE, WRITE_RESPONSE_SIZE = 60, 4, 17, 17

CLOSE_WANTS_ATTRIBUTES = 0x1

_CLOSE = struct.Struct("<HHI16s")
_CLOSE_RESPONSE = struct.Struct("<HHI6QI")
_READ = struct.Struct("<HBBIQ16sIIIHH")
_READ_RESPONSE = struct.Struct("<HBBIII")
_WRITE = struct.Struct("<HHIQ16sIIHHI")
_WRITE_RESPONSE = struct.Struct("<HHIIHH")
_READ_DATA_AT = HEADER_BYTES + _READ_RESPONSE.size
_NO_TIMES = Times(0, 0, 0, 0)
FLUSHED = struct.pack("<HH", FLUSH_RESPONSE_SIZE, 0)


class ReadRequest(NamedTuple):
    length: int
    offset: int
    minimum: int
    channel: int


class WriteRequest(NamedTuple):
    offset: int
    data: memoryview
    channel: int


def parse_close(message: memoryview) -> int:
    """The flags."""
    return int(_CLOSE.unpack_from(message, HEADER_BYTES)[1])


def build_close(
    flags: int = 0, times: Times = _NO_TIMES, allocation_bytes: int = 0, size_bytes: int = 0, attributes: int = 0
) -> bytes:
    return _CLOSE_RESPONSE.pack(CLOSE_RESPONSE_SIZE, flags, 0, *times, allocation_bytes, size_bytes, attributes)


def parse_read(message: memoryview) -> ReadRequest:
    _, _, _, length, offset, _, minimum, channel, _, _, _ = _READ.unpack_from(message, HEADER_BYTES)
    return ReadRequest(length, offset, minimum, channel)


def build_read(count: int) -> bytes:
    """What precedes the bytes that were read."""
    return _READ_RESPONSE.pack(READ_RESPONSE_SIZE, _READ_DATA_AT, 0, count, 0, 0)


def parse_write(message: memoryview) -> WriteRequest:
    """Its flags ask for what every write is: durable before it is answered."""
    _, data_at, length, offset, _, channel, _, _, _, _ = _WRITE.unpack_from(message, HEADER_BYTES)
    return WriteRequest(offset, part(message, data_at, length, earliest=HEADER_BYTES + _WRITE.size), channel)


def build_write(count: int) -> bytes:
    return _WRITE_RESPONSE.pack(WRITE_RESPONSE_SIZE, 0, count, 0, 0, 0)
