"""Restores soft-deleted blobs and containers, or removes them before their retention period ends.

`history.py` creates soft-deleted states. The collector removes those that have expired; until it does, they count as removed.
"""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import Alteration
from verditer.core.names import BlobName, ContainerName
from verditer.core.records.blob import Blob, BlobVersion, DeletedBlob, DeletedSnapshot, DeletedVersion, Snapshot
from verditer.core.records.container import Container, DeletedContainer
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Removed
from verditer.services.blob.current import require_container
from verditer.services.blob.history import as_snapshot, moved_to
from verditer.services.blob.protection import check_alterable
from verditer.services.blob.tags import index_tags
from verditer.services.context import Context
from verditer.services.removal import remove
from verditer.services.settings import settings_of


class PermanentDelete(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    version_id: int | None = None


class RestoreContainer(msgspec.Struct, frozen=True, kw_only=True):
    deleted_name: str
    deleted_version: int


async def undelete_blob(ctx: Context, target: BlobName) -> None:
    """Restore all soft-deleted states of this name, each as what it was. A version never becomes the blob."""

    def commit(tx: Transaction) -> None:
        container = require_container(tx, target)
        current = tx.get(Blob, container.id, target.blob)
        found = _deleted_states(tx, container.id, target.blob)
        if not found and current is None and not _has_history(tx, container.id, target.blob):
            raise StorageError(Code.BlobNotFound)
        for state in found:
            restored = _restored(state, current)
            tx.put(restored)
            if type(restored) is Blob:
                index_tags(tx, None, restored)
            tx.delete(type(state), *state.key_parts())

    await ctx.engine.write([target.scope], commit)


async def permanent_delete(ctx: Context, target: BlobName, request: PermanentDelete, guard: Guard) -> Removed:
    """Remove a soft-deleted snapshot or version, if the account allows it."""
    if request.snapshot is None and request.version_id is None:
        raise _not_permanent("Only a snapshot or a version can be deleted permanently.")

    def commit(tx: Transaction) -> Removed:
        container = require_container(tx, target)
        if not settings_of(tx, target.account).permanent_delete:
            raise _not_permanent("The account does not allow permanent deletes.")
        state = _deleted_state(tx, container.id, target.blob, request)
        guard.check(state, tx.now)
        check_alterable(container, state, Alteration.DELETE, tx.now)
        remove(tx, state)
        return Removed(permanent=True)

    return await ctx.engine.write([target.scope], commit)


def _not_permanent(reason: str) -> StorageError:
    return StorageError(Code.InvalidQueryParameterValue, field="delete_type", value="permanent", reason=reason)


async def restore_container(ctx: Context, target: ContainerName, request: RestoreContainer) -> None:
    """Restore a container with its blobs, under its own name: the name is part of the scopes that lock their intervals."""
    if request.deleted_name != target.container:
        raise StorageError(Code.InvalidHeaderValue, field="deleted_name", value=request.deleted_name)

    def commit(tx: Transaction) -> None:
        deleted = tx.get(DeletedContainer, target.account, target.container, request.deleted_version)
        if deleted is None or deleted.expires <= tx.now:
            raise StorageError(Code.ContainerNotFound)
        if tx.get(Container, target.account, target.container) is not None:
            raise StorageError(Code.ContainerAlreadyExists)
        fields = {name: getattr(deleted, name) for name in Container.__struct_fields__}
        settings = settings_of(tx, target.account)
        tx.put(Container(**fields | {"history_policy": settings.history_policy, "blob_settings": settings.blob_settings}))
        tx.delete(DeletedContainer, deleted.account, deleted.name, deleted.version)

    await ctx.engine.write([target.scope], commit)


def _deleted_states(tx: Transaction, container_id: int, name: str) -> list[DeletedBlob]:
    span = span_of(container_id, name)
    return [
        state
        for kind in (DeletedBlob, DeletedSnapshot, DeletedVersion)
        for state in list(tx.scan(kind, span))
        if state.expires > tx.now
    ]


def _has_history(tx: Transaction, container_id: int, name: str) -> bool:
    span = span_of(container_id, name)
    return any(next(tx.scan(kind, span, limit=1), None) is not None for kind in (Snapshot, BlobVersion))


def _restored(state: DeletedBlob, current: Blob | None) -> Blob:
    if isinstance(state, DeletedVersion):
        return moved_to(BlobVersion, state)
    if isinstance(state, DeletedSnapshot):
        return moved_to(Snapshot, state)
    return moved_to(Blob, state) if current is None else moved_to(Snapshot, as_snapshot(state))


def _deleted_state(tx: Transaction, container_id: int, name: str, request: PermanentDelete) -> DeletedBlob:
    state: DeletedBlob | None
    live: Blob | None
    if request.snapshot is not None:
        state = tx.get(DeletedSnapshot, container_id, name, request.snapshot) or tx.get(DeletedBlob, container_id, name)
        if type(state) is DeletedBlob and state.deleted != request.snapshot:
            state = None
        live = tx.get(Snapshot, container_id, name, request.snapshot)
    else:
        assert request.version_id is not None
        state = tx.get(DeletedVersion, container_id, name, request.version_id)
        live = tx.get(BlobVersion, container_id, name, request.version_id)
        current = tx.get(Blob, container_id, name)
        if current is not None and current.version_id == request.version_id:
            live = current
    if state is not None and state.expires > tx.now:
        return state
    raise StorageError(Code.BlobNotFound if live is None else Code.BlobSnapshotNotSoftDeleted)
