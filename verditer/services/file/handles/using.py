"""Running an operation through a handle: the transaction finds the entry, and is run again where it has to.

A handle's record says where its entry is now. If that is not where the handle last was, the entry was renamed: the transaction
ends, because it holds the wrong scope, and runs again with the right one.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from verditer.core.errors import Code, StorageError
from verditer.core.records.file import FileEntry, Share, ShareSnapshot
from verditer.core.records.file_open import DirectoryWatch, FileLock, FileOpen, FileSignal, PendingDelete
from verditer.core.records.record import span_of
from verditer.partition.engine import Scope, Transaction
from verditer.services.activity import ActiveOperation
from verditer.services.content.receiving import write_received
from verditer.services.context import Context
from verditer.services.file.current import locate, seen, tree_of
from verditer.services.file.file_tree import FileTree
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.processes.signals import Outbox, deliver
from verditer.services.file.opens import after_breaks, opens_of
from verditer.stream.intake import Received

T = TypeVar("T")


class Used(NamedTuple):
    """What a handle leads to. `record` is None for a handle that has none."""

    share: Share
    tree: FileTree
    entry: FileEntry
    record: FileOpen | None


class HandleMoved(Exception):
    """The entry of a handle was renamed."""

    def __init__(self, record: FileOpen) -> None:
        super().__init__("the entry of the handle was renamed")
        self.record = record


def used(tx: Transaction, handle: Handle) -> Used:
    """What the handle leads to now."""
    if handle.is_transient:
        return _used_by_path(tx, handle)
    return _used_by_record(tx, handle, tx.get(FileOpen, handle.share_id, handle.node_id, handle.handle_id))


def used_with_others(tx: Transaction, handle: Handle) -> tuple[Used, list[FileOpen]]:
    """What the handle leads to now, and all handles on it."""
    opens = opens_of(tx, handle.share_id, handle.node_id)
    if handle.is_transient:
        return _used_by_path(tx, handle), opens
    own = next((one for one in opens if one.handle_id == handle.handle_id), None)
    return _used_by_record(tx, handle, own), opens


def _used_by_path(tx: Transaction, handle: Handle) -> Used:
    located = locate(tx, handle.path, handle.snapshot)
    if located.share.id != handle.share_id or located.entry is None or located.entry.node_id != handle.node_id:
        raise StorageError(Code.HandleClosed)
    return Used(located.share, located.tree, located.entry, None)


def _used_by_record(tx: Transaction, handle: Handle, record: FileOpen | None) -> Used:
    share = share_of(tx, handle)
    if record is None or share is None:
        raise StorageError(Code.HandleClosed)
    if record.folded_path != handle.path.folded or record.parent_id != handle.parent_id:
        raise HandleMoved(record)
    tree = tree_of(share)
    entry = tree.child(tx, record.parent_id, record.folded)
    if entry is None or entry.node_id != handle.node_id:
        raise StorageError(Code.HandleClosed)
    return Used(share, tree, seen(tree, tree.followed(tx, entry)), record)


def share_of(tx: Transaction, handle: Handle) -> Share | None:
    """The share of a handle, or the snapshot that it reads. None: it was deleted."""
    share = tx.get(Share, handle.share.account, handle.share.share)
    if share is None or share.id != handle.share_id or handle.snapshot is None:
        return share if share is not None and share.id == handle.share_id else None
    return tx.get(ShareSnapshot, share.id, handle.snapshot)


def require_access(handle: Handle, mask: int) -> None:
    """The handle has to have been opened with one of these rights."""
    if not handle.access & mask:
        raise StorageError(Code.AccessNotGranted)


def require_no_copy(entry: FileEntry) -> None:
    """While a copy into a file is pending, nobody changes the file, whichever handles were open before the copy began."""
    if entry.copy_pending:
        raise StorageError(Code.PendingCopyOperation)


def require_file_handle(handle: Handle) -> None:
    if handle.is_directory:
        raise StorageError(Code.IsADirectory)


def require_live(handle: Handle) -> None:
    if handle.snapshot is not None:
        raise StorageError(Code.SnapshotIsReadOnly)


async def look(ctx: Context, handle: Handle, body: Callable[[Transaction], T], *, long: bool = False) -> T:
    """Run a body that reads through a handle."""
    return await _following(ctx, handle, lambda: ctx.engine.read(handle.path.scope, body, long=long))


async def change(ctx: Context, handle: Handle, body: Callable[[Transaction, Outbox], T]) -> T:
    """Run a body that changes something through a handle. Oplocks that are in the way are broken first."""
    return await change_scopes(ctx, handle, lambda: [handle.path.scope], body)


async def change_scopes(
    ctx: Context, handle: Handle, scopes: Callable[[], Sequence[Scope]], body: Callable[[Transaction, Outbox], T]
) -> T:
    """As `change`, for a body that changes more than the entry of the handle."""

    def commit(tx: Transaction) -> tuple[T, Sequence[FileSignal]]:
        outbox = Outbox(tx, ctx.handles.owner)
        return body(tx, outbox), outbox.local

    return await _changing(ctx, handle, scopes, lambda: ctx.engine.write(scopes(), commit))


async def change_content(
    ctx: Context, handle: Handle, work: ActiveOperation, received: Received, body: Callable[[Transaction, Outbox], T]
) -> T:
    """As `change`, for a body that names bytes which were received before."""

    def commit(tx: Transaction) -> tuple[T, Sequence[FileSignal]]:
        outbox = Outbox(tx, ctx.handles.owner)
        return body(tx, outbox), outbox.local

    return await _changing(
        ctx, handle, lambda: [handle.path.scope], lambda: write_received(ctx, handle.path.scope, work, received, commit)
    )


async def _changing(
    ctx: Context,
    handle: Handle,
    scopes: Callable[[], Sequence[Scope]],
    write: Callable[[], Awaitable[tuple[T, Sequence[FileSignal]]]],
) -> T:
    require_live(handle)
    result, signals = await _following(ctx, handle, lambda: after_breaks(ctx, scopes(), write))
    deliver(ctx.handles, signals)
    return result


async def _following(ctx: Context, handle: Handle, run: Callable[[], Awaitable[T]]) -> T:
    while not handle.is_closed:
        try:
            return await run()
        except HandleMoved as moved:
            handle.path, handle.parent_id = moved.record.file_path, moved.record.parent_id
        except StorageError as error:
            if error.code is Code.HandleClosed:
                ctx.handles.lose(handle)
                await _remove_record(ctx, handle)
            raise
    raise StorageError(Code.HandleClosed)


async def _remove_record(ctx: Context, handle: Handle) -> None:
    """The file of a handle was replaced by a rename over REST, or its snapshot was deleted. Its client cannot close it."""
    if not handle.is_transient:
        await ctx.engine.write([handle.path.scope], lambda tx: _remove_if_stored(tx, handle))


def _remove_if_stored(tx: Transaction, handle: Handle) -> None:
    record = tx.get(FileOpen, handle.share_id, handle.node_id, handle.handle_id)
    if record is not None:
        remove_open(tx, record)


def remove_open(tx: Transaction, record: FileOpen) -> None:
    """Remove the record of a handle, with its locks and its watch. The last one takes the mark for deletion with it."""
    key = (record.share_id, record.node_id, record.handle_id)
    tx.delete(FileOpen, *key)
    for lock in list(tx.scan(FileLock, span_of(*key))):
        tx.delete(FileLock, *lock.key_parts())
    for watch in list(tx.scan(DirectoryWatch, span_of(*key))):
        tx.delete(DirectoryWatch, *watch.key_parts())
    if record.delete_pending and not opens_of(tx, record.share_id, record.node_id):
        tx.delete(PendingDelete, record.share_id, record.parent_id, record.node_id)
