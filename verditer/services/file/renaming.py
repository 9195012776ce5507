"""Rename File and Rename Directory: one entry moves, with everything below it, in one transaction.

The transaction holds the scopes of both paths. A scope excludes every write below it, so nothing is created in a directory while
it moves, and two renames that would move two directories into each other cannot both succeed.
"""

from collections.abc import Callable

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.oplocks import OplockEffect, breaks_of
from verditer.core.files.share_modes import OVERWRITE, RENAME
from verditer.core.files.times import TimeOperation
from verditer.core.guard import FILE_WRITE, Guard
from verditer.core.limits import MAX_METADATA
from verditer.core.names import FilePath, check_metadata
from verditer.core.records.file import FileEntry
from verditer.core.records.tree import ROOT
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file import opens
from verditer.services.file.answers import EntryState
from verditer.services.file.current import InShare, locate, require_directory, require_file
from verditer.services.file.directories import check_parent
from verditer.services.file.files import remove_file
from verditer.services.file.opens import OplockBreakNeeded, check_access, handles_below, move_handles
from verditer.services.file.properties import EntryProperties, changed_properties, check_writable
from verditer.services.file.usage import add_usage

replace = msgspec.structs.replace


class Rename(EntryProperties, frozen=True, kw_only=True):
    """`replace_existing` lets a file at the target be replaced, `ignore_readonly` also one that is read-only."""

    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    content_type: str | None = None
    replace_existing: bool = False
    ignore_readonly: bool = False
    source_lease_id: str | None = None
    destination_lease_id: str | None = None


async def rename_file(ctx: Context, target: FilePath, request: Rename, source: FilePath) -> EntryState:
    def commit(tx: Transaction) -> EntryState:
        located, entry = require_file(tx, source)
        Guard(rule=FILE_WRITE, lease_id=request.source_lease_id).check(entry, tx.now)
        check_access(tx, entry, RENAME)
        return _rename(tx, located, entry, target, request)

    return await _run(ctx, target, request, source, commit)


async def rename_directory(ctx: Context, target: FilePath, request: Rename, source: FilePath) -> EntryState:
    def commit(tx: Transaction) -> EntryState:
        located, entry = require_directory(tx, source)
        if entry.node_id == ROOT:
            raise StorageError(Code.InvalidResourceName)
        _check_no_handles(tx, located, entry, source)
        return _rename(tx, located, entry, target, request)

    return await _run(ctx, target, request, source, commit)


async def _run(
    ctx: Context, target: FilePath, request: Rename, source: FilePath, commit: Callable[[Transaction], EntryState]
) -> EntryState:
    check_metadata(request.metadata, MAX_METADATA)
    if (source.account, source.share) != (target.account, target.share):
        raise StorageError(Code.InvalidHeaderValue, field="rename_source", value="/".join(source.names))
    if not target.names:
        raise StorageError(Code.ResourceAlreadyExists)
    return await opens.write(ctx, [source.scope, target.scope], commit)


def _check_no_handles(tx: Transaction, located: InShare, entry: FileEntry, source: FilePath) -> None:
    """A directory is not renamed while an SMB client has it open, or anything below it. A holder of a batch oplock may have
    closed its file without telling so, and has to tell."""
    opens = handles_below(tx, located.share.id, source.folded)
    if any(found.delete_pending and found.node_id == entry.node_id for found in opens):
        raise StorageError(Code.SMBDeletePending)
    for found in opens:
        breaks = breaks_of(OplockEffect.CLOSES, [found])
        if breaks:
            raise OplockBreakNeeded(found.share_id, found.node_id, breaks)
    if opens:
        raise StorageError(Code.SharingViolation)


def _rename(tx: Transaction, located: InShare, entry: FileEntry, target: FilePath, request: Rename) -> EntryState:
    destination = locate(tx, target)
    if entry.node_id in destination.directory_ids:
        raise StorageError(Code.InvalidInput, message="A directory cannot be moved into itself.")
    check_parent(tx, destination)
    replaced = destination.entry
    freed_bytes = 0
    if replaced is not None and replaced.key() != entry.key():
        _check_replaced(tx, replaced, request)
        if replaced.node_id == entry.node_id:  # rename(2): of two names of one file, both stay
            return EntryState(entry=entry, now=tx.now)
        freed_bytes = remove_file(tx, destination, replaced)
    fields = changed_properties(tx, located.share, entry, request, TimeOperation.RENAME)
    if request.metadata:
        fields["metadata"] = request.metadata
    if request.content_type is not None and not entry.is_directory:
        fields["content_type"] = request.content_type
    moved = replace(
        entry,
        parent_id=destination.parent.node_id,
        name=target.names[-1],
        folded=destination.name,
        etag=tx.tick(entry.etag),
        **fields,
    )
    moved = located.tree.move(tx, entry, moved)
    move_handles(tx, moved, target)
    if replaced is not None:
        add_usage(tx, located.share.id, -freed_bytes)
    return EntryState(entry=moved, now=tx.now)


def _check_replaced(tx: Transaction, replaced: FileEntry, request: Rename) -> None:
    if not request.replace_existing or replaced.is_directory:
        raise StorageError(Code.ResourceAlreadyExists)
    Guard(rule=FILE_WRITE, lease_id=request.destination_lease_id).check(replaced, tx.now)
    check_access(tx, replaced, OVERWRITE)
    if not request.ignore_readonly:
        check_writable(replaced)
