"""Server-side copy: a resume key names an open of the same session as the source of chunks that go into another one."""

from collections.abc import Sequence

from verditer.core.errors import Code, StorageError
from verditer.core.files.access_mask import AccessMask
from verditer.services.file.handles import copying
from verditer.services.file.handles.requests import Chunk
from verditer.smb.call import Call, IoctlResult
from verditer.smb.opens import FILE_ID_BYTES, OpenFile
from verditer.smb.status import SmbError, Status, status_of
from verditer.smb.wire import copychunk as wire
from verditer.smb.wire.ioctl import IoctlRequest


async def request_resume_key(call: Call, request: IoctlRequest) -> IoctlResult:
    """The key is the file id: it is random, and valid in its own session only."""
    if request.max_output_bytes < wire.RESUME_KEY_OUTPUT_BYTES:
        raise SmbError(Status.INVALID_PARAMETER)
    return IoctlResult(wire.build_resume_key(call.open.file_id))


async def copy_chunk(call: Call, request: IoctlRequest) -> IoctlResult:
    """FSCTL_SRV_COPYCHUNK: the target has to be open for reading too."""
    return await _copy(call, request, AccessMask.READ_DATA | AccessMask.WRITE_DATA)


async def copy_chunk_write(call: Call, request: IoctlRequest) -> IoctlResult:
    return await _copy(call, request, AccessMask.WRITE_DATA)


async def _copy(call: Call, request: IoctlRequest, needed: int) -> IoctlResult:
    if request.max_output_bytes < wire.RESULT_BYTES:
        raise SmbError(Status.INVALID_PARAMETER)
    asked = wire.parse_copy(request.input)
    if asked is None:
        return IoctlResult(wire.build_limits(), Status.INVALID_PARAMETER)
    source = _source(call, asked.resume_key)
    if source.handle.is_directory or call.file.handle.is_directory:
        raise SmbError(Status.INVALID_DEVICE_REQUEST)
    can_read = source.handle.access & (AccessMask.READ_DATA | AccessMask.EXECUTE)
    if not can_read or needed & ~call.file.handle.access:
        raise SmbError(Status.ACCESS_DENIED)
    return await _copied(call, source, [Chunk(*chunk) for chunk in asked.chunks])


async def _copied(call: Call, source: OpenFile, chunks: Sequence[Chunk]) -> IoctlResult:
    """Chunk by chunk. The answer tells how far the copy came, also when it failed."""
    copied: list[int] = []
    status = Status.SUCCESS
    for chunk in chunks:
        try:
            copied.append(await copying.copy_chunk(call.ctx, source.handle, call.file.handle, chunk))
        except StorageError as error:
            status = Status.INVALID_VIEW_SIZE if error.code is Code.InvalidRange else status_of(error)
            break
    return IoctlResult(wire.build_copied(len(copied), sum(copied)), status)


def _source(call: Call, key: bytes) -> OpenFile:
    found = call.session.opens.find(key[:FILE_ID_BYTES])
    if not isinstance(found, OpenFile) or any(key[FILE_ID_BYTES:]):
        raise SmbError(Status.OBJECT_NAME_NOT_FOUND)
    return found
