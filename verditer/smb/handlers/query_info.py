"""QUERY_INFO: about a file, its volume or its security descriptor."""

import struct

from verditer.core.dates import truncate
from verditer.core.files.security_descriptor import SecurityParts
from verditer.core.files.times import to_filetime
from verditer.services.file.handles.space import share_space
from verditer.services.file.handles.state import entry_of, get_security
from verditer.smb.call import Call, Reply
from verditer.smb.handlers.paths import shown_path
from verditer.smb.info.entries import shown
from verditer.smb.info.files import FileState, file_information
from verditer.smb.info.volume import VolumeState, volume_information
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.information import (
    FILE_INFORMATION,
    FILE_SYSTEM_INFORMATION,
    QUOTA_INFORMATION,
    SECURITY_INFORMATION,
    QueryInfoRequest,
    build_buffer,
    parse_query_info,
)


async def query_info(call: Call) -> Reply:
    request = parse_query_info(call.message)
    if request.type == FILE_INFORMATION:
        return await _about_file(call, request)
    if request.type == FILE_SYSTEM_INFORMATION:
        return await _about_volume(call, request)
    if request.type == SECURITY_INFORMATION:
        return await _about_security(call, request)
    raise SmbError(Status.NOT_SUPPORTED if request.type == QUOTA_INFORMATION else Status.INVALID_PARAMETER)


async def _about_file(call: Call, request: QueryInfoRequest) -> Reply:
    handle = call.file.handle
    state = await entry_of(call.ctx, handle)
    seen = FileState(
        entry=shown(state.entry, handle.reserved_bytes),
        path=shown_path(handle.path),
        delete_pending=state.delete_pending,
        access=handle.access,
        position=call.file.position,
        mode=call.file.mode,
        volume_id=handle.share_id,
    )
    data, status = file_information(request.information_class, seen, request.max_bytes, call.connection.dialect)
    return Reply(build_buffer(data), status)


async def _about_volume(call: Call, request: QueryInfoRequest) -> Reply:
    """The id of a share is the tick of its creation."""
    handle = call.file.handle
    space = await share_space(call.ctx, handle.share)
    state = VolumeState(
        label=handle.share.share,
        id=handle.share_id,
        created=to_filetime(truncate(handle.share_id)),
        total_bytes=space.total_bytes,
        free_bytes=space.free_bytes,
    )
    data, status = volume_information(request.information_class, state, request.max_bytes)
    return Reply(build_buffer(data), status)


async def _about_security(call: Call, request: QueryInfoRequest) -> Reply:
    """The audit rules need a right that an account key does not have. A buffer that is too small is told the size it needs."""
    if request.additional & SecurityParts.SACL:
        raise SmbError(Status.ACCESS_DENIED)
    data = await get_security(call.ctx, call.file.handle, request.additional)
    if len(data) > request.max_bytes:
        raise SmbError(Status.BUFFER_TOO_SMALL, struct.pack("<I", len(data)))
    return Reply(build_buffer(data))
