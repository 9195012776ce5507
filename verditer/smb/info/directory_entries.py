"""Entries of QUERY_DIRECTORY in every class (MS-FSCC 2.4): a list in which each entry says where the next one begins.

An entry begins at a multiple of eight bytes. Entries have no short (8.3) names and no extended attributes, as in Azure Files.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from verditer.smb.info.entries import ShownEntry
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.fields import utf16

_BASE = struct.Struct("<II4QQQII")  # next entry, index, times, size, allocation, attributes, bytes of the name
_EA_SIZE = struct.Struct("<I")
_SHORT_NAME = struct.Struct("<BB24s")
_NAMES = struct.Struct("<III")
_ID = struct.Struct("<Q")
_EXTENDED_ID = struct.Struct("<IIQQ")  # EA size, reparse tag, 128-bit file id
_NO_SHORT_NAME = _SHORT_NAME.pack(0, 0, b"")
_NO_EAS = _EA_SIZE.pack(0)


def _base(entry: ShownEntry, name_bytes: int) -> bytes:
    return _BASE.pack(0, 0, *entry.times, entry.size_bytes, entry.allocation_bytes, entry.attributes, name_bytes)


def _directory(entry: ShownEntry, name_bytes: int) -> bytes:
    return _base(entry, name_bytes)


def _full(entry: ShownEntry, name_bytes: int) -> bytes:
    return _base(entry, name_bytes) + _NO_EAS


def _both(entry: ShownEntry, name_bytes: int) -> bytes:
    return _base(entry, name_bytes) + _NO_EAS + _NO_SHORT_NAME


def _names(entry: ShownEntry, name_bytes: int) -> bytes:
    return _NAMES.pack(0, 0, name_bytes)


def _id_both(entry: ShownEntry, name_bytes: int) -> bytes:
    return _both(entry, name_bytes) + b"\0\0" + _ID.pack(entry.file_id)


def _id_full(entry: ShownEntry, name_bytes: int) -> bytes:
    return _full(entry, name_bytes) + bytes(4) + _ID.pack(entry.file_id)


def _id_extended(entry: ShownEntry, name_bytes: int) -> bytes:
    return _base(entry, name_bytes) + _EXTENDED_ID.pack(0, 0, entry.file_id, 0)


def _id_extended_both(entry: ShownEntry, name_bytes: int) -> bytes:
    return _id_extended(entry, name_bytes) + _NO_SHORT_NAME


class DirectoryClass(NamedTuple):
    fixed_bytes: int
    build: Callable[[ShownEntry, int], bytes]


# fmt: off
DIRECTORY_CLASSES = {
    1:  DirectoryClass(64,  _directory),         # FileDirectoryInformation
    2:  DirectoryClass(68,  _full),              # FileFullDirectoryInformation
    3:  DirectoryClass(94,  _both),              # FileBothDirectoryInformation
    12: DirectoryClass(12,  _names),             # FileNamesInformation
    37: DirectoryClass(104, _id_both),           # FileIdBothDirectoryInformation
    38: DirectoryClass(80,  _id_full),           # FileIdFullDirectoryInformation
    60: DirectoryClass(88,  _id_extended),       # FileIdExtdDirectoryInformation
    63: DirectoryClass(114, _id_extended_both),  # FileIdExtdBothDirectoryInformation
}
# fmt: on


class EntryList:
    """Collects entries until the buffer of the client is full."""

    def __init__(self, information_class: DirectoryClass, max_bytes: int) -> None:
        if max_bytes < information_class.fixed_bytes:
            raise SmbError(Status.INFO_LENGTH_MISMATCH)
        self._class = information_class
        self._max_bytes = max_bytes
        self._data = bytearray()
        self._last_at = 0
        self.count = 0

    def add(self, entry: ShownEntry) -> bool:
        """False: there is no room. An entry that does not fit into an empty buffer never will."""
        name = utf16(entry.name)
        built = self._class.build(entry, len(name)) + name
        start = -(-len(self._data) // 8) * 8
        if start + len(built) > self._max_bytes:
            if not self.count:
                raise SmbError(Status.BUFFER_OVERFLOW)
            return False
        if self.count:
            struct.pack_into("<I", self._data, self._last_at, start - self._last_at)
            self._data += bytes(start - len(self._data))
        self._last_at = start
        self._data += built
        self.count += 1
        return True

    def data(self) -> bytes:
        return bytes(self._data)
