"""Byte-range locks of handles. The rules are in `core/files/byte_locks.py`; this applies them in transactions."""

import asyncio
from collections.abc import Sequence

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.byte_locks import check_byte_range, is_granted, lock_to_release
from verditer.core.files.oplocks import OplockEffect, breaks_of
from verditer.core.records.file_open import FileLock
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.requests import ByteRange, LockRequest
from verditer.services.file.handles.uninterrupted import uninterrupted
from verditer.services.file.handles.using import change, look, require_file_handle, used, used_with_others
from verditer.services.file.opens import locks_of, require_breaks

replace = msgspec.structs.replace


async def lock(ctx: Context, handle: Handle, locks: Sequence[LockRequest], *, wait: bool) -> None:
    """Take all locks or none. With `wait`, wait in turn until they are free; cancelling the task ends the wait.

    Errors: ByteRangeNotGranted (without `wait`), InvalidByteRange, HandleClosed (also when the handle is closed during the
    wait), IsADirectory."""
    require_file_handle(handle)
    for one in locks:
        check_byte_range(one.start, one.length)
    with ctx.handles.waiter(handle.share_id, handle.node_id) as waiter:
        while not await _try(ctx, handle, locks):
            if not wait:
                raise StorageError(Code.ByteRangeNotGranted)
            while not await look(ctx, handle, lambda tx: _taken(tx, handle, locks) is not None):
                await waiter.wait()


async def _try(ctx: Context, handle: Handle, locks: Sequence[LockRequest]) -> bool:
    """Whether the locks were taken. A client that gives up meanwhile does not get them."""
    is_taken, was_cancelled = await uninterrupted(change(ctx, handle, lambda tx, _: _take(tx, handle, locks)))
    if was_cancelled:
        if is_taken:
            await unlock(ctx, handle, [ByteRange(one.start, one.length) for one in locks])
        raise asyncio.CancelledError
    return is_taken


def _take(tx: Transaction, handle: Handle, locks: Sequence[LockRequest]) -> bool:
    """False: one of the locks is not free. What other handles have cached of the content ends before a lock is taken."""
    found, opens = used_with_others(tx, handle)
    taken = _taken(tx, handle, locks)
    if taken is None:
        return False
    require_breaks(found.entry, breaks_of(OplockEffect.WRITES, opens, own=handle.handle_id))
    tx.put(*[replace(one, lock_id=tx.tick()) for one in taken])
    return True


def _taken(tx: Transaction, handle: Handle, locks: Sequence[LockRequest]) -> list[FileLock] | None:
    """The records of the locks, still without ids. None: one of them is not free."""
    used(tx, handle)
    held = locks_of(tx, handle.share_id, handle.node_id)
    taken: list[FileLock] = []
    for one in locks:
        if not is_granted(one.start, one.length, one.exclusive, handle.handle_id, [*held, *taken]):
            return None
        taken.append(
            FileLock(
                share_id=handle.share_id,
                node_id=handle.node_id,
                handle_id=handle.handle_id,
                lock_id=0,
                start=one.start,
                length=one.length,
                exclusive=one.exclusive,
            )
        )
    return taken


async def unlock(ctx: Context, handle: Handle, ranges: Sequence[ByteRange]) -> None:
    """Give up one lock for each range, in order; those before the first range that is not locked stay given up.

    Errors: ByteRangeNotLocked, InvalidByteRange, HandleClosed."""
    for one in ranges:
        check_byte_range(one.start, one.length)
    is_complete = await change(ctx, handle, lambda tx, _: _release(tx, handle, ranges))
    ctx.handles.touch(handle.share_id, handle.node_id)
    if not is_complete:
        raise StorageError(Code.ByteRangeNotLocked)


def _release(tx: Transaction, handle: Handle, ranges: Sequence[ByteRange]) -> bool:
    used(tx, handle)
    held = locks_of(tx, handle.share_id, handle.node_id)
    for one in ranges:
        try:
            released = lock_to_release(one.start, one.length, handle.handle_id, held)
        except StorageError:
            return False
        held.remove(released)
        tx.delete(FileLock, *released.key_parts())
    return True
