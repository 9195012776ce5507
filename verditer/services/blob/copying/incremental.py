"""Incremental Copy Blob: copies snapshots of a page blob, one after the other, into a blob whose snapshots they become.

The copy shares the extents of the source, so what changed since the last copy takes no part in it. The blob itself can be neither
read nor written; its snapshots are read. Microsoft's page: Incremental Copy Blob.
"""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import Alteration, check_alteration
from verditer.core.names import BlobName, check_blob_name
from verditer.core.records.blob import Blob, BlobType, IncrementalCopy, RareProperties, Snapshot
from verditer.core.records.copy import CopyState, CopyStatus
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Copied
from verditer.services.blob.copying.capture import CapturedBlob, capture_source
from verditer.services.blob.current import current_blob
from verditer.services.blob.history import moved_to
from verditer.services.content.layout import drop_content, snapshot_content
from verditer.services.content.sharing import attach
from verditer.services.context import Context
from verditer.services.copying.sources import BlobSource, CopySource

replace = msgspec.structs.replace


async def copy_incrementally(ctx: Context, target: BlobName, guard: Guard, source: CopySource) -> Copied:
    check_blob_name(target.blob)
    if not isinstance(source, BlobSource):
        raise StorageError(Code.NotImplemented, message="Incremental copies are made of blobs of this server only.")
    if source.snapshot is None:
        raise StorageError(Code.IncrementalCopySourceMustBeSnapshot)
    copy_id = ctx.new_guid()
    with ctx.activity.begin(ctx.now()) as work:
        captured = await capture_source(ctx, source)
        if captured.blob.blob_type is not BlobType.PAGE:
            raise StorageError(Code.InvalidSourceBlobType)
        snapshot = source.snapshot
        return await work.write(
            ctx.engine, target.scope, lambda tx: _commit(tx, target, guard, source, snapshot, captured, copy_id)
        )


def _commit(
    tx: Transaction,
    target: BlobName,
    guard: Guard,
    source: BlobSource,
    source_snapshot: int,
    captured: CapturedBlob,
    copy_id: str,
) -> Copied:
    container, previous = current_blob(tx, target)
    guard.check(previous, tx.now)
    source_url = source.shown.partition("?")[0]
    if previous is not None:
        _check_continues(previous, source_url, source_snapshot)
        check_alteration(container.protection, previous, Alteration.REPLACE, tx.now, stays_as_version=False)
        drop_content(tx, previous)
    tick = tx.tick(previous.etag if previous is not None else 0)
    size = captured.blob.size
    blob = moved_to(
        Blob,
        captured.blob,
        container_id=container.id,
        name=target.blob,
        etag=tick,
        created=previous.created if previous is not None else tick,
        tags=None,
        lease=guard.lease_after(previous, tx.now),
        version_id=None,
        copy=CopyState(id=copy_id, source=source.shown, status=CopyStatus.SUCCESS, copied=size, total=size, completed=tick),
        **attach(tx, captured.content, tick, target.scope).fields(),
    )
    taken = tx.tick(tick)
    incremental = IncrementalCopy(source=source_url, source_snapshot=source_snapshot, snapshot=taken)
    live, frozen = snapshot_content(tx, blob, taken)
    blob = replace(blob, rare=RareProperties(incremental=incremental))
    tx.put(replace(blob, **live.fields()))
    tx.put(moved_to(Snapshot, blob, snapshot=taken, lease=None, **frozen.fields()))
    return Copied(etag=tick, copy_id=copy_id, copy_status=CopyStatus.SUCCESS)


def _check_continues(previous: Blob, source_url: str, source_snapshot: int) -> None:
    """The target is the copy of an earlier snapshot of the same source."""
    last = previous.rare.incremental if previous.rare is not None else None
    if last is None:
        raise StorageError(Code.InvalidBlobType if previous.blob_type is not BlobType.PAGE else Code.IncrementalCopyBlobMismatch)
    if last.source != source_url:
        raise StorageError(Code.IncrementalCopyBlobMismatch)
    if source_snapshot <= last.source_snapshot:
        raise StorageError(Code.IncrementalCopyOfEarlierSnapshotNotAllowed)
