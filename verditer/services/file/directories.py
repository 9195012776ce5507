"""Directories: create, properties, metadata, delete. Listing is in `listing.py`, renaming in `renaming.py`."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.share_modes import LOOK, REMOVE
from verditer.core.files.times import TimeOperation
from verditer.core.limits import MAX_METADATA
from verditer.core.names import FilePath, check_metadata
from verditer.core.records.file import FileEntry
from verditer.core.records.tree import ROOT
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file import opens
from verditer.services.file.answers import EntryState
from verditer.services.file.current import Located, locate, require_directory, require_entry
from verditer.services.file.opens import check_access, is_delete_pending
from verditer.services.file.properties import EntryProperties, changed_properties, new_properties

replace = msgspec.structs.replace


class CreateDirectory(EntryProperties, frozen=True, kw_only=True):
    metadata: dict[str, str] = msgspec.field(default_factory=dict)


class GetDirectory(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None


class SetMetadata(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}


async def create_directory(ctx: Context, target: FilePath, request: CreateDirectory) -> EntryState:
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> EntryState:
        located = locate(tx, target)
        if located.entry is not None:
            if is_delete_pending(tx, located.entry):
                raise StorageError(Code.SMBDeletePending)
            raise StorageError(Code.ResourceAlreadyExists)
        check_parent(tx, located)
        properties = new_properties(tx, located.share, located.parent, request, is_directory=True)
        tick = tx.tick()
        entry = FileEntry(
            tree_id=located.share.id,
            parent_id=located.parent.node_id,
            folded=located.name,
            name=target.names[-1],
            node_id=tick,
            is_directory=True,
            epoch=0,
            etag=tick,
            metadata=request.metadata,
            **properties,
        )
        return EntryState(entry=located.tree.put(tx, entry, None), now=tx.now)

    return await opens.write(ctx, [target.scope], commit)


def check_parent(tx: Transaction, located: Located) -> None:
    """Nothing is created in a directory that an SMB client has marked for deletion."""
    if located.parent.node_id != ROOT and is_delete_pending(tx, located.parent):
        raise StorageError(Code.SMBDeletePending)


async def get_directory(ctx: Context, target: FilePath, request: GetDirectory) -> EntryState:
    """A file is not found: Azure answers so, and `az storage file upload-batch` relies on it."""

    def read(tx: Transaction) -> EntryState:
        _, entry = require_entry(tx, target, request.snapshot)
        if not entry.is_directory:
            raise StorageError(Code.ResourceNotFound)
        check_access(tx, entry, LOOK)
        return EntryState(entry=entry, now=tx.now)

    return await opens.read(ctx, target.scope, read)


async def set_directory_properties(ctx: Context, target: FilePath, request: EntryProperties) -> EntryState:
    def commit(tx: Transaction) -> EntryState:
        located, entry = require_directory(tx, target)
        check_access(tx, entry, LOOK)
        fields = changed_properties(tx, located.share, entry, request, TimeOperation.SET_PROPERTIES)
        changed = located.tree.put(tx, replace(entry, etag=tx.tick(entry.etag), **fields), entry)
        return EntryState(entry=changed, now=tx.now)

    return await opens.write(ctx, [target.scope], commit)


async def set_directory_metadata(ctx: Context, target: FilePath, request: SetMetadata) -> EntryState:
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> EntryState:
        located, entry = require_directory(tx, target)
        check_access(tx, entry, LOOK)
        changed = located.tree.put(tx, replace(entry, metadata=request.metadata, etag=tx.tick(entry.etag), changed=tx.now), entry)
        return EntryState(entry=changed, now=tx.now)

    return await opens.write(ctx, [target.scope], commit)


async def delete_directory(ctx: Context, target: FilePath) -> None:
    """Atomic: the directory is gone when this returns, and never pending (contract F4)."""

    def commit(tx: Transaction) -> None:
        located, entry = require_directory(tx, target)
        if entry.node_id == ROOT:
            raise StorageError(Code.InvalidResourceName)
        check_access(tx, entry, REMOVE)
        if not located.tree.is_empty(tx, entry.node_id):
            raise StorageError(Code.DirectoryNotEmpty)
        located.tree.remove(tx, entry)

    await opens.write(ctx, [target.scope], commit)
