"""LOCK and OPLOCK_BREAK (MS-SMB2 2.2.23 to 2.2.27). A lock element is a range and what to do with it."""

import struct
from typing import NamedTuple

from verditer.smb.status import SmbError, Status
from verditer.smb.wire.fields import HEADER_BYTES

LOCK_RESPONSE_SIZE, OPLOCK_BREAK_SIZE = 4, 24
MAX_LOCKS = 4096  # of this server, in one request

SHARED, EXCLUSIVE, UNLOCK, FAIL_IMMEDIATELY = 0x1, 0x2, 0x4, 0x10

_LOCK = struct.Struct("<HHI16s")
_ELEMENT = struct.Struct("<QQII")
_OPLOCK_BREAK = struct.Struct("<HBBI16s")
LOCKED = struct.pack("<HH", LOCK_RESPONSE_SIZE, 0)


class LockElement(NamedTuple):
    offset: int
    length: int
    flags: int


def parse_lock(message: memoryview) -> list[LockElement]:
    _, count, _, _ = _LOCK.unpack_from(message, HEADER_BYTES)
    start = HEADER_BYTES + _LOCK.size
    end = start + count * _ELEMENT.size
    if not 0 < count <= MAX_LOCKS or end > len(message):
        raise SmbError(Status.INVALID_PARAMETER)
    return [LockElement(offset, length, flags) for offset, length, flags, _ in _ELEMENT.iter_unpack(message[start:end])]


def parse_oplock_break(message: memoryview) -> int:
    """The level that the client goes down to."""
    return int(_OPLOCK_BREAK.unpack_from(message, HEADER_BYTES)[1])


def build_oplock_break(level: int, file_id: bytes) -> bytes:
    """The body of the notification to the client and of the answer to its acknowledgment."""
    return _OPLOCK_BREAK.pack(OPLOCK_BREAK_SIZE, level, 0, 0, file_id)
