"""SESSION_SETUP, LOGOFF, TREE_CONNECT, TREE_DISCONNECT and ECHO (MS-SMB2 2.2.5 to 2.2.12, 2.2.28, 2.2.29)."""

import struct
from typing import NamedTuple

from verditer.smb.wire.fields import HEADER_BYTES, part, text

_SETUP = struct.Struct("<HBBIIHHQ")
_SETUP_RESPONSE = struct.Struct("<HHHH")
_TREE_CONNECT = struct.Struct("<HHHH")
_TREE_RESPONSE = struct.Struct("<HBBIII")
EMPTY = struct.pack("<HH", 4, 0)  # the answer of LOGOFF, TREE_DISCONNECT and ECHO
BINDING = 0x1
ENCRYPT_DATA = 0x4  # in the flags of a session
DISK, PIPE = 1, 2
SHARE_ENCRYPT_DATA = 0x8000  # in the flags of a share


class SessionSetupRequest(NamedTuple):
    flags: int
    token: memoryview
    previous_session_id: int


def parse_session_setup(message: memoryview) -> SessionSetupRequest:
    _, flags, _, _, _, at, length, previous = _SETUP.unpack_from(message, HEADER_BYTES)
    return SessionSetupRequest(flags, part(message, at, length), previous)


def build_session_setup(flags: int, token: bytes) -> bytes:
    return _SETUP_RESPONSE.pack(9, flags, HEADER_BYTES + _SETUP_RESPONSE.size, len(token)) + token


def parse_tree_connect(message: memoryview) -> str:
    """The path, such as \\\\server\\share."""
    _, _, at, length = _TREE_CONNECT.unpack_from(message, HEADER_BYTES)
    return text(part(message, at, length))


def build_tree_connect(kind: int, flags: int, access: int) -> bytes:
    return _TREE_RESPONSE.pack(16, kind, 0, flags, 0, access)
