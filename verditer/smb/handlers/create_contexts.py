"""Contexts of CREATE (MS-SMB2 2.2.13.2), one row each: what this server does with it.

Leases, durable handles and application instances are declined: a server declines them by not answering their context. Azure Files
has no extended attributes.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from verditer.core.files.access_mask import ALL_ACCESS
from verditer.core.files.times import from_filetime
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.create import CreateContext

_LONG = struct.Struct("<Q")
_MAXIMAL_ACCESS = struct.Struct("<II")
_DISK_ID = struct.Struct("<QQ16x")


@dataclass(kw_only=True, slots=True)
class WantedContexts:
    """What the contexts of a request ask for. `version` is the time of a previous version, in ticks."""

    allocation_bytes: int = 0
    descriptor: bytes | None = None
    version: int | None = None
    wants_maximal_access: bool = False
    wants_disk_id: bool = False


def read_contexts(contexts: Iterable[CreateContext]) -> WantedContexts:
    wanted = WantedContexts()
    for context in contexts:
        read = _READERS.get(context.tag)
        if read is not None:
            read(wanted, context.data)
    return wanted


def answer_contexts(wanted: WantedContexts, file_id: int, volume_id: int) -> list[CreateContext]:
    answers = []
    if wanted.wants_maximal_access:
        answers.append(CreateContext(b"MxAc", _MAXIMAL_ACCESS.pack(Status.SUCCESS, ALL_ACCESS)))
    if wanted.wants_disk_id:
        answers.append(CreateContext(b"QFid", _DISK_ID.pack(file_id, volume_id)))
    return answers


def _maximal_access(wanted: WantedContexts, data: bytes) -> None:
    """The value may be a time: a client that knows the access from then need not be told again. It is always told."""
    if len(data) not in (0, _LONG.size):
        raise SmbError(Status.INVALID_PARAMETER)
    wanted.wants_maximal_access = True


def _disk_id(wanted: WantedContexts, data: bytes) -> None:
    if data:
        raise SmbError(Status.INVALID_PARAMETER)
    wanted.wants_disk_id = True


def _allocation(wanted: WantedContexts, data: bytes) -> None:
    wanted.allocation_bytes = _number(data)


def _descriptor(wanted: WantedContexts, data: bytes) -> None:
    wanted.descriptor = data


def _version(wanted: WantedContexts, data: bytes) -> None:
    """The time zero names the file as it is now."""
    filetime = _number(data)
    try:
        wanted.version = from_filetime(filetime) if filetime else None
    except ValueError:
        raise SmbError(Status.OBJECT_NAME_NOT_FOUND) from None


def _extended_attributes(wanted: WantedContexts, data: bytes) -> None:
    if data:
        raise SmbError(Status.EAS_NOT_SUPPORTED)


def _reconnect(wanted: WantedContexts, data: bytes) -> None:
    """No handle outlives its connection, so there is none to come back to."""
    raise SmbError(Status.OBJECT_NAME_NOT_FOUND)


def _number(data: bytes) -> int:
    if len(data) != _LONG.size:
        raise SmbError(Status.INVALID_PARAMETER)
    return int(_LONG.unpack(data)[0])


_READERS = {
    b"MxAc": _maximal_access,
    b"QFid": _disk_id,
    b"AlSi": _allocation,
    b"SecD": _descriptor,
    b"TWrp": _version,
    b"ExtA": _extended_attributes,
    b"DHnC": _reconnect,
    b"DH2C": _reconnect,
}
