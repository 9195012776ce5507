"""SET_INFO: changes of times, attributes, size, name and security descriptor, and marks for deletion, one row for each class."""

from collections.abc import Awaitable, Callable

from verditer.core.files.access_mask import AccessMask
from verditer.core.files.attributes import FileAttributes
from verditer.core.files.security_descriptor import SecurityParts
from verditer.services.file.handles.data import set_allocation, set_end_of_file
from verditer.services.file.handles.deleting import set_disposition
from verditer.services.file.handles.renaming import rename
from verditer.services.file.handles.requests import BasicChange, FreezableTime
from verditer.services.file.handles.state import entry_of, set_security, set_times_and_attributes
from verditer.smb.call import Call, Reply
from verditer.smb.handlers.paths import requested_path
from verditer.smb.info import changes
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.information import (
    FILE_INFORMATION,
    FILE_SYSTEM_INFORMATION,
    INFORMATION_SET,
    SECURITY_INFORMATION,
    SetInfoRequest,
    parse_set_info,
)

_OWNER_GROUP_DACL = SecurityParts.OWNER | SecurityParts.GROUP | SecurityParts.DACL
_SETTABLE_MODES = 0x0000003E
_DELETE = 0x1  # of FileDispositionInformationEx


async def set_info(call: Call) -> Reply:
    request = parse_set_info(call.message)
    if request.type == FILE_INFORMATION:
        row = _SETTERS.get(request.information_class)
        if row is None:
            raise SmbError(Status.INVALID_INFO_CLASS)
        await row(call, request.buffer)
    elif request.type == SECURITY_INFORMATION:
        await _security(call, request)
    elif request.type == FILE_SYSTEM_INFORMATION:
        raise SmbError(Status.INVALID_INFO_CLASS)
    else:
        raise SmbError(Status.NOT_SUPPORTED)
    return Reply(INFORMATION_SET)


async def _security(call: Call, request: SetInfoRequest) -> None:
    """Audit rules and labels need rights that an account key does not have."""
    parts = request.additional & _OWNER_GROUP_DACL
    if request.additional & SecurityParts.SACL or not parts:
        raise SmbError(Status.ACCESS_DENIED)
    await set_security(call.ctx, call.file.handle, bytes(request.buffer), parts)


async def _basic(call: Call, buffer: memoryview) -> None:
    asked = changes.parse_basic(buffer)
    handle = call.file.handle
    refused = FileAttributes.TEMPORARY if handle.is_directory else FileAttributes.DIRECTORY
    if asked.attributes & refused:
        raise SmbError(Status.INVALID_PARAMETER)
    change = BasicChange(
        created=asked.created,
        accessed=asked.accessed,
        written=asked.written,
        changed=asked.changed,
        attributes=asked.attributes or None,
        freezes=_freezable(asked.frozen),
        thaws=_freezable(asked.thawed),
    )
    await set_times_and_attributes(call.ctx, handle, change)


def _freezable(names: frozenset[str]) -> frozenset[FreezableTime]:
    """The creation time never moves by itself, so that there is nothing to freeze."""
    return frozenset(FreezableTime(name) for name in names if name != "created")


async def _rename(call: Call, buffer: memoryview) -> None:
    await _rename_to(call, changes.parse_rename(buffer, extended=False))


async def _rename_extended(call: Call, buffer: memoryview) -> None:
    asked = changes.parse_rename(buffer, extended=True)
    if asked.ignores_read_only:
        raise SmbError(Status.NOT_SUPPORTED)
    await _rename_to(call, asked)


async def _rename_to(call: Call, asked: changes.RenameChange) -> None:
    requested = requested_path(call.file.handle.share, asked.name)
    if requested.version is not None or not requested.path.names:
        raise SmbError(Status.OBJECT_NAME_INVALID)
    await rename(call.ctx, call.file.handle, requested.path, replace_existing=asked.replaces)


async def _disposition(call: Call, buffer: memoryview) -> None:
    await set_disposition(call.ctx, call.file.handle, delete=bool(changes.parse_byte(buffer)))


async def _disposition_extended(call: Call, buffer: memoryview) -> None:
    """Only what the plain class offers: a client that is refused falls back to it."""
    flags = changes.parse_number(buffer)
    if flags & ~_DELETE:
        raise SmbError(Status.NOT_SUPPORTED)
    await set_disposition(call.ctx, call.file.handle, delete=bool(flags & _DELETE))


async def _position(call: Call, buffer: memoryview) -> None:
    call.file.position = changes.parse_size(buffer)


async def _mode(call: Call, buffer: memoryview) -> None:
    mode = changes.parse_number(buffer)
    if mode & ~_SETTABLE_MODES:
        raise SmbError(Status.INVALID_PARAMETER)
    call.file.mode = mode


async def _allocation(call: Call, buffer: memoryview) -> None:
    await set_allocation(call.ctx, call.file.handle, changes.parse_size(buffer))


async def _end_of_file(call: Call, buffer: memoryview) -> None:
    await set_end_of_file(call.ctx, call.file.handle, changes.parse_size(buffer))


async def _valid_data_length(call: Call, buffer: memoryview) -> None:
    """What was never written reads as zeros, so everything up to the end of a file is valid already."""
    size = changes.parse_size(buffer)
    handle = call.file.handle
    if not handle.access & AccessMask.WRITE_DATA:
        raise SmbError(Status.ACCESS_DENIED)
    if handle.is_directory or size > (await entry_of(call.ctx, handle)).entry.size:
        raise SmbError(Status.INVALID_PARAMETER)


async def _no_links(call: Call, buffer: memoryview) -> None:
    raise SmbError(Status.NOT_SUPPORTED)


async def _no_extended_attributes(call: Call, buffer: memoryview) -> None:
    raise SmbError(Status.EAS_NOT_SUPPORTED)


_SETTERS: dict[int, Callable[[Call, memoryview], Awaitable[None]]] = {
    changes.BASIC: _basic,
    changes.RENAME: _rename,
    changes.LINK: _no_links,
    changes.DISPOSITION: _disposition,
    changes.POSITION: _position,
    changes.FULL_EA: _no_extended_attributes,
    changes.MODE: _mode,
    changes.ALLOCATION: _allocation,
    changes.END_OF_FILE: _end_of_file,
    changes.VALID_DATA_LENGTH: _valid_data_length,
    changes.SHORT_NAME: _no_links,
    changes.DISPOSITION_EX: _disposition_extended,
    changes.RENAME_EX: _rename_extended,
}
