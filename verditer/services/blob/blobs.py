"""What all blob types have in common: properties, metadata, snapshot, delete."""

import msgspec

from verditer.core.errors import Code, StorageError, invalid_query
from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA
from verditer.core.names import BlobName, check_metadata
from verditer.core.records.blob import Blob, BlobVersion, Block, Snapshot, StagedBlob
from verditer.core.records.container import Container, Keeping
from verditer.core.records.record import span_of
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import BlobState, Removed, Written
from verditer.services.blob.content import drop_block, keep_content
from verditer.services.blob.current import current_and_staged, require_blob, require_container, require_current
from verditer.services.blob.history import delete_snapshot_state, delete_version_state, keep_version, retire_deleted
from verditer.services.blob.tags import index_tags
from verditer.services.context import Context

replace = msgspec.structs.replace


class GetBlobProperties(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    version_id: int | None = None


class SetBlobProperties(msgspec.Struct, frozen=True, kw_only=True):
    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    blob_content_md5: bytes | None = None


class SetBlobMetadata(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}


class SnapshotBlob(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}


class DeleteBlob(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    delete_snapshots: str | None = None  # "include" or "only"


class DeleteVersion(msgspec.Struct, frozen=True, kw_only=True):
    version_id: int


async def get_properties(ctx: Context, target: BlobName, request: GetBlobProperties, guard: Guard) -> BlobState:
    def look(tx: Transaction) -> BlobState:
        blob = require_blob(tx, target, request.snapshot, request.version_id)
        guard.check(blob, tx.now)
        return BlobState(blob=blob, now=tx.now)

    return await ctx.engine.read(target.scope, look)


async def set_properties(ctx: Context, target: BlobName, request: SetBlobProperties, guard: Guard) -> Written:
    """The HTTP headers of a blob are set as one: what the request leaves out is cleared. That makes no version."""

    def commit(tx: Transaction) -> Written:
        _, blob = _writable(tx, target, guard)
        updated = replace(with_headers(blob, request), etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now))
        tx.put(updated)
        return Written(etag=updated.etag, sequence_number=updated.sequence_number)

    return await ctx.engine.write(target.scope, commit)


def with_headers(blob: Blob, request: SetBlobProperties) -> Blob:
    return replace(
        blob,
        content_type=request.content_type or "application/octet-stream",
        content_encoding=request.content_encoding,
        content_language=request.content_language,
        content_disposition=request.content_disposition,
        cache_control=request.cache_control,
        content_md5=request.blob_content_md5,
        copy=None,  # what was copied is no longer what is there
    )


async def set_metadata(ctx: Context, target: BlobName, request: SetBlobMetadata, guard: Guard) -> Written:
    """With versioning, the state before is kept as a version."""
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> Written:
        container, blob = _writable(tx, target, guard)
        tick = tx.tick(blob.etag)
        kept = keep_version(tx, container.keeping, blob, tick)
        updated = replace(kept, metadata=request.metadata, etag=tick, lease=guard.lease_after(blob, tx.now))
        tx.put(updated)
        return Written(etag=tick, version_id=updated.version_id)

    return await ctx.engine.write(target.scope, commit)


def _writable(tx: Transaction, target: BlobName, guard: Guard) -> tuple[Container, Blob]:
    container, blob = require_current(tx, target)
    guard.check(blob, tx.now)
    check_online(blob, tx.now)
    return container, blob


async def snapshot_blob(ctx: Context, target: BlobName, request: SnapshotBlob, guard: Guard) -> Written:
    """A snapshot is a record of its own. Without new metadata it keeps the blob's ETag and Last-Modified.

    With versioning the blob begins a new version as well, and keeps its ETag all the same.
    """
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> Written:
        container, blob = _writable(tx, target, guard)
        tick = tx.tick(blob.etag)
        kept, content = keep_content(tx, blob, tick)
        fields = msgspec.structs.asdict(blob) | content | {"lease": None, "version_id": None, "snapshot": tick}
        if request.metadata:
            fields |= {"metadata": request.metadata, "etag": tick}
        snapshot = Snapshot(**fields)
        tx.put(snapshot)
        kept = keep_version(tx, container.keeping, kept, tx.tick(tick))
        if kept != blob:
            tx.put(kept)
        return Written(etag=snapshot.etag, snapshot=tick, version_id=kept.version_id)

    return await ctx.engine.write(target.scope, commit)


async def delete_blob(ctx: Context, target: BlobName, request: DeleteBlob, guard: Guard) -> Removed:
    if request.snapshot is not None and request.delete_snapshots is not None:
        raise invalid_query("snapshot", "", "x-ms-delete-snapshots does not go with a snapshot.")

    def commit(tx: Transaction) -> Removed:
        if request.snapshot is not None:
            return _delete_snapshot(tx, target, request.snapshot, guard)
        if _delete_uncommitted(tx, target, guard):
            return Removed(permanent=True)
        return _delete_base(tx, target, request.delete_snapshots, guard)

    return await ctx.engine.write(target.scope, commit)


async def delete_version(ctx: Context, target: BlobName, request: DeleteVersion, guard: Guard) -> Removed:
    """A previous version. The current one is the blob, and is deleted as such."""

    def commit(tx: Transaction) -> Removed:
        version = require_blob(tx, target, version_id=request.version_id)
        if not isinstance(version, BlobVersion):
            raise StorageError(Code.OperationNotAllowedOnRootBlob)
        guard.check(version, tx.now)
        return Removed(permanent=delete_version_state(tx, target, require_container(tx, target).keeping, version))

    return await ctx.engine.write(target.scope, commit)


def _delete_snapshot(tx: Transaction, target: BlobName, snapshot: int, guard: Guard) -> Removed:
    blob = require_blob(tx, target, snapshot)
    assert isinstance(blob, Snapshot)
    guard.check(blob, tx.now)
    return Removed(permanent=delete_snapshot_state(tx, target, require_container(tx, target).keeping, blob))


def _delete_uncommitted(tx: Transaction, target: BlobName, guard: Guard) -> bool:
    """A blob that has only uncommitted blocks can be deleted as well (since 2013-08-15)."""
    _, blob, staged = current_and_staged(tx, target)
    if blob is not None or staged is None:
        return False
    guard.check(None, tx.now)
    drop_staged(tx, staged)
    return True


def _delete_base(tx: Transaction, target: BlobName, delete_snapshots: str | None, guard: Guard) -> Removed:
    container, blob = require_current(tx, target)
    guard.check(blob, tx.now)
    span = span_of(blob.container_id, blob.name)
    if delete_snapshots is None and next(tx.scan(Snapshot, span, limit=1), None) is not None:
        raise StorageError(Code.SnapshotsPresent)
    keeping = container.keeping
    gone = [delete_snapshot_state(tx, target, keeping, snapshot) for snapshot in list(tx.scan(Snapshot, span))]
    if delete_snapshots != "only":
        gone.append(_remove_blob(tx, target, keeping, blob))
    return Removed(permanent=all(gone))


def _remove_blob(tx: Transaction, target: BlobName, keeping: Keeping, blob: Blob) -> bool:
    """True: nothing of it is kept."""
    gone = retire_deleted(tx, target, keeping, blob)
    index_tags(tx, blob, None)
    discard_staged(tx, blob.container_id, blob.name)
    tx.delete(Blob, blob.container_id, blob.name)
    return gone


def discard_staged(tx: Transaction, container_id: int, name: str, kept: frozenset[str] = frozenset()) -> None:
    """Drop every uncommitted block of a blob, if it has any, but for the extents a commit has taken over."""
    staged = tx.get(StagedBlob, container_id, name)
    if staged is not None:
        drop_staged(tx, staged, kept)


def drop_staged(tx: Transaction, staged: StagedBlob, kept: frozenset[str] = frozenset()) -> None:
    for block in list(tx.scan(Block, span_of(staged.container_id, staged.name))):
        drop_block(tx, block, kept=block.extent in kept)
    tx.delete(StagedBlob, staged.container_id, staged.name)
