"""LOCK: takes and gives up byte-range locks. The elements of one request are all locks or all unlocks."""

from collections.abc import Sequence
from itertools import takewhile

from verditer.services.file.handles.locking import lock, unlock
from verditer.services.file.handles.requests import ByteRange, LockRequest
from verditer.smb.call import Call, Reply
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.locks import EXCLUSIVE, FAIL_IMMEDIATELY, LOCKED, SHARED, UNLOCK, LockElement, parse_lock

_LOCKS = frozenset({SHARED, EXCLUSIVE, SHARED | FAIL_IMMEDIATELY, EXCLUSIVE | FAIL_IMMEDIATELY})
_MAX_END = 2**64


async def lock_ranges(call: Call) -> Reply:
    elements = parse_lock(call.message)
    if call.file.handle.is_directory:
        raise SmbError(Status.INVALID_PARAMETER)
    if elements[0].flags == UNLOCK:
        await _unlock(call, elements)
    else:
        await _lock(call, elements)
    return Reply(LOCKED)


async def _unlock(call: Call, elements: Sequence[LockElement]) -> None:
    """Ranges are given up in order: those before an element that is no unlock have been (MS-SMB2 3.3.5.14.1)."""
    unlocks = list(takewhile(lambda element: element.flags == UNLOCK, elements))
    await unlock(call.ctx, call.file.handle, [ByteRange(element.offset, element.length) for element in unlocks])
    if len(unlocks) < len(elements):
        raise SmbError(Status.INVALID_PARAMETER)


async def _lock(call: Call, elements: Sequence[LockElement]) -> None:
    """A single lock may wait for its turn; several together may not."""
    if any(element.flags not in _LOCKS for element in elements):
        raise SmbError(Status.INVALID_PARAMETER)
    waits = not elements[0].flags & FAIL_IMMEDIATELY
    if len(elements) > 1 and not all(element.flags & FAIL_IMMEDIATELY for element in elements):
        raise SmbError(Status.INVALID_PARAMETER)
    if any(element.length and element.offset + element.length > _MAX_END for element in elements):
        raise SmbError(Status.INVALID_LOCK_RANGE)
    wanted = [LockRequest(element.offset, element.length, bool(element.flags & EXCLUSIVE)) for element in elements]
    await call.wait(lock(call.ctx, call.file.handle, wanted, wait=waits), closed=Status.RANGE_NOT_LOCKED)
