"""CLOSE, FLUSH, READ and WRITE."""

from verditer.core.files.access_mask import AccessMask
from verditer.services.file.handles.closing import close_handle
from verditer.services.file.handles.data import APPEND, flush, read, write
from verditer.smb.call import Call, Reply
from verditer.smb.handlers.directory import end_of_scan
from verditer.smb.info.entries import shown
from verditer.smb.status import SmbError, Status
from verditer.smb.wire import data as wire
from verditer.smb.wire.negotiate import SmbDialect

_MAX_OFFSET = 2**63 - 1  # offsets are signed
_MAX_FILE_BYTES = 0xFFFFFFF0000  # of NTFS: what is beyond is no offset; what is beyond the largest file of a share has no room


async def close_file(call: Call) -> Reply:
    """The times and sizes of the answer are those of the file after the close; a deleted file has none."""
    flags = wire.parse_close(call.message)
    call.session.opens.remove(call.open)  # first, so that no other request finds it, and those that wait on it end
    await end_of_scan(call)
    entry = await close_handle(call.ctx, call.file.handle)
    if not flags & wire.CLOSE_WANTS_ATTRIBUTES or entry is None:
        return Reply(wire.build_close())
    seen = shown(entry)
    return Reply(
        wire.build_close(wire.CLOSE_WANTS_ATTRIBUTES, seen.times, seen.allocation_bytes, seen.size_bytes, seen.attributes)
    )


async def flush_file(call: Call) -> Reply:
    await flush(call.ctx, call.file.handle)
    return Reply(wire.FLUSHED)


async def read_file(call: Call) -> Reply:
    request = wire.parse_read(call.message)
    _check_channel(call, request.channel)
    if request.offset + request.length > _MAX_OFFSET:
        raise SmbError(Status.INVALID_PARAMETER)
    if call.file.handle.is_directory:
        raise SmbError(Status.INVALID_DEVICE_REQUEST)
    data = await read(call.ctx, call.file.handle, request.offset, request.length)
    if len(data) < request.minimum or (request.length and not data):
        raise SmbError(Status.END_OF_FILE)
    call.file.position = request.offset + len(data)
    return Reply(wire.build_read(len(data)), payload=data)


async def write_file(call: Call) -> Reply:
    """The offset that means the end of the file is one for handles that may only append."""
    request = wire.parse_write(call.message)
    _check_channel(call, request.channel)
    if request.offset != APPEND or call.file.handle.access & AccessMask.WRITE_DATA:
        end = request.offset + len(request.data)
        if end > _MAX_OFFSET or (request.data and end > _MAX_FILE_BYTES):
            raise SmbError(Status.INVALID_PARAMETER)
    if call.file.handle.is_directory:
        raise SmbError(Status.INVALID_DEVICE_REQUEST)
    count = await write(call.ctx, call.file.handle, request.offset, request.data)
    if request.offset != APPEND:
        call.file.position = request.offset + count
    return Reply(wire.build_write(count))


def _check_channel(call: Call, channel: int) -> None:
    """From 3.0 on a request may say that its data take another way than this connection, RDMA. There is none."""
    if channel and call.connection.dialect >= SmbDialect.SMB_3_0:
        raise SmbError(Status.INVALID_PARAMETER)
