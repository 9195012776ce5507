"""Copy Blob and Copy Blob From URL. Copies of a blob or file of this server are complete when they are answered. From another
server, Copy Blob leaves a pending copy to `jobs/copy.py`, and Copy Blob From URL waits for the bytes.

A copy has the content, block list, content properties, sequence number and block count of its source, and its metadata unless the
request has some. Leases, snapshots, uncommitted blocks and the tier are not copied, and tags only on request.
"""

from functools import partial

import msgspec

from verditer.core.errors import Code, Limit, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_FILE_BYTES, MAX_METADATA, MAX_SYNC_COPY
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.copy import CopyState, CopyStatus
from verditer.core.tiers import ARCHIVE, BLOCK_TIERS, DURATIONS, STANDARD, Rehydration
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Copied
from verditer.services.blob.copying.capture import CapturedBlob, capture_source
from verditer.services.blob.copying.pending import start_copy
from verditer.services.blob.encryption import shown_encryption
from verditer.services.blob.expiry import LastingRequest
from verditer.services.blob.history import moved_to
from verditer.services.blob.new_blob import put_new_blob
from verditer.services.content.receiving import put_received, receive_body, write_received
from verditer.services.content.sharing import attach
from verditer.services.context import Context
from verditer.services.copying.sources import BlobSource, CopySource, FileSource, RemoteSource, opened, unverified_by
from verditer.stream.digest import Checksums, Digest, verify

replace = msgspec.structs.replace


class CopyBlob(LastingRequest, frozen=True, kw_only=True):
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    tags: dict[str, str] | None = None
    tier: str | None = None
    rehydrate_priority: str | None = None
    seal: bool = False


class CopyBlobFromUrl(CopyBlob, frozen=True, kw_only=True):
    content_md5: bytes | None = None  # of the source
    copy_tags: bool = False


async def copy_blob(ctx: Context, target: BlobName, request: CopyBlob, guard: Guard, source: CopySource) -> Copied:
    """Asynchronous: the answer says whether the copy is done or pending."""
    _check(target, request)
    copy_id = ctx.new_guid()
    if isinstance(source, RemoteSource):
        describe = partial(copied_blob, target=target, request=request)
        return await start_copy(ctx, target, source, guard, copy_id, describe, request)
    if isinstance(source, FileSource):
        return await _copy_bytes(ctx, target, request, guard, source, copy_id, limit=MAX_FILE_BYTES, infinite_lease=True)
    with ctx.activity.begin(ctx.now()) as work:
        # Measured on Azure: a missing source in the same account is an ordinary BlobNotFound.
        captured = await capture_source(ctx, source, request.tier, plain=source.same_account)

        def commit(tx: Transaction) -> Copied:
            return _put_copy(tx, target, request, guard, source, captured, copy_id, infinite_lease=True)

        return await work.write(ctx.engine, target.scope, commit)


async def copy_blob_from_url(
    ctx: Context, target: BlobName, request: CopyBlobFromUrl, guard: Guard, source: CopySource
) -> Copied:
    """Synchronous: the answer comes when the copy is done."""
    _check(target, request)
    check_tags(request.tags, source, copy_tags=request.copy_tags)
    copy_id = ctx.new_guid()
    if not isinstance(source, BlobSource):
        md5 = request.content_md5
        return await _copy_bytes(ctx, target, request, guard, source, copy_id, limit=MAX_SYNC_COPY, content_md5=md5)
    with ctx.activity.begin(ctx.now()) as work:
        captured = await capture_source(ctx, source, request.tier)
        _check_block_blob(captured.blob)
        if captured.blob.size > MAX_SYNC_COPY:
            raise StorageError(Code.RequestBodyTooLarge, details=Limit(MAX_SYNC_COPY))
        if request.content_md5 is not None:
            await _verify(ctx, source, captured, request.content_md5)

        def commit(tx: Transaction) -> Copied:
            tagged = replace(request, tags=captured.blob.tags) if request.copy_tags else request
            return replace(_put_copy(tx, target, tagged, guard, source, captured, copy_id), content_md5=request.content_md5)

        return await work.write(ctx.engine, target.scope, commit)


def _check(target: BlobName, request: CopyBlob) -> None:
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)


def _check_block_blob(source: Blob) -> None:
    """Copy Blob From URL accepts no other type; the message is Azure's (measured). Copy Blob accepts every type."""
    if source.blob_type is not BlobType.BLOCK:
        raise StorageError(Code.CopySourceNotBlockBlob)


def check_tags(tags: dict[str, str] | None, source: CopySource, *, copy_tags: bool) -> None:
    if not copy_tags:
        return
    if tags:
        raise StorageError(Code.BothUserTagsAndSourceTagsCopyPresentException)
    if not isinstance(source, BlobSource):
        raise StorageError(Code.NotImplemented, message="Tags are copied from blobs of this server only.")
    if not source.may_read_tags:
        raise unverified_by(StorageError(Code.AuthorizationPermissionMismatch))


def _put_copy(
    tx: Transaction,
    target: BlobName,
    request: CopyBlob,
    guard: Guard,
    source: BlobSource,
    captured: CapturedBlob,
    copy_id: str,
    *,
    infinite_lease: bool = False,
) -> Copied:
    size = captured.blob.size

    def build(container_id: int, tick: int) -> Blob:
        state = CopyState(id=copy_id, source=source.shown, status=CopyStatus.SUCCESS, copied=size, total=size, completed=tick)
        blob = copied_blob(captured.blob, tick, target=target, request=request)
        return replace(blob, container_id=container_id, copy=state, **attach(tx, captured.content, tick, target.scope).fields())

    blob = put_new_blob(
        tx,
        target,
        guard,
        captured.blob.blob_type,
        build,
        same_type=True,
        infinite_lease=infinite_lease,
        request=request,
    )
    return _copied(blob, copy_id)


async def _copy_bytes(
    ctx: Context,
    target: BlobName,
    request: CopyBlob,
    guard: Guard,
    source: FileSource | RemoteSource,
    copy_id: str,
    *,
    limit: int,
    content_md5: bytes | None = None,
    infinite_lease: bool = False,
) -> Copied:
    """Copy by reading the source. The content of a file has gaps, which a block blob cannot share."""
    async with opened(ctx, source) as body:
        _check_block_blob(body.blob)
        with ctx.activity.begin(ctx.now()) as work:
            received = await receive_body(ctx, body, limit, Checksums(md5=content_md5))

            def build(tx: Transaction, container_id: int, tick: int) -> Blob:
                put_received(tx, tick, received)
                size = received.size
                state = CopyState(
                    id=copy_id, source=source.shown, status=CopyStatus.SUCCESS, copied=size, total=size, completed=tick
                )
                blob = copied_blob(body.blob, tick, target=target, request=request)
                return replace(
                    blob,
                    container_id=container_id,
                    copy=state,
                    content_id=tick,
                    size=size,
                    inline=received.inline is not None,
                    content_md5=received.md5,
                )

            def commit(tx: Transaction) -> Copied:
                blob = put_new_blob(
                    tx,
                    target,
                    guard,
                    BlobType.BLOCK,
                    lambda *new: build(tx, *new),
                    same_type=True,
                    infinite_lease=infinite_lease,
                    request=request,
                )
                crc64 = received.crc64 if content_md5 is None else None
                return replace(_copied(blob, copy_id), content_md5=content_md5, content_crc64=crc64)

            return await write_received(ctx, target.scope, work, received, commit)


def copied_blob(source: Blob, tick: int, *, target: BlobName, request: CopyBlob) -> Blob:
    """The record of the copy. The caller adds content, container and copy state."""
    return moved_to(
        Blob,
        source,
        name=target.blob,
        etag=tick,
        created=tick,
        metadata=request.metadata or source.metadata,
        tags=request.tags,
        lease=None,
        version_id=None,
        rare=None,
        sealed=(request.seal or source.sealed) and source.blob_type is BlobType.APPEND,
        **_tier(source, request, tick),
    )


def _tier(source: Blob, request: CopyBlob, tick: int) -> dict[str, object]:
    tier = request.tier
    if tier is None:
        return {"tier": None, "tier_changed": None, "rehydration": None}
    if (tier in BLOCK_TIERS) is not (source.blob_type is BlobType.BLOCK):
        raise StorageError(Code.AccessTierNotSupportedForBlobType)
    if source.tier != ARCHIVE or source.rehydration is not None:
        return {"tier": tier, "tier_changed": tick, "rehydration": None}
    priority = request.rehydrate_priority or STANDARD
    rehydration = Rehydration(tier=tier, priority=priority, ready=tick + DURATIONS[priority]) if tier != ARCHIVE else None
    return {"tier": ARCHIVE, "tier_changed": tick, "rehydration": rehydration}


def _copied(blob: Blob, copy_id: str) -> Copied:
    return Copied(
        etag=blob.etag,
        version_id=blob.version_id,
        copy_id=copy_id,
        copy_status=CopyStatus.SUCCESS,
        encryption=shown_encryption(blob),
    )


async def _verify(ctx: Context, source: BlobSource, captured: CapturedBlob, md5: bytes) -> None:
    digest = Digest()
    async with opened(ctx, source) as body:
        if body.blob.etag != captured.blob.etag:
            raise StorageError(Code.SourceConditionNotMet)  # the source changed between the two reads
        while chunk := await body.read():
            digest.update(chunk)
    verify(Checksums(md5=md5), digest.md5(), digest.crc64())
