"""Information classes of QUERY_INFO about a file or directory (MS-FSCC 2.4), one row each: what it needs, its size, its bytes."""

import struct
from collections.abc import Callable
from typing import NamedTuple

from verditer.core.files.access_mask import AccessMask
from verditer.smb.info.entries import ShownEntry
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.fields import utf16

_BASIC = struct.Struct("<4QII")
_STANDARD = struct.Struct("<QQIBBH")
_NUMBER = struct.Struct("<I")
_LONG = struct.Struct("<Q")
_STREAM = struct.Struct("<IIQQ")
_COMPRESSION = struct.Struct("<QHBBB3s")
_NETWORK_OPEN = struct.Struct("<4QQQII")
_PAIR = struct.Struct("<II")
_ID = struct.Struct("<QQQ")


class FileState(NamedTuple):
    """A file as one of its handles sees it. `path` begins with a backslash and has no share name."""

    entry: ShownEntry
    path: str
    delete_pending: bool
    access: int
    position: int
    mode: int
    volume_id: int


def _basic(state: FileState) -> bytes:
    return _BASIC.pack(*state.entry.times, state.entry.attributes, 0)


def _standard(state: FileState) -> bytes:
    """A file that is going to be deleted has no link any more."""
    entry = state.entry
    links = entry.links - state.delete_pending
    return _STANDARD.pack(entry.allocation_bytes, entry.size_bytes, links, state.delete_pending, entry.is_directory, 0)


def _internal(state: FileState) -> bytes:
    return _LONG.pack(state.entry.file_id)


def _ea_size(state: FileState) -> bytes:
    return _NUMBER.pack(0)


def _access(state: FileState) -> bytes:
    return _NUMBER.pack(state.access)


def _position(state: FileState) -> bytes:
    return _LONG.pack(state.position)


def _mode(state: FileState) -> bytes:
    return _NUMBER.pack(state.mode)


def _alignment(state: FileState) -> bytes:
    return _NUMBER.pack(0)


def _all(state: FileState) -> bytes:
    parts = (_basic, _standard, _internal, _ea_size, _access, _position, _mode, _alignment)
    name = utf16(state.path)
    return b"".join(part(state) for part in parts) + _NUMBER.pack(len(name)) + name


def _no_short_name(state: FileState) -> bytes:
    """Not that this name does not exist: smbclient would give up on the file."""
    raise SmbError(Status.NOT_SUPPORTED)


def _streams(state: FileState) -> bytes:
    """A file has its unnamed stream and no other; a directory has none."""
    if state.entry.is_directory:
        return b""
    name = utf16("::$DATA")
    return _STREAM.pack(0, len(name), state.entry.size_bytes, state.entry.allocation_bytes) + name


def _compression(state: FileState) -> bytes:
    return _COMPRESSION.pack(state.entry.size_bytes, 0, 0, 0, 0, b"")


def _network_open(state: FileState) -> bytes:
    entry = state.entry
    return _NETWORK_OPEN.pack(*entry.times, entry.allocation_bytes, entry.size_bytes, entry.attributes, 0)


def _attribute_tag(state: FileState) -> bytes:
    return _PAIR.pack(state.entry.attributes, 0)


def _no_eas(state: FileState) -> bytes:
    raise SmbError(Status.NO_EAS_ON_FILE)


def _normalized_name(state: FileState) -> bytes:
    name = utf16(state.path.removeprefix("\\"))
    return _NUMBER.pack(len(name)) + name


def _id(state: FileState) -> bytes:
    return _ID.pack(state.volume_id, state.entry.file_id, 0)


class FileClass(NamedTuple):
    """`fixed_bytes`: a smaller output buffer is refused. `access`: what the handle has to be open for."""

    fixed_bytes: int
    build: Callable[[FileState], bytes]
    access: int = 0
    since_dialect: int = 0


# fmt: off
FILE_CLASSES = {
    4:  FileClass(40,  _basic, AccessMask.READ_ATTRIBUTES),
    5:  FileClass(24,  _standard),
    6:  FileClass(8,   _internal),
    7:  FileClass(4,   _ea_size),
    8:  FileClass(4,   _access),
    14: FileClass(8,   _position),
    15: FileClass(8,   _no_eas, AccessMask.READ_EA),
    16: FileClass(4,   _mode),
    17: FileClass(4,   _alignment),
    18: FileClass(104, _all, AccessMask.READ_ATTRIBUTES),
    21: FileClass(8,   _no_short_name),
    22: FileClass(32,  _streams),
    28: FileClass(16,  _compression),
    34: FileClass(56,  _network_open, AccessMask.READ_ATTRIBUTES),
    35: FileClass(8,   _attribute_tag, AccessMask.READ_ATTRIBUTES),
    48: FileClass(8,   _normalized_name, since_dialect=0x0311),
    59: FileClass(24,  _id),
}
# fmt: on


def file_information(number: int, state: FileState, max_bytes: int, dialect: int) -> tuple[bytes, Status]:
    row = FILE_CLASSES.get(number)
    if row is None:
        raise SmbError(Status.INVALID_INFO_CLASS)
    if dialect < row.since_dialect:
        raise SmbError(Status.NOT_SUPPORTED)
    if row.access & ~state.access:
        raise SmbError(Status.ACCESS_DENIED)
    return cut(row.build(state), row.fixed_bytes, max_bytes)


def cut(data: bytes, fixed_bytes: int, max_bytes: int) -> tuple[bytes, Status]:
    """What fits into the buffer of the client: all of the fixed part, or nothing."""
    if max_bytes < fixed_bytes:
        raise SmbError(Status.INFO_LENGTH_MISMATCH)
    return (data, Status.SUCCESS) if len(data) <= max_bytes else (data[:max_bytes], Status.BUFFER_OVERFLOW)
