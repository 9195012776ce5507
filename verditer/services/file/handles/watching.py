"""Change notification: a handle on a directory learns of the changes that SMB clients make in it (REST raises none)."""

from verditer.core.errors import Code, StorageError
from verditer.core.files.access_mask import AccessMask
from verditer.core.records.file_open import DirectoryWatch
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.using import change, require_access, used


async def watch(ctx: Context, handle: Handle, *, tree: bool, filter: int) -> None:
    """From now on changes are collected in the handle (`Handle.take_changes`), and its listener is told.

    `filter` are the bits of CompletionFilter. A later call with other values changes them.
    Errors: AccessNotGranted, NotADirectory, SMBDeletePending, HandleClosed."""
    if not handle.is_directory:
        raise StorageError(Code.NotADirectory)
    require_access(handle, AccessMask.READ_DATA)
    if handle.watched == (tree, filter) and not handle.is_closed:
        return

    def commit(tx: Transaction) -> None:
        record = used(tx, handle).record
        if record is not None and record.delete_pending:
            raise StorageError(Code.SMBDeletePending)
        tx.put(
            DirectoryWatch(
                share_id=handle.share_id,
                node_id=handle.node_id,
                handle_id=handle.handle_id,
                owner=ctx.handles.owner,
                folded_path=handle.path.folded,
                is_deep=tree,
                filter=filter,
            )
        )

    await change(ctx, handle, lambda tx, _: commit(tx))
    handle.watched = (tree, filter)
    ctx.handles.listening.set()
