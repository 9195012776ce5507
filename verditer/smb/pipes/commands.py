"""The commands of SMB2 on IPC$: opening, reading and writing the pipe of the server service."""

import secrets
import struct

from verditer.services.file.handles.requests import CreateAction
from verditer.smb.call import Call, IoctlResult, Reply
from verditer.smb.limits import MAX_OPENS
from verditer.smb.opens import OpenPipe, new_file_id
from verditer.smb.pipes.pipe import Pipe
from verditer.smb.pipes.rpc import RpcServer
from verditer.smb.status import SmbError, Status
from verditer.smb.wire import data as wire
from verditer.smb.wire.create import CreateResponse, Times, build_create, parse_create
from verditer.smb.wire.information import FILE_INFORMATION, build_buffer, parse_query_info
from verditer.smb.wire.ioctl import IoctlRequest

_PIPE_NAME = "srvsvc"
_NO_TIMES = Times(0, 0, 0, 0)
_NORMAL = 0x80  # the attribute that says that there are no others
_STANDARD = 5  # the only information that clients ask of a pipe
_STANDARD_LAYOUT = struct.Struct("<QQIBBH")


async def create(call: Call) -> Reply:
    call.path = name = parse_create(call.message).name
    if name.lower().removeprefix("\\").removeprefix("pipe\\") != _PIPE_NAME:
        raise SmbError(Status.OBJECT_NAME_NOT_FOUND)
    if len(call.session.opens) >= MAX_OPENS:
        raise SmbError(Status.TOO_MANY_OPENED_FILES)
    pipe = Pipe(RpcServer(call.ctx, call.session.account))
    call.opened(OpenPipe(file_id=new_file_id(secrets.randbits(63)), tree=call.tree, pipe=pipe))
    return Reply(build_create(CreateResponse(0, CreateAction.OPENED, _NO_TIMES, 4096, 0, _NORMAL, call.open.file_id)))


async def close(call: Call) -> Reply:
    call.session.opens.remove(call.open)
    return Reply(wire.build_close())


async def read(call: Call) -> Reply:
    data, status = call.pipe.read(wire.parse_read(call.message).length)
    return Reply(wire.build_read(len(data)), status, data)


async def write(call: Call) -> Reply:
    data = wire.parse_write(call.message).data
    await call.pipe.write(bytes(data))
    return Reply(wire.build_write(len(data)))


async def query_info(call: Call) -> Reply:
    request = parse_query_info(call.message)
    if request.type != FILE_INFORMATION or request.information_class != _STANDARD:
        raise SmbError(Status.NOT_SUPPORTED)
    return Reply(build_buffer(_STANDARD_LAYOUT.pack(4096, 0, 1, 1, 0, 0)[: request.max_bytes]))


async def transceive(call: Call, request: IoctlRequest) -> IoctlResult:
    """A write and the read of its answer in one request."""
    pipe = call.pipe
    await pipe.write(bytes(request.input))
    return IoctlResult(*pipe.read(request.max_output_bytes))


async def wait(call: Call, request: IoctlRequest) -> IoctlResult:
    """There is no pipe that could become free later."""
    raise SmbError(Status.OBJECT_NAME_NOT_FOUND)
