"""The bytes behind a handle: read, write, flush, resize, zero.

Share modes were checked when the handle was opened. Byte-range locks are checked by each call, in its transaction.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.access_mask import AccessMask
from verditer.core.files.attributes import FileAttributes
from verditer.core.files.byte_locks import check_read, check_write
from verditer.core.files.oplocks import OplockEffect, breaks_of
from verditer.core.limits import MAX_FILE_BYTES
from verditer.core.records.file import FileEntry
from verditer.partition.engine import Transaction
from verditer.services.content.compaction import compact, needs_compaction
from verditer.services.content.intervals import clear_range, interval_map_of, write_interval
from verditer.services.content.reading import ContentPart, body_of, content_parts, reads_many_rows, whole_body
from verditer.services.content.receiving import store_bytes
from verditer.services.context import Context
from verditer.services.file.files import in_epoch, resized
from verditer.services.file.handles.changes import LAST_WRITE, MODIFIED, SIZE, tell_watchers
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.processes.signals import Outbox
from verditer.services.file.handles.using import (
    Used,
    change,
    change_content,
    look,
    require_access,
    require_file_handle,
    require_no_copy,
    used,
    used_with_others,
)
from verditer.services.file.opens import locks_of, require_breaks
from verditer.services.file.ranges import FileContentOwner
from verditer.services.file.usage import add_usage, check_quota

replace = msgspec.structs.replace
APPEND: Final = 0xFFFFFFFFFFFFFFFF
"""The offset of a write at the end of the file."""
_READ = AccessMask.READ_DATA | AccessMask.EXECUTE
_WRITE = AccessMask.WRITE_DATA | AccessMask.APPEND_DATA
_ARCHIVE = int(FileAttributes.ARCHIVE)


async def read(ctx: Context, handle: Handle, offset: int, length: int) -> bytes:
    """Up to `length` bytes; fewer at the end of the file, none behind it. Errors: AccessNotGranted, FileLockConflict,
    HandleClosed, IsADirectory."""
    require_file_handle(handle)
    require_access(handle, _READ)

    def find(tx: Transaction, *, may_be_long: bool = False) -> tuple[list[ContentPart], int] | None:
        """None: the range may have many intervals, so it is read again beside the event loop."""
        entry = used(tx, handle).entry
        if handle.snapshot is None:
            check_read(offset, length, handle.handle_id, locks_of(tx, handle.share_id, handle.node_id))
        found = max(0, min(length, entry.size - offset))
        if reads_many_rows(entry, found) and not may_be_long:
            return None
        return content_parts(tx, entry, offset, found), found

    with ctx.activity.begin(ctx.now()) as operation:
        found = await look(ctx, handle, find)
        if found is None:
            found = await look(ctx, handle, lambda tx: find(tx, may_be_long=True), long=True)
        assert found is not None
        return await whole_body(await body_of(ctx, operation.start, *found))


async def write(ctx: Context, handle: Handle, offset: int, data: bytes | memoryview) -> int:
    """Write and make durable. The file grows as needed. Returns how many bytes were written. Up to 8 MiB at once.

    Errors: AccessNotGranted, FileLockConflict, ShareSizeLimitReached, FileTooLarge, HandleClosed, IsADirectory."""
    require_file_handle(handle)
    require_access(handle, _WRITE)
    if not data:
        await look(ctx, handle, lambda tx: used(tx, handle).entry)
        return 0
    with ctx.activity.begin(ctx.now()) as work:
        received = await store_bytes(ctx, data)

        def commit(tx: Transaction, outbox: Outbox) -> tuple[FileEntry, bool]:
            found = _used_for_writing(tx, handle)
            start = found.entry.size if offset == APPEND else offset
            end = start + received.size
            _check_write(tx, handle, found, start, end)
            current = in_epoch(found.entry, found.share)
            current = replace(current, size=max(current.size, end), intervals=write_interval(tx, current, start, received))
            changed = _put_written(tx, outbox, handle, found, current)
            return changed, needs_compaction(interval_map_of(found.entry), interval_map_of(changed))

        entry, is_crowded = await change_content(ctx, handle, work, received, commit)
    if is_crowded:
        await compact(ctx, FileContentOwner(handle.path), entry.content_id)
    return received.size


def _check_write(tx: Transaction, handle: Handle, found: Used, start: int, end: int) -> None:
    if not handle.access & AccessMask.WRITE_DATA and start < found.entry.size:
        raise StorageError(Code.AccessNotGranted)  # the right to append allows nothing else
    if end > MAX_FILE_BYTES:
        raise StorageError(Code.FileTooLarge)
    check_write(start, end - start, handle.handle_id, locks_of(tx, handle.share_id, handle.node_id))
    check_quota(tx, found.share, end - found.entry.size)


def _used_for_writing(tx: Transaction, handle: Handle) -> Used:
    """What other handles have cached of the content ends first."""
    found, opens = used_with_others(tx, handle)
    require_no_copy(found.entry)
    require_breaks(found.entry, breaks_of(OplockEffect.WRITES, opens, own=handle.handle_id))
    return found


def _put_written(tx: Transaction, outbox: Outbox, handle: Handle, found: Used, current: FileEntry) -> FileEntry:
    """Store a changed content. Times that the handle was told to leave alone stay."""
    before = found.entry
    changed = replace(
        current,
        etag=tx.tick(before.etag),
        written=before.written if "written" in handle.frozen else tx.now,
        changed=before.changed if "changed" in handle.frozen else tx.now,
        attributes=before.attributes | _ARCHIVE,
    )
    changed = found.tree.put(tx, changed, before)
    what = LAST_WRITE if changed.size == before.size else LAST_WRITE | SIZE
    tell_watchers(tx, outbox, handle.share_id, handle.path, MODIFIED, what)
    add_usage(tx, handle.share_id, changed.size - before.size)
    return changed


async def flush(ctx: Context, handle: Handle) -> None:
    """Every acknowledged write is durable already; this checks the handle only."""
    if not handle.is_directory:
        require_access(handle, _WRITE)
    await look(ctx, handle, lambda tx: used(tx, handle).entry)


async def set_end_of_file(ctx: Context, handle: Handle, size: int) -> None:
    await _change_content(ctx, handle, lambda tx, found: _resized(tx, found, size))


async def set_allocation(ctx: Context, handle: Handle, size: int) -> None:
    """A size below the end of the file cuts the file there. For a larger one there has to be room, as if it were written."""

    def resized_or_reserved(tx: Transaction, found: Used) -> FileEntry:
        check_quota(tx, found.share, size - found.entry.size)
        return _resized(tx, found, min(size, found.entry.size))

    await _change_content(ctx, handle, resized_or_reserved)
    handle.reserved_bytes = size


async def zero_range(ctx: Context, handle: Handle, start: int, end: int) -> None:
    """Bytes up to `end` (excluded) read as zeros. The size stays."""

    def zeroed(tx: Transaction, found: Used) -> FileEntry:
        last = min(end, found.entry.size)
        if start >= last:
            return found.entry
        check_write(start, last - start, handle.handle_id, locks_of(tx, handle.share_id, handle.node_id))
        current = in_epoch(found.entry, found.share)
        return replace(current, intervals=clear_range(tx, current, start, last))

    await _change_content(ctx, handle, zeroed)


def _resized(tx: Transaction, found: Used, size: int) -> FileEntry:
    if size > MAX_FILE_BYTES:
        raise StorageError(Code.FileTooLarge)
    return found.entry if size == found.entry.size else resized(tx, found, found.entry, size)


async def _change_content(ctx: Context, handle: Handle, changed: Callable[[Transaction, Used], FileEntry]) -> None:
    require_file_handle(handle)
    require_access(handle, AccessMask.WRITE_DATA)

    def commit(tx: Transaction, outbox: Outbox) -> None:
        found = _used_for_writing(tx, handle)
        _put_written(tx, outbox, handle, found, changed(tx, found))

    await change(ctx, handle, commit)
