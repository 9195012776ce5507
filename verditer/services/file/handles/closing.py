"""Closing handles: locks and watches end, and a file that is marked for deletion goes with its last handle."""

import asyncio
import logging
from collections.abc import Iterable

import msgspec

from verditer.core.errors import StorageError
from verditer.core.records.file import FileEntry, Share
from verditer.core.records.file_open import DirectoryWatch, FileOpen, PendingDelete
from verditer.core.records.record import span_of
from verditer.core.records.tree import ROOT
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.current import InTree, tree_of
from verditer.services.file.files import remove_file
from verditer.services.file.handles.changes import REMOVED, name_filter, tell_watchers
from verditer.services.file.handles.handle import Handle, NotifyAction
from verditer.services.file.handles.processes.signals import Outbox, SignalKind, write_and_signal
from verditer.services.file.handles.using import HandleMoved, remove_open, used
from verditer.services.file.opens import opens_of
from verditer.services.file.usage import add_usage

logger = logging.getLogger("verditer")
replace = msgspec.structs.replace
CLOSED_TOGETHER = 64  # handles that are closed at once: their transactions share one commit


async def close_handle(ctx: Context, handle: Handle) -> FileEntry | None:
    """Close one handle. Returns the last state of its entry; None when the entry is gone, or was deleted by this close."""
    if handle.is_closed:
        return None
    if handle.is_transient and not handle.delete_on_close:
        ctx.handles.remove(handle)
        return await _last_state(ctx, handle)
    while True:
        try:
            entry = await write_and_signal(ctx, [handle.path.scope], lambda tx, outbox: _close(tx, outbox, handle))
        except HandleMoved as moved:
            handle.path, handle.parent_id = moved.record.file_path, moved.record.parent_id
        else:
            break
    ctx.handles.remove(handle)
    ctx.handles.touch(handle.share_id, handle.node_id)
    return entry


async def _last_state(ctx: Context, handle: Handle) -> FileEntry | None:
    try:
        return await ctx.engine.read(handle.path.scope, lambda tx: used(tx, handle).entry)
    except StorageError:
        return None


def _close(tx: Transaction, outbox: Outbox, handle: Handle) -> FileEntry | None:
    record = tx.get(FileOpen, handle.share_id, handle.node_id, handle.handle_id)
    if record is None:
        return None
    if record.folded_path != handle.path.folded:
        raise HandleMoved(record)
    return close_open(tx, outbox, record)


def close_open(tx: Transaction, outbox: Outbox, record: FileOpen, *, may_delete: bool = True) -> FileEntry | None:
    """End an open of any owner. Returns its entry, or None when that is gone or goes with this handle.

    `may_delete` is False when REST closes the handle: the handle's own wish to delete on close is not carried out then.
    """
    remove_open(tx, record)
    share = tx.get(Share, record.account, record.share)
    if share is None or share.id != record.share_id or record.view:
        return None
    tree = tree_of(share)
    entry = tree.child(tx, record.parent_id, record.folded)
    if entry is None or entry.node_id != record.node_id:
        return None
    wants_delete = record.delete_on_close and may_delete
    if not (wants_delete or record.delete_pending):
        return entry
    return _delete_with_last(tx, outbox, InTree(share, tree), entry, record)


def _delete_with_last(tx: Transaction, outbox: Outbox, where: InTree, entry: FileEntry, record: FileOpen) -> FileEntry | None:
    """Delete the entry if no other handle is left. Otherwise it is marked, and goes with the last of them. A root stays, though
    the records of an earlier version may ask for its deletion."""
    if entry.is_directory and (entry.node_id == ROOT or not where.tree.is_empty(tx, entry.node_id)):
        return entry
    others = opens_of(tx, record.share_id, record.node_id)
    if others:
        mark_for_deletion(tx, outbox, entry, others)
        return entry
    if entry.is_directory:
        where.tree.remove(tx, entry)
    else:
        add_usage(tx, entry.tree_id, -remove_file(tx, where, entry))
    tell_watchers(tx, outbox, entry.tree_id, record.file_path, REMOVED, name_filter(entry))
    return None


def mark_for_deletion(tx: Transaction, outbox: Outbox, entry: FileEntry, opens: Iterable[FileOpen]) -> None:
    """From now on the entry is hidden from REST, and nobody opens it (contract F3). Those who watch the directory are told."""
    for watch in list(tx.scan(DirectoryWatch, span_of(entry.tree_id, entry.node_id))):
        outbox.send(watch.owner, watch.handle_id, SignalKind.CHANGED, action=NotifyAction.DELETE_PENDING)
    for one in opens:
        if not one.delete_pending:
            tx.put(replace(one, delete_pending=True))
    tx.put(PendingDelete(share_id=entry.tree_id, parent_id=entry.parent_id, node_id=entry.node_id))


async def close_record(ctx: Context, record: FileOpen, *, tell_owner: bool) -> None:
    """Close an open of any process, wherever its entry was renamed to. `tell_owner`: its process lives."""

    def commit(tx: Transaction, outbox: Outbox) -> FileOpen | None:
        """The record, if it is not where it was found: then the transaction has the wrong scope."""
        current = tx.get(FileOpen, record.share_id, record.node_id, record.handle_id)
        if current is None or current.folded_path != record.folded_path:
            return current
        close_open(tx, outbox, current)
        if tell_owner:
            outbox.send(current.owner, current.handle_id, SignalKind.CLOSED)
        return None

    while (moved := await write_and_signal(ctx, [record.file_path.scope], commit)) is not None:
        record = moved
    ctx.handles.touch(record.share_id, record.node_id)


async def close_handles(ctx: Context, handles: Iterable[Handle]) -> None:
    """Close many: the connection was lost, the session ended, or the tree was disconnected. A handle that cannot be closed is
    tried again later (`jobs/handles.py`)."""
    waiting = list(handles)
    while waiting:
        batch, waiting = waiting[:CLOSED_TOGETHER], waiting[CLOSED_TOGETHER:]
        outcomes = await asyncio.gather(*[close_handle(ctx, handle) for handle in batch], return_exceptions=True)
        for handle, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Exception):
                logger.warning("the handle %d could not be closed: %s", handle.handle_id, outcome)
                ctx.handles.unclosed.append(handle)
            elif isinstance(outcome, BaseException):
                raise outcome
