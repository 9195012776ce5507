"""Control codes that concern the connection instead of a file."""

import struct

from verditer.smb.call import Call, IoctlResult
from verditer.smb.dispatch import ConnectionBroken
from verditer.smb.setup.negotiate import SIGNING_ENABLED_AND_REQUIRED
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.ioctl import IoctlRequest
from verditer.smb.wire.negotiate import SmbDialect

_REQUEST = struct.Struct("<I16sHH")
_ANSWER = struct.Struct("<I16sHH")


async def validate_negotiate_info(call: Call, request: IoctlRequest) -> IoctlResult:
    """The client repeats under a signature what it sent in NEGOTIATE. A difference means that somebody changed it on its way
    (MS-SMB2 3.3.5.15.12)."""
    negotiated = call.connection.negotiated
    if negotiated is None or negotiated.dialect == SmbDialect.SMB_3_1_1:
        raise ConnectionBroken("FSCTL_VALIDATE_NEGOTIATE_INFO with 3.1.1")
    if request.max_output_bytes < _ANSWER.size:
        raise ConnectionBroken("FSCTL_VALIDATE_NEGOTIATE_INFO without room for its answer")
    if _sent_again(bytes(request.input)) != negotiated.request[:4]:
        raise ConnectionBroken("the negotiation was changed on its way")
    return IoctlResult(
        _ANSWER.pack(negotiated.capabilities, call.connection.server.guid, SIGNING_ENABLED_AND_REQUIRED, negotiated.dialect)
    )


def _sent_again(data: bytes) -> tuple[tuple[int, ...], int, int, bytes]:
    if len(data) < _REQUEST.size:
        raise ConnectionBroken("FSCTL_VALIDATE_NEGOTIATE_INFO is too short")
    capabilities, guid, mode, count = _REQUEST.unpack_from(data)
    if _REQUEST.size + 2 * count > len(data):
        raise ConnectionBroken("FSCTL_VALIDATE_NEGOTIATE_INFO is too short")
    return struct.unpack_from(f"<{count}H", data, _REQUEST.size), mode, capabilities, guid


async def dfs_referrals(call: Call, request: IoctlRequest) -> IoctlResult:
    """There is no DFS here."""
    raise SmbError(Status.FS_DRIVER_REQUIRED)


async def network_interfaces(call: Call, request: IoctlRequest) -> IoctlResult:
    """For several connections of one session, which are not offered."""
    raise SmbError(Status.NOT_SUPPORTED)
