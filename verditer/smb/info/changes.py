"""Buffers of SET_INFO about a file (MS-FSCC 2.4): bytes become values. Files change in `smb/handlers/set_info.py`."""

import struct
from typing import NamedTuple

from verditer.core.dates import MAX_TICKS
from verditer.core.files.times import FILETIME_EPOCH, from_filetime
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.fields import text

BASIC, RENAME, LINK, DISPOSITION, POSITION, FULL_EA, MODE = 4, 10, 11, 13, 14, 15, 16
ALLOCATION, END_OF_FILE, VALID_DATA_LENGTH, SHORT_NAME, DISPOSITION_EX, RENAME_EX = 19, 20, 39, 40, 64, 65

_BASIC = struct.Struct("<4qI")
_RENAME = struct.Struct("<I4xQI")
_NUMBER = struct.Struct("<I")
_SIGNED = struct.Struct("<q")
_MAX_FILETIME = MAX_TICKS - FILETIME_EPOCH
_FREEZE, _THAW = -1, -2
_REPLACE_IF_EXISTS, _POSIX_SEMANTICS, _IGNORE_READ_ONLY = 0x1, 0x2, 0x40


class BasicInformation(NamedTuple):
    """Times as ticks; None keeps a time. Field names in `frozen` do not move by themselves any more, those in `thawed` do again.
    `attributes` 0 keeps the attributes."""

    created: int | None
    accessed: int | None
    written: int | None
    changed: int | None
    frozen: frozenset[str]
    thawed: frozenset[str]
    attributes: int


class RenameChange(NamedTuple):
    name: str
    replaces: bool
    ignores_read_only: bool = False


def parse_basic(buffer: memoryview) -> BasicInformation:
    if len(buffer) < _BASIC.size:
        raise SmbError(Status.INFO_LENGTH_MISMATCH)
    *times, attributes = _BASIC.unpack_from(buffer)
    names = ("created", "accessed", "written", "changed")
    frozen = frozenset(name for name, time in zip(names, times, strict=True) if time == _FREEZE)
    thawed = frozenset(name for name, time in zip(names, times, strict=True) if time == _THAW)
    created, accessed, written, changed = map(_ticks, times)
    return BasicInformation(created, accessed, written, changed, frozen, thawed, attributes)


def _ticks(filetime: int) -> int | None:
    if filetime in (0, _FREEZE, _THAW):
        return None
    if filetime < _THAW:
        raise SmbError(Status.INVALID_PARAMETER)
    return from_filetime(min(filetime, _MAX_FILETIME))


def parse_rename(buffer: memoryview, *, extended: bool) -> RenameChange:
    """The extended form has flags where the other one has a byte."""
    if len(buffer) < _RENAME.size:
        raise SmbError(Status.INFO_LENGTH_MISMATCH)
    flags, root, name_bytes = _RENAME.unpack_from(buffer)
    name = buffer[_RENAME.size : _RENAME.size + name_bytes]
    if root or len(name) != name_bytes or not name_bytes:
        raise SmbError(Status.INVALID_PARAMETER)
    if not extended:
        return RenameChange(text(name), bool(flags & 0xFF))
    if flags & _POSIX_SEMANTICS:
        raise SmbError(Status.NOT_SUPPORTED)
    return RenameChange(text(name), bool(flags & _REPLACE_IF_EXISTS), bool(flags & _IGNORE_READ_ONLY))


def parse_number(buffer: memoryview) -> int:
    if len(buffer) < _NUMBER.size:
        raise SmbError(Status.INFO_LENGTH_MISMATCH)
    return int(_NUMBER.unpack_from(buffer)[0])


def parse_byte(buffer: memoryview) -> int:
    if not buffer:
        raise SmbError(Status.INFO_LENGTH_MISMATCH)
    return buffer[0]


def parse_size(buffer: memoryview) -> int:
    """A size or an offset: a signed number that is not negative."""
    if len(buffer) < _SIGNED.size:
        raise SmbError(Status.INFO_LENGTH_MISMATCH)
    size = int(_SIGNED.unpack_from(buffer)[0])
    if size < 0:
        raise SmbError(Status.INVALID_PARAMETER)
    return size
