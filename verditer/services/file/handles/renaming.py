"""Renaming a file or directory through a handle: the entry moves, and every handle on it follows."""

from collections.abc import Sequence

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.access_mask import AccessMask
from verditer.core.files.oplocks import OplockEffect, breaks_of
from verditer.core.files.share_modes import DELETE
from verditer.core.lease import state_of
from verditer.core.names import FilePath
from verditer.core.records.file import FileEntry
from verditer.core.records.file_open import FileOpen
from verditer.core.records.tree import ROOT
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.current import Located, locate
from verditer.services.file.directories import check_parent
from verditer.services.file.files import remove_file
from verditer.services.file.handles.changes import (
    ADDED,
    NEW_NAME,
    OLD_NAME,
    REMOVED,
    name_filter,
    tell_watchers,
)
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.processes.signals import Outbox
from verditer.services.file.handles.using import Used, change_scopes, require_access, require_no_copy, used_with_others
from verditer.services.file.opens import handles_below, move_handles, opens_of, require_breaks
from verditer.services.file.properties import check_writable
from verditer.services.file.usage import add_usage

replace = msgspec.structs.replace


async def rename(ctx: Context, handle: Handle, target: FilePath, *, replace_existing: bool) -> None:
    """Errors: AccessNotGranted, SharingViolation, ResourceAlreadyExists, ParentNotFound, SMBDeletePending, HandleClosed,
    EntryInUse (a handle below the directory, or on the target), ReadOnlyAttribute (of the target)."""
    require_access(handle, AccessMask.DELETE)
    if not target.names:
        raise StorageError(Code.ResourceAlreadyExists)

    def commit(tx: Transaction, outbox: Outbox) -> FileOpen:
        found, opens = used_with_others(tx, handle)
        _check_source(tx, handle, found, opens)
        return _rename(tx, outbox, handle, found, target, replace_existing=replace_existing)

    record = await change_scopes(ctx, handle, lambda: [handle.path.scope, target.scope], commit)
    handle.path, handle.parent_id = record.file_path, record.parent_id


def _check_source(tx: Transaction, handle: Handle, found: Used, opens: Sequence[FileOpen]) -> None:
    """Other handles on the entry have to allow it to be deleted. Nothing below a directory may be open."""
    entry = found.entry
    if entry.node_id == ROOT:
        raise StorageError(Code.AccessNotGranted)
    require_no_copy(entry)
    if any(one.delete_pending for one in opens):
        raise StorageError(Code.SMBDeletePending)
    others = [one for one in opens if one.handle_id != handle.handle_id and one.access]
    require_breaks(entry, breaks_of(OplockEffect.CLOSES, others))
    if any(not one.share_mode & DELETE for one in others):
        raise StorageError(Code.SharingViolation)
    if entry.is_directory and any(one.node_id != entry.node_id for one in handles_below(tx, entry.tree_id, handle.path.folded)):
        raise StorageError(Code.EntryInUse)
    _check_parent_handles(tx, entry)


def _check_parent_handles(tx: Transaction, entry: FileEntry) -> None:
    """A handle that may delete the directory of an entry keeps the entry where it is."""
    if any(one.access & DELETE for one in opens_of(tx, entry.tree_id, entry.parent_id)):
        raise StorageError(Code.SharingViolation)


def _rename(
    tx: Transaction, outbox: Outbox, handle: Handle, found: Used, target: FilePath, *, replace_existing: bool
) -> FileOpen:
    entry, destination = found.entry, locate(tx, target)
    if entry.node_id in destination.directory_ids:
        raise StorageError(Code.EntryInUse)
    check_parent(tx, destination)
    replaced, freed_bytes = destination.entry, 0
    if replaced is not None and replaced.key() != entry.key():
        freed_bytes = _replace(tx, outbox, destination, replaced, target, replace_existing=replace_existing)
    moved = replace(
        entry,
        parent_id=destination.parent.node_id,
        name=target.names[-1],
        folded=destination.name,
        etag=tx.tick(entry.etag),
        changed=entry.changed if "changed" in handle.frozen else tx.now,
    )
    moved = found.tree.move(tx, entry, moved)
    move_handles(tx, moved, target)
    _tell(tx, outbox, handle, entry, moved, target)
    if replaced is not None:
        add_usage(tx, entry.tree_id, -freed_bytes)
    record = tx.get(FileOpen, handle.share_id, handle.node_id, handle.handle_id)
    assert record is not None, "a handle with the right to delete has a record"
    return record


def _replace(
    tx: Transaction, outbox: Outbox, destination: Located, replaced: FileEntry, target: FilePath, *, replace_existing: bool
) -> int:
    """Remove the file that has the new name. Returns how many bytes the share has less."""
    opens = opens_of(tx, replaced.tree_id, replaced.node_id)
    if any(one.delete_pending for one in opens):
        raise StorageError(Code.SMBDeletePending)
    if not replace_existing:
        raise StorageError(Code.ResourceAlreadyExists)
    require_breaks(replaced, breaks_of(OplockEffect.CLOSES, opens))
    if opens or replaced.is_directory or state_of(replaced.lease, tx.now).is_locked:
        raise StorageError(Code.EntryInUse)
    require_no_copy(replaced)
    check_writable(replaced)
    freed_bytes = remove_file(tx, destination, replaced)
    tell_watchers(tx, outbox, replaced.tree_id, target, REMOVED, name_filter(replaced))
    return freed_bytes


def _tell(tx: Transaction, outbox: Outbox, handle: Handle, entry: FileEntry, moved: FileEntry, target: FilePath) -> None:
    """Within one directory the name changed; otherwise the entry left one directory and came to another."""
    left, came = (OLD_NAME, NEW_NAME) if moved.parent_id == entry.parent_id else (REMOVED, ADDED)
    tell_watchers(tx, outbox, entry.tree_id, handle.path, left, name_filter(entry))
    tell_watchers(tx, outbox, entry.tree_id, target, came, name_filter(entry))
