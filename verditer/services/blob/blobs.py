"""What all blob types have in common: properties, metadata, snapshot, delete."""

from collections.abc import Callable

import msgspec

from verditer.core.errors import Code, StorageError, invalid_query
from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA
from verditer.core.names import BlobName, check_metadata
from verditer.core.records.blob import Blob, Block, Snapshot, StagedBlob
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import BlobState, Written
from verditer.services.blob.content import drop_block, drop_content, keep_content
from verditer.services.blob.current import current_blob, require_blob
from verditer.services.blob.tags import index_tags
from verditer.services.context import Context

replace = msgspec.structs.replace


class GetBlobProperties(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None


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


async def get_properties(ctx: Context, target: BlobName, request: GetBlobProperties, guard: Guard) -> BlobState:
    def look(tx: Transaction) -> BlobState:
        blob = require_blob(tx, target, request.snapshot)
        guard.check(blob, tx.now)
        return BlobState(blob=blob, now=tx.now)

    return await ctx.engine.read(target.scope, look)


async def set_properties(ctx: Context, target: BlobName, request: SetBlobProperties, guard: Guard) -> Written:
    """The HTTP headers of a blob are set as one: what the request leaves out is cleared."""
    return await _update(ctx, target, guard, lambda blob: with_headers(blob, request))


def with_headers(blob: Blob, request: SetBlobProperties) -> Blob:
    return replace(
        blob,
        content_type=request.content_type or "application/octet-stream",
        content_encoding=request.content_encoding,
        content_language=request.content_language,
        content_disposition=request.content_disposition,
        cache_control=request.cache_control,
        content_md5=request.blob_content_md5,
    )


async def set_metadata(ctx: Context, target: BlobName, request: SetBlobMetadata, guard: Guard) -> Written:
    check_metadata(request.metadata, MAX_METADATA)
    return await _update(ctx, target, guard, lambda blob: replace(blob, metadata=request.metadata))


async def _update(ctx: Context, target: BlobName, guard: Guard, change: Callable[[Blob], Blob]) -> Written:
    def commit(tx: Transaction) -> Written:
        blob = require_blob(tx, target)
        guard.check(blob, tx.now)
        updated = replace(change(blob), etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now))
        tx.put(updated)
        return Written(etag=updated.etag, sequence_number=updated.sequence_number)

    return await ctx.engine.write(target.scope, commit)


async def snapshot_blob(ctx: Context, target: BlobName, request: SnapshotBlob, guard: Guard) -> Written:
    """A snapshot is a record of its own. Without new metadata it keeps the blob's ETag and Last-Modified."""
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> Written:
        blob = require_blob(tx, target)
        guard.check(blob, tx.now)
        tick = tx.tick(blob.etag)
        kept, content = keep_content(tx, blob, tick)
        fields = msgspec.structs.asdict(blob) | content | {"lease": None, "snapshot": tick}
        if request.metadata:
            fields |= {"metadata": request.metadata, "etag": tick}
        snapshot = Snapshot(**fields)
        tx.put(snapshot)
        if kept != blob:
            tx.put(kept)
        return Written(etag=snapshot.etag, snapshot=tick)

    return await ctx.engine.write(target.scope, commit)


async def delete_blob(ctx: Context, target: BlobName, request: DeleteBlob, guard: Guard) -> None:
    if request.snapshot is not None and request.delete_snapshots is not None:
        raise invalid_query("snapshot", "", "x-ms-delete-snapshots does not go with a snapshot.")

    def commit(tx: Transaction) -> None:
        if request.snapshot is not None:
            _delete_snapshot(tx, target, request.snapshot, guard)
        elif not _delete_uncommitted(tx, target, guard):
            _delete_base(tx, target, request.delete_snapshots, guard)

    await ctx.engine.write(target.scope, commit)


def _delete_snapshot(tx: Transaction, target: BlobName, snapshot: int, guard: Guard) -> None:
    blob = require_blob(tx, target, snapshot)
    guard.check(blob, tx.now)
    drop_content(tx, blob)
    tx.delete(Snapshot, blob.container_id, blob.name, snapshot)


def _delete_uncommitted(tx: Transaction, target: BlobName, guard: Guard) -> bool:
    """A blob that has only uncommitted blocks can be deleted as well (since 2013-08-15)."""
    container, blob = current_blob(tx, target)
    staged = tx.get(StagedBlob, container.id, target.blob)
    if blob is not None or staged is None:
        return False
    guard.check(None, tx.now)
    discard_staged(tx, container.id, target.blob)
    return True


def _delete_base(tx: Transaction, target: BlobName, delete_snapshots: str | None, guard: Guard) -> None:
    blob = require_blob(tx, target)
    guard.check(blob, tx.now)
    span = span_of(blob.container_id, blob.name)
    if delete_snapshots is None and next(tx.scan(Snapshot, span, limit=1), None) is not None:
        raise StorageError(Code.SnapshotsPresent)
    for snapshot in list(tx.scan(Snapshot, span)):
        drop_content(tx, snapshot)
        tx.delete(Snapshot, snapshot.container_id, snapshot.name, snapshot.snapshot)
    if delete_snapshots != "only":
        remove_blob(tx, blob)


def remove_blob(tx: Transaction, blob: Blob) -> None:
    drop_content(tx, blob)
    index_tags(tx, blob, None)
    discard_staged(tx, blob.container_id, blob.name)
    tx.delete(Blob, blob.container_id, blob.name)


def discard_staged(tx: Transaction, container_id: int, name: str, kept: frozenset[str] = frozenset()) -> None:
    """Drop every uncommitted block of a blob, but for the extents a commit has taken over."""
    if tx.get(StagedBlob, container_id, name) is None:
        return
    for block in list(tx.scan(Block, span_of(container_id, name))):
        drop_block(tx, block, kept=block.extent in kept)
    tx.delete(StagedBlob, container_id, name)
