"""OPLOCK_BREAK: the client acknowledges that its oplock is broken. Leases are never granted, so there is none to acknowledge."""

from verditer.core.files.oplocks import OplockLevel
from verditer.services.file.handles.oplocks import acknowledge_break
from verditer.smb.call import Call, Reply
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.locks import build_oplock_break, parse_oplock_break

_LEVELS = {int(level): level for level in OplockLevel}


async def oplock_break(call: Call) -> Reply:
    level = _LEVELS.get(parse_oplock_break(call.message))
    if level is None:
        raise SmbError(Status.INVALID_PARAMETER)
    now = await acknowledge_break(call.ctx, call.file.handle, level)
    return Reply(build_oplock_break(now, call.open.file_id))
