"""Marking a file or directory for deletion through a handle, and taking the mark off again (contract F3)."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.access_mask import AccessMask
from verditer.core.files.attributes import FileAttributes
from verditer.core.records.file_open import FileOpen, PendingDelete
from verditer.core.records.tree import ROOT
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.handles.closing import mark_for_deletion
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.processes.signals import Outbox
from verditer.services.file.handles.using import Used, change, require_access, require_no_copy, used_with_others

replace = msgspec.structs.replace
_READ_ONLY = int(FileAttributes.READ_ONLY)


async def set_disposition(ctx: Context, handle: Handle, *, delete: bool) -> None:
    """Mark the entry for deletion with its last handle, or take the mark off.

    Errors: AccessNotGranted, CannotDeleteReadOnly, DirectoryNotEmpty, HandleClosed."""
    require_access(handle, AccessMask.DELETE)

    def commit(tx: Transaction, outbox: Outbox) -> None:
        found, opens = used_with_others(tx, handle)
        if delete:
            _check_deletable(tx, found)
            mark_for_deletion(tx, outbox, found.entry, opens)
        else:
            _unmark(tx, found, opens)

    await change(ctx, handle, commit)


def _check_deletable(tx: Transaction, found: Used) -> None:
    entry = found.entry
    require_no_copy(entry)
    if entry.attributes & _READ_ONLY or entry.node_id == ROOT:
        raise StorageError(Code.CannotDeleteReadOnly)
    if entry.is_directory and not found.tree.is_empty(tx, entry.node_id):
        raise StorageError(Code.DirectoryNotEmpty)


def _unmark(tx: Transaction, found: Used, opens: list[FileOpen]) -> None:
    """The entry is an ordinary one again. A handle that was opened to delete it on close still does."""
    for one in opens:
        if one.delete_pending:
            tx.put(replace(one, delete_pending=False))
    entry = found.entry
    tx.delete(PendingDelete, entry.tree_id, entry.parent_id, entry.node_id)
