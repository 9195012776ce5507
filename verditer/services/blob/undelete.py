"""What is soft-deleted: brought back, or removed for good before its time. `history.py` put it there; the collector removes what
its retention has passed for, and until it does, such a state is as good as gone.
"""

import msgspec

from verditer.core.errors import Code, StorageError, invalid_header, invalid_query
from verditer.core.guard import Guard
from verditer.core.names import BlobName, ContainerName
from verditer.core.records.blob import Blob, BlobVersion, DeletedBlob, DeletedSnapshot, DeletedVersion, Snapshot
from verditer.core.records.container import Container, DeletedContainer, Forgotten
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Removed
from verditer.services.blob.content import drop_content
from verditer.services.blob.current import require_container
from verditer.services.blob.history import as_snapshot, moved_to
from verditer.services.blob.tags import index_tags
from verditer.services.context import Context
from verditer.services.settings import settings_of


class PermanentDelete(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    version_id: int | None = None


class RestoreContainer(msgspec.Struct, frozen=True, kw_only=True):
    deleted_name: str
    deleted_version: int


async def undelete_blob(ctx: Context, target: BlobName) -> None:
    """Everything soft-deleted of this name comes back, each as what it was. A version never becomes the blob."""

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
            remove_record(tx, state)

    await ctx.engine.write(target.scope, commit)


async def permanent_delete(ctx: Context, target: BlobName, request: PermanentDelete, guard: Guard) -> Removed:
    """A soft-deleted snapshot or version, where the account allows it."""
    if request.snapshot is None and request.version_id is None:
        raise invalid_query("deletetype", "permanent", "Only a snapshot or a version can be deleted permanently.")

    def commit(tx: Transaction) -> Removed:
        container = require_container(tx, target)
        if not settings_of(tx, target.account).permanent_delete:
            raise invalid_query("deletetype", "permanent", "The account does not allow permanent deletes.")
        state = _deleted_state(tx, container.id, target.blob, request)
        guard.check(state, tx.now)
        drop_content(tx, state)
        remove_record(tx, state)
        return Removed(permanent=True)

    return await ctx.engine.write(target.scope, commit)


async def restore_container(ctx: Context, target: ContainerName, request: RestoreContainer) -> None:
    """With all it held. It gets its old name and no other: the pieces of its blobs are guarded by a scope that has it."""
    if request.deleted_name != target.container:
        raise invalid_header("x-ms-deleted-container-name", request.deleted_name)

    def commit(tx: Transaction) -> None:
        deleted = tx.get(DeletedContainer, target.account, target.container, request.deleted_version)
        if deleted is None or deleted.expires <= tx.now:
            raise StorageError(Code.ContainerNotFound)
        if tx.get(Container, target.account, target.container) is not None:
            raise StorageError(Code.ContainerAlreadyExists)
        fields = {name: getattr(deleted, name) for name in Container.__struct_fields__}
        tx.put(Container(**fields | {"keeping": settings_of(tx, target.account).keeping}))
        tx.delete(DeletedContainer, deleted.account, deleted.name, deleted.version)

    await ctx.engine.write(target.scope, commit)


def expire_state(tx: Transaction, row: DeletedBlob) -> None:
    """The retention of a state has passed. It goes, unless it went or was restored meanwhile."""
    if tx.get(type(row), *[getattr(row, name) for name in row.KEY]) == row:
        drop_content(tx, row)
        remove_record(tx, row)


def expire_container(tx: Transaction, row: DeletedContainer) -> None:
    if tx.get(DeletedContainer, row.account, row.name, row.version) is not None:
        tx.delete(DeletedContainer, row.account, row.name, row.version)
        tx.put(Forgotten(id=row.id))


def remove_record(tx: Transaction, state: DeletedBlob) -> None:
    tx.delete(type(state), *[getattr(state, name) for name in state.KEY])


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
