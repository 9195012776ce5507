"""The control codes that concern files: sparse files, allocated ranges, previous versions, object ids, reparse points.

Every file is stored sparsely: bytes that were never written take no room. So a request to make a file sparse has nothing to do.
"""

import struct

from verditer.core.files.access_mask import AccessMask
from verditer.services.file.handles.copying import allocated_ranges
from verditer.services.file.handles.data import zero_range
from verditer.services.file.handles.space import share_snapshots
from verditer.smb.call import Call, IoctlResult
from verditer.smb.handlers.paths import version_token
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.fields import utf16
from verditer.smb.wire.ioctl import IoctlRequest

_RANGE = struct.Struct("<qq")
_SNAPSHOTS = struct.Struct("<III")
_SMALLEST_SNAPSHOTS = 16
_OBJECT_ID = struct.Struct("<QQ16x16x16x")
_WRITES = AccessMask.WRITE_DATA | AccessMask.APPEND_DATA


async def set_sparse(call: Call, request: IoctlRequest) -> IoctlResult:
    """Without an input the file is to become sparse. There is no other kind of file."""
    if call.file.handle.is_directory:
        raise SmbError(Status.INVALID_PARAMETER)
    if not call.file.handle.access & (_WRITES | AccessMask.WRITE_ATTRIBUTES):
        raise SmbError(Status.ACCESS_DENIED)
    if request.input and not request.input[0]:
        raise SmbError(Status.INVALID_DEVICE_REQUEST)
    return IoctlResult()


async def set_zero_data(call: Call, request: IoctlRequest) -> IoctlResult:
    start, end = _range(request)
    if start < 0 or end < start:
        raise SmbError(Status.INVALID_PARAMETER)
    if not call.file.handle.access & AccessMask.WRITE_DATA:
        raise SmbError(Status.ACCESS_DENIED)
    await zero_range(call.ctx, call.file.handle, start, end)
    return IoctlResult()


async def query_allocated_ranges(call: Call, request: IoctlRequest) -> IoctlResult:
    start, length = _range(request)
    if start < 0 or length < 0 or start + length > 2**63 - 1:
        raise SmbError(Status.INVALID_PARAMETER)
    if not call.file.handle.access & AccessMask.READ_DATA:
        raise SmbError(Status.ACCESS_DENIED)
    room = min(request.max_output_bytes, call.connection.max_io_bytes) // _RANGE.size
    found = await allocated_ranges(call.ctx, call.file.handle, start, length, room + 1)
    if found and not room:
        raise SmbError(Status.BUFFER_TOO_SMALL)
    output = b"".join(_RANGE.pack(each.start, each.length) for each in found[:room])
    return IoctlResult(output, Status.BUFFER_OVERFLOW if len(found) > room else Status.SUCCESS)


def _range(request: IoctlRequest) -> tuple[int, int]:
    if len(request.input) < _RANGE.size:
        raise SmbError(Status.INVALID_PARAMETER)
    first, second = _RANGE.unpack_from(request.input)
    return first, second


async def enumerate_snapshots(call: Call, request: IoctlRequest) -> IoctlResult:
    """The share's snapshots, newest first. A client without room for them is told how much it needs."""
    if request.max_output_bytes < _SMALLEST_SNAPSHOTS:
        raise SmbError(Status.INVALID_PARAMETER)
    tokens = [version_token(ticks) for ticks in await share_snapshots(call.ctx, call.file.handle.share)]
    names = utf16("".join(token + "\0" for token in dict.fromkeys(tokens)) + "\0")
    fits = _SNAPSHOTS.size + len(names) <= request.max_output_bytes
    count = len(dict.fromkeys(tokens))
    header = _SNAPSHOTS.pack(count, count if fits else 0, len(names))
    return IoctlResult((header + names if fits else header).ljust(_SMALLEST_SNAPSHOTS, b"\0"))


async def object_id(call: Call, request: IoctlRequest) -> IoctlResult:
    """An id that stays for the life of the file: that of the file and that of its share."""
    if request.max_output_bytes < _OBJECT_ID.size:
        raise SmbError(Status.INVALID_PARAMETER)
    return IoctlResult(_OBJECT_ID.pack(call.file.handle.node_id, call.file.handle.share_id))


async def get_reparse_point(call: Call, request: IoctlRequest) -> IoctlResult:
    raise SmbError(Status.NOT_A_REPARSE_POINT)


async def set_reparse_point(call: Call, request: IoctlRequest) -> IoctlResult:
    raise SmbError(Status.NOT_SUPPORTED)
