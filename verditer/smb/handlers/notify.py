"""CHANGE_NOTIFY: waits until something changes in a directory. Changes between two requests are kept for the next one."""

from verditer.core.files.access_mask import AccessMask
from verditer.services.file.handles.watching import watch
from verditer.smb.call import Call, Reply
from verditer.smb.handlers.listening import ChangeQueue
from verditer.smb.info.notifications import DELETE_PENDING, NamedChange, build_changes
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.information import WATCH_TREE, build_buffer, parse_change_notify


async def change_notify(call: Call) -> Reply:
    request = parse_change_notify(call.message)
    handle = call.file.handle
    if not handle.is_directory:
        raise SmbError(Status.INVALID_PARAMETER)
    if not handle.access & AccessMask.READ_DATA:
        raise SmbError(Status.ACCESS_DENIED)
    if call.file.notify is None:  # changes are kept from now on, even if the client does not wait for this request
        call.file.notify = ChangeQueue(handle)
        await watch(call.ctx, handle, tree=bool(request.flags & WATCH_TREE), filter=request.filter)
    changes, overflowed = await call.wait(call.file.notify.wait(), closed=Status.NOTIFY_CLEANUP)
    if any(change.action == DELETE_PENDING for change in changes):
        raise SmbError(Status.DELETE_PENDING)
    named = [NamedChange(change.action, "\\".join(change.names)) for change in changes]
    data = None if overflowed else build_changes(named, request.max_bytes)
    if data is None:
        return Reply(build_buffer(b""), Status.NOTIFY_ENUM_DIR)
    return Reply(build_buffer(data))
