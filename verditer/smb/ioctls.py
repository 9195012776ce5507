"""IOCTL and the table of control codes that it serves. Every other code is answered with INVALID_DEVICE_REQUEST."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from verditer.smb.call import Call, IoctlResult, Reply
from verditer.smb.dispatch import find_open
from verditer.smb.handlers import copying
from verditer.smb.handlers import ioctl as files
from verditer.smb.pipes import commands as pipes
from verditer.smb.setup import validate
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.ioctl import FILE_ID_AT, IS_FSCTL, IoctlRequest, build_ioctl, parse_ioctl


class Fsctl(NamedTuple):
    """`needs_open`: the request names a file or a pipe. Otherwise it concerns the connection or the tree."""

    code: int
    name: str
    handler: Callable[[Call, IoctlRequest], Awaitable[IoctlResult]]
    needs_open: bool = True
    of_pipes: bool = False


FSCTLS = (
    Fsctl(0x00060194, "DFS_GET_REFERRALS", validate.dfs_referrals, needs_open=False),
    Fsctl(0x000601B0, "DFS_GET_REFERRALS_EX", validate.dfs_referrals, needs_open=False),
    Fsctl(0x00140204, "VALIDATE_NEGOTIATE_INFO", validate.validate_negotiate_info, needs_open=False),
    Fsctl(0x001401FC, "QUERY_NETWORK_INTERFACE_INFO", validate.network_interfaces, needs_open=False),
    Fsctl(0x00110018, "PIPE_WAIT", pipes.wait, needs_open=False),
    Fsctl(0x0011C017, "PIPE_TRANSCEIVE", pipes.transceive, of_pipes=True),
    Fsctl(0x00140078, "SRV_REQUEST_RESUME_KEY", copying.request_resume_key),
    Fsctl(0x001440F2, "SRV_COPYCHUNK", copying.copy_chunk),
    Fsctl(0x001480F2, "SRV_COPYCHUNK_WRITE", copying.copy_chunk_write),
    Fsctl(0x00144064, "SRV_ENUMERATE_SNAPSHOTS", files.enumerate_snapshots),
    Fsctl(0x000900C0, "CREATE_OR_GET_OBJECT_ID", files.object_id),
    Fsctl(0x000900A8, "GET_REPARSE_POINT", files.get_reparse_point),
    Fsctl(0x000900A4, "SET_REPARSE_POINT", files.set_reparse_point),
    Fsctl(0x000900C4, "SET_SPARSE", files.set_sparse),
    Fsctl(0x000980C8, "SET_ZERO_DATA", files.set_zero_data),
    Fsctl(0x000940CF, "QUERY_ALLOCATED_RANGES", files.query_allocated_ranges),
)
_BY_CODE = {row.code: row for row in FSCTLS}


async def ioctl(call: Call) -> Reply:
    request = parse_ioctl(call.message)
    if not request.flags & IS_FSCTL:
        raise SmbError(Status.NOT_SUPPORTED)
    row = _BY_CODE.get(request.code)
    if row is None or row.needs_open:
        call.open = call.chain.open = find_open(call, FILE_ID_AT)
    if row is None or (row.needs_open and row.of_pipes is not call.tree.is_pipe):
        raise SmbError(Status.INVALID_DEVICE_REQUEST)
    output, status = await row.handler(call, request)
    if status is not Status.SUCCESS and not output:
        raise SmbError(status)
    return Reply(build_ioctl(request.code, request.file_id, output), status)
