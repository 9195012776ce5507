"""Information classes of QUERY_INFO about the file system (MS-FSCC 2.5). A share is a volume; its quota is the volume's size."""

import struct
from collections.abc import Callable
from typing import NamedTuple

from verditer.smb.info.files import cut
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.fields import utf16

_VOLUME = struct.Struct("<QIIBB")
_SIZE = struct.Struct("<QQII")
_DEVICE = struct.Struct("<II")
_ATTRIBUTE = struct.Struct("<III")
_FULL_SIZE = struct.Struct("<QQQII")
_SECTOR_SIZE = struct.Struct("<7I")

SECTOR_BYTES = 512
PHYSICAL_SECTOR_BYTES = 4096
UNIT_SECTORS = 64  # 32 KiB: the Linux client preallocates with one write for each unit
UNIT_BYTES = SECTOR_BYTES * UNIT_SECTORS
_DISK, _MOUNTED = 0x7, 0x20
_ALIGNED, _PARTITION_ALIGNED = 0x1, 0x2
_CASE_SENSITIVE_SEARCH, _CASE_PRESERVED, _UNICODE, _PERSISTENT_ACLS = 0x1, 0x2, 0x4, 0x8
_MAX_NAME = 255


class VolumeState(NamedTuple):
    """`created` is a FILETIME. `free_bytes` is what the quota leaves."""

    label: str
    id: int
    created: int
    total_bytes: int
    free_bytes: int


def _volume(state: VolumeState) -> bytes:
    label = utf16(state.label)
    return _VOLUME.pack(state.created, state.id & 0xFFFFFFFF, len(label), 0, 0) + label


def _size(state: VolumeState) -> bytes:
    return _SIZE.pack(state.total_bytes // UNIT_BYTES, state.free_bytes // UNIT_BYTES, UNIT_SECTORS, SECTOR_BYTES)


def _device(state: VolumeState) -> bytes:
    """As a server sees its own volume: that it is remote, only the client knows."""
    return _DEVICE.pack(_DISK, _MOUNTED)


def _attributes(state: VolumeState) -> bytes:
    """NTFS sets the first bit, which says that the file system could compare names exactly."""
    name = utf16("NTFS")
    flags = _CASE_SENSITIVE_SEARCH | _CASE_PRESERVED | _UNICODE | _PERSISTENT_ACLS
    return _ATTRIBUTE.pack(flags, _MAX_NAME, len(name)) + name


def _full_size(state: VolumeState) -> bytes:
    free = state.free_bytes // UNIT_BYTES
    return _FULL_SIZE.pack(state.total_bytes // UNIT_BYTES, free, free, UNIT_SECTORS, SECTOR_BYTES)


def _object_id(state: VolumeState) -> bytes:
    return state.id.to_bytes(16, "little") + bytes(48)


def _sector_size(state: VolumeState) -> bytes:
    physical = PHYSICAL_SECTOR_BYTES
    return _SECTOR_SIZE.pack(SECTOR_BYTES, physical, physical, physical, _ALIGNED | _PARTITION_ALIGNED, 0, 0)


class VolumeClass(NamedTuple):
    fixed_bytes: int
    build: Callable[[VolumeState], bytes]


VOLUME_CLASSES = {
    1: VolumeClass(24, _volume),
    3: VolumeClass(24, _size),
    4: VolumeClass(8, _device),
    5: VolumeClass(16, _attributes),
    7: VolumeClass(32, _full_size),
    8: VolumeClass(64, _object_id),
    11: VolumeClass(28, _sector_size),
}
_QUOTAS = 6  # FileFsControlInformation


def volume_information(number: int, state: VolumeState, max_bytes: int) -> tuple[bytes, Status]:
    if number == _QUOTAS:
        raise SmbError(Status.NOT_SUPPORTED)
    row = VOLUME_CLASSES.get(number)
    if row is None:
        raise SmbError(Status.INVALID_INFO_CLASS)
    return cut(row.build(state), row.fixed_bytes, max_bytes)
