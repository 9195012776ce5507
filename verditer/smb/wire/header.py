"""The header of an SMB2 message (MS-SMB2 2.2.1) and the body of an error (2.2.2)."""

import struct
from typing import NamedTuple

MAGIC = b"\xfeSMB"
ENCRYPTED_MAGIC = b"\xfdSMB"
SMB1_MAGIC = b"\xffSMB"
HEADER_BYTES = 64
NO_SIGNATURE = bytes(16)
NONE_64 = (1 << 64) - 1  # the message id of a notification, which answers no request

_HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
_ASYNC_HEADER = struct.Struct("<4sHHIHHIIQQQ16s")
_ERROR = struct.Struct("<HBBI")


class CommandNumber:
    """Plain numbers, as those of `Flags`. What a command needs and does is in `smb/commands.py`."""

    NEGOTIATE = 0
    SESSION_SETUP = 1
    LOGOFF = 2
    TREE_CONNECT = 3
    TREE_DISCONNECT = 4
    CREATE = 5
    CLOSE = 6
    FLUSH = 7
    READ = 8
    WRITE = 9
    LOCK = 10
    IOCTL = 11
    CANCEL = 12
    ECHO = 13
    QUERY_DIRECTORY = 14
    CHANGE_NOTIFY = 15
    QUERY_INFO = 16
    SET_INFO = 17
    OPLOCK_BREAK = 18


class Flags:
    """Plain numbers: members of an IntFlag take a microsecond for each operation, and every message has several."""

    RESPONSE = 0x1
    ASYNC = 0x2
    RELATED = 0x4
    SIGNED = 0x8
    PRIORITY = 0x70


class Header(NamedTuple):
    """`status` of a request is its channel sequence. `async_id` is made of two fields of the synchronous form."""

    magic: bytes
    structure_size: int
    credit_charge: int
    status: int
    command: int
    credits: int
    flags: int
    next_command: int
    message_id: int
    process_id: int
    tree_id: int
    session_id: int
    signature: bytes

    @property
    def async_id(self) -> int:
        return self.tree_id << 32 | self.process_id

    @property
    def is_related(self) -> bool:
        return bool(self.flags & 0x4)

    @property
    def is_signed(self) -> bool:
        return bool(self.flags & 0x8)


def parse_header(message: memoryview, at: int = 0) -> Header:
    return Header._make(_HEADER.unpack_from(message, at))


def build_header(
    request: Header, *, status: int, credits_granted: int, flags: int, next_command: int, tree_id: int, session_id: int
) -> bytes:
    """The header of an answer, without its signature."""
    return _HEADER.pack(
        MAGIC,
        HEADER_BYTES,
        request.credit_charge,
        status,
        request.command,
        credits_granted,
        flags,
        next_command,
        request.message_id,
        request.process_id,
        tree_id,
        session_id,
        NO_SIGNATURE,
    )


def build_async_header(
    *,
    credit_charge: int,
    status: int,
    command: int,
    credits_granted: int,
    flags: int,
    message_id: int,
    async_id: int,
    session_id: int,
) -> bytes:
    """The header of an answer that comes later, or of a notification, which answers no request."""
    return _ASYNC_HEADER.pack(
        MAGIC,
        HEADER_BYTES,
        credit_charge,
        status,
        command,
        credits_granted,
        flags,
        0,
        message_id,
        async_id,
        session_id,
        NO_SIGNATURE,
    )


def build_error(data: bytes = b"") -> bytes:
    """Without error data the body still has one byte."""
    return _ERROR.pack(9, 0, 0, len(data)) + (data or b"\0")
