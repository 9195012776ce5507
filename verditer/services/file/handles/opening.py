"""Opening files and directories: one transaction checks the open table, creates or overwrites, and records the handle.

An open of what exists changes only volatile records, so nobody waits for the disk. A handle that is closed within its own
compound and has no access to content needs no record at all.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.access_mask import AccessMask, file_access, is_attribute_only
from verditer.core.files.attributes import FileAttributes
from verditer.core.files.oplocks import NONE, OplockEffect, OplockLevel, breaks_of, granted_oplock
from verditer.core.files.share_modes import DELETE, WRITE, check_open, conflicts
from verditer.core.lease import state_of
from verditer.core.limits import MAX_HANDLES, MAX_ROOT_HANDLES
from verditer.core.names import FilePath
from verditer.core.records.file import FileEntry, ShareSnapshot
from verditer.core.records.file_open import FileLock, FileOpen
from verditer.core.records.record import span_of
from verditer.core.records.tree import ROOT
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.current import Located, locate
from verditer.services.file.directories import check_parent
from verditer.services.file.handles.changes import ADDED, MODIFIED, SIZE, name_filter, tell_watchers
from verditer.services.file.handles.closing import close_handle
from verditer.services.file.handles.handle import Handle, HandleListener
from verditer.services.file.handles.new_entries import new_directory, new_file, overwritten
from verditer.services.file.handles.processes.owners import OwnerLost, require_owner
from verditer.services.file.handles.processes.signals import Outbox, begin_write, deliver
from verditer.services.file.handles.requests import Client, CreateAction, CreateDisposition, Opened, OpenEntry
from verditer.services.file.handles.uninterrupted import uninterrupted
from verditer.services.file.opens import after_breaks, opens_of, require_breaks
from verditer.services.file.usage import check_quota

replace = msgspec.structs.replace
_ON_EXISTING = {
    CreateDisposition.SUPERSEDE: CreateAction.SUPERSEDED,
    CreateDisposition.OVERWRITE: CreateAction.OVERWRITTEN,
    CreateDisposition.OVERWRITE_IF: CreateAction.OVERWRITTEN,
}
_CREATES = frozenset(
    {CreateDisposition.SUPERSEDE, CreateDisposition.CREATE, CreateDisposition.OPEN_IF, CreateDisposition.OVERWRITE_IF}
)
_READ_ONLY = int(FileAttributes.READ_ONLY)
_WRITE, _CHANGES = int(WRITE), int(WRITE | DELETE)
_WRITING = AccessMask.WRITE_DATA | AccessMask.APPEND_DATA
_CHANGING = _WRITING | AccessMask.DELETE
_GUARDED = int(FileAttributes.HIDDEN | FileAttributes.SYSTEM)


class _Open(NamedTuple):
    """What one run of the transaction has opened, and with which access. `record` is None for a transient handle."""

    located: Located
    entry: FileEntry
    access: int
    action: CreateAction
    record: FileOpen | None


async def open_entry(
    ctx: Context, target: FilePath, request: OpenEntry, client: Client, listener: HandleListener | None = None
) -> Opened:
    """Open, create, overwrite or supersede. Waits for the breaks of oplocks, so a front end expects it to take long.

    Errors: ParentNotFound, ResourceNotFound, ResourceAlreadyExists, NotADirectory, IsADirectory, SMBDeletePending,
    ReadOnlyAttribute (write access or overwrite), CannotDeleteReadOnly (delete on close, and of the root),
    HiddenOrSystemAttribute, SharingViolation, ShareSizeLimitReached, TooManyHandles, ShareNotFound, ShareSnapshotNotFound,
    SnapshotIsReadOnly.
    """
    if _only_looks(request):
        found = await ctx.engine.read(target.scope, lambda tx: _find(tx, target, request))
        return _opened(ctx, target, request, found, listener)

    def commit(tx: Transaction, outbox: Outbox) -> _Open:
        return _open(ctx, tx, outbox, target, request, client)

    async def once() -> Opened:
        (found, signals), was_cancelled = await uninterrupted(begin_write(ctx, [target.scope], commit))
        deliver(ctx.handles, signals)
        opened = _opened(ctx, target, request, found, listener)
        if was_cancelled:
            await close_handle(ctx, opened.handle)
            raise asyncio.CancelledError
        return opened

    while True:
        try:
            return await after_breaks(ctx, [target.scope], once)
        except OwnerLost:
            ctx.handles.start_again()


def _only_looks(request: OpenEntry) -> bool:
    return request.is_transient and request.disposition is CreateDisposition.OPEN and not request.delete_on_close


def _find(tx: Transaction, target: FilePath, request: OpenEntry) -> _Open:
    """A transient open of what exists: nothing is written."""
    located = _locate(tx, target, request)
    if located.entry is None:
        raise StorageError(Code.ResourceNotFound)
    opens = opens_of(tx, located.share.id, located.entry.node_id) if request.snapshot is None else []
    _check_existing(located.entry, request, opens)
    return _Open(located, located.entry, request.access, CreateAction.OPENED, None)


def _open(ctx: Context, tx: Transaction, outbox: Outbox, target: FilePath, request: OpenEntry, client: Client) -> _Open:
    located = _locate(tx, target, request)
    entry, opens = located.entry, []
    request = _without_refused(request, entry)
    if request.snapshot is not None:
        _check_in_snapshot(entry, request)
    if entry is None:
        action = CreateAction.CREATED
        entry = _create(tx, outbox, located, target, request)
    else:
        opens = opens_of(tx, located.share.id, entry.node_id)
        action = _check_existing(entry, request, opens)
        if request.snapshot is None:
            _check_sharing(tx, entry, request, opens, is_overwrite=action is not CreateAction.OPENED)
        if action is not CreateAction.OPENED:
            entry = overwritten(tx, located, entry, request)
            tell_watchers(tx, outbox, located.share.id, target, MODIFIED, SIZE)
    if action is not CreateAction.OPENED:
        check_quota(tx, located.share, request.allocation_bytes)
    if request.is_transient:
        return _Open(located, entry, request.access, action, None)
    record = _record(ctx, tx, located, entry, target, request, client, opens, action)
    tx.put(record)
    return _Open(located, entry, request.access, action, record)


def _locate(tx: Transaction, target: FilePath, request: OpenEntry) -> Located:
    located = locate(tx, target, request.snapshot)
    if request.share_id not in (None, located.share.id):
        raise StorageError(Code.ShareNotFound)
    return located


def _without_refused(request: OpenEntry, entry: FileEntry | None) -> OpenEntry:
    """Without the rights that the client does not insist on and does not get: nobody writes to a read-only file or a snapshot."""
    if not request.optional_access or entry is None:
        return request
    if request.snapshot is not None:
        refused = _CHANGING
    else:
        refused = _WRITING if entry.attributes & _READ_ONLY and not entry.is_directory else 0
    return replace(request, access=request.access & ~(refused & request.optional_access))


def _check_in_snapshot(entry: FileEntry | None, request: OpenEntry) -> None:
    if entry is None:
        raise StorageError(Code.ResourceNotFound)
    if request.disposition not in (CreateDisposition.OPEN, CreateDisposition.OPEN_IF) or file_access(request.access) & _CHANGES:
        raise StorageError(Code.SnapshotIsReadOnly)


def _create(tx: Transaction, outbox: Outbox, located: Located, target: FilePath, request: OpenEntry) -> FileEntry:
    if request.disposition not in _CREATES:
        raise StorageError(Code.ResourceNotFound)
    check_parent(tx, located)
    if request.delete_on_close and request.attributes & _READ_ONLY:
        raise StorageError(Code.CannotDeleteReadOnly)
    new = new_directory if request.wants_directory else new_file
    entry = new(tx, located, target.names[-1], request)
    tell_watchers(tx, outbox, located.share.id, target, ADDED, name_filter(entry))
    return entry


def _check_existing(entry: FileEntry, request: OpenEntry, opens: Sequence[FileOpen]) -> CreateAction:
    """What an open does with the entry that it has found."""
    if any(one.delete_pending for one in opens):
        raise StorageError(Code.SMBDeletePending)
    if request.disposition is CreateDisposition.CREATE:
        raise StorageError(Code.ResourceAlreadyExists)
    if request.wants_directory and not entry.is_directory:
        raise StorageError(Code.NotADirectory)
    action = _ON_EXISTING.get(request.disposition, CreateAction.OPENED)
    if entry.is_directory and (request.wants_file or action is not CreateAction.OPENED):
        raise StorageError(Code.IsADirectory)
    _check_attributes(entry, request, is_overwrite=action is not CreateAction.OPENED)
    return action


def _check_attributes(entry: FileEntry, request: OpenEntry, *, is_overwrite: bool) -> None:
    if request.delete_on_close and (entry.attributes & _READ_ONLY or entry.node_id == ROOT):
        raise StorageError(Code.CannotDeleteReadOnly)
    if entry.attributes & _READ_ONLY and not entry.is_directory and (is_overwrite or file_access(request.access) & _WRITE):
        raise StorageError(Code.ReadOnlyAttribute)
    if is_overwrite and entry.attributes & _GUARDED & ~request.attributes:
        raise StorageError(Code.HiddenOrSystemAttribute)


def _check_sharing(
    tx: Transaction, entry: FileEntry, request: OpenEntry, opens: Sequence[FileOpen], *, is_overwrite: bool
) -> None:
    """Share modes, REST leases, pending copies and oplocks. A batch oplock in the way is broken before the open is refused: its
    holder may have closed the file without telling so. Other oplocks are broken only for opens that share modes allow."""
    access = _wanted_access(request, is_overwrite=is_overwrite)
    if access:
        blocking = [one for one in opens if one.access and conflicts(access, request.share_mode, one)]
        require_breaks(entry, breaks_of(OplockEffect.CLOSES, blocking))
        is_kept = entry.copy_pending or state_of(entry.lease, tx.now).is_locked
        check_open(access, request.share_mode, opens, is_kept=is_kept)
    if is_overwrite or not is_attribute_only(request.access):
        require_breaks(entry, breaks_of(OplockEffect.WRITES if is_overwrite else OplockEffect.READS, opens))
    if len(opens) >= (MAX_ROOT_HANDLES if entry.node_id == ROOT else MAX_HANDLES):
        raise StorageError(Code.TooManyHandles)


def _wanted_access(request: OpenEntry, *, is_overwrite: bool) -> int:
    """Overwriting counts as writing; superseding counts as deleting, too."""
    access = file_access(request.access)
    if is_overwrite:
        access |= _CHANGES if request.disposition is CreateDisposition.SUPERSEDE else _WRITE
    return access


def _record(
    ctx: Context,
    tx: Transaction,
    located: Located,
    entry: FileEntry,
    target: FilePath,
    request: OpenEntry,
    client: Client,
    opens: Sequence[FileOpen],
    action: CreateAction,
) -> FileOpen:
    require_owner(tx, ctx.handles)
    return FileOpen(
        share_id=located.share.id,
        node_id=entry.node_id,
        handle_id=tx.tick(),
        account=target.account,
        share=target.share,
        owner=ctx.handles.owner,
        access=file_access(request.access),
        share_mode=request.share_mode,
        path=(*target.names[:-1], entry.name) if target.names else (),
        folded_path=target.folded,
        parent_id=entry.parent_id,
        session_id=client.session_id,
        client=client.address,
        client_name=client.name,
        opened=tx.now,
        delete_on_close=request.delete_on_close,
        view=located.tree.view if isinstance(located.share, ShareSnapshot) else 0,
        access_mask=request.access,
        oplock=int(_granted(tx, entry, request, opens, action)),
    )


def _granted(
    tx: Transaction, entry: FileEntry, request: OpenEntry, opens: Sequence[FileOpen], action: CreateAction
) -> OplockLevel:
    if request.oplock is NONE or request.snapshot is not None:
        return NONE
    has_locks = next(iter(tx.scan(FileLock, span_of(entry.tree_id, entry.node_id), limit=1)), None) is not None
    return granted_oplock(
        request.oplock,
        opens,
        is_directory=entry.is_directory,
        only_looks=action is CreateAction.OPENED and is_attribute_only(request.access),
        has_locks=has_locks,
    )


def _opened(ctx: Context, target: FilePath, request: OpenEntry, found: _Open, listener: HandleListener | None) -> Opened:
    record, entry = found.record, found.entry
    level = OplockLevel(record.oplock) if record is not None else NONE
    handle = Handle(
        share=target.share_name,
        share_id=found.located.share.id,
        node_id=entry.node_id,
        handle_id=record.handle_id if record is not None else 0,
        parent_id=entry.parent_id,
        path=record.file_path if record is not None else _path_of(target, entry),
        access=found.access,
        share_mode=request.share_mode,
        is_directory=entry.is_directory,
        is_transient=record is None,
        delete_on_close=request.delete_on_close,
        snapshot=request.snapshot,
        reserved_bytes=request.allocation_bytes if found.action is not CreateAction.OPENED else 0,
        oplock=level,
        listener=listener,
    )
    if record is not None:
        ctx.handles.add(handle)
        ctx.handles.is_registered = True
        if level is not NONE:
            ctx.handles.listening.set()
    return Opened(handle=handle, action=found.action, entry=entry, oplock=level)


def _path_of(target: FilePath, entry: FileEntry) -> FilePath:
    if not target.names:
        return target
    return replace(target, names=(*target.names[:-1], entry.name))
