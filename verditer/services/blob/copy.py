"""Copy Blob and Copy Blob From URL. From a blob of this server both are done at once; from elsewhere Copy Blob becomes work of
`jobs/copy.py`, told by its status, and Copy Blob From URL waits for the bytes.

Copied are content, block list, HTTP headers, sequence number and block count; metadata unless the request brings its own. Not
copied are leases, snapshots, uncommitted blocks, the tier, and tags unless asked for.
"""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA, MAX_SYNC_COPY
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.copy import CopyState, CopyStatus
from verditer.core.tiers import ARCHIVE, BLOCK_TIERS, DURATIONS, STANDARD, Rehydration, check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Copied
from verditer.services.blob.history import moved_to
from verditer.services.blob.pending import start_copy
from verditer.services.blob.placing import put_in_place
from verditer.services.blob.receiving import put_received, receive_body, write_received
from verditer.services.blob.sharing import Taken, attach, take
from verditer.services.blob.sources import CopySource, LocalSource, RemoteSource, opened, unverified_by
from verditer.services.context import Context
from verditer.stream.digest import Checksums, Digest, verify

replace = msgspec.structs.replace


class CopyBlob(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}
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
        return await start_copy(ctx, target, source, guard, copy_id, lambda blob, tick: copied_blob(blob, target, request, tick))
    with ctx.activity.since(ctx.now()) as work:
        # Measured on Azure: a missing source in the same account is plainly not found.
        taken = await taken_from(ctx, source, request, plain=source.same_account)

        def commit(tx: Transaction) -> Copied:
            return _put_copy(tx, target, request, guard, source, taken, copy_id, infinite_lease=True)

        return await work.write(ctx.engine, target.scope, commit)


async def copy_blob_from_url(
    ctx: Context, target: BlobName, request: CopyBlobFromUrl, guard: Guard, source: CopySource
) -> Copied:
    """Synchronous: the answer comes when the copy is done."""
    _check(target, request)
    check_tags(request.tags, source, copy_tags=request.copy_tags)
    copy_id = ctx.new_guid()
    if isinstance(source, RemoteSource):
        return await _copy_remote(ctx, target, request, guard, source, copy_id)
    with ctx.activity.since(ctx.now()) as work:
        taken = await taken_from(ctx, source, request)
        _check_block_blob(taken.blob)
        if taken.blob.size > MAX_SYNC_COPY:
            raise StorageError(Code.RequestBodyTooLarge, details={"MaxLimit": str(MAX_SYNC_COPY)})
        if request.content_md5 is not None:
            await _verify(ctx, source, taken, request.content_md5)

        def commit(tx: Transaction) -> Copied:
            tagged = replace(request, tags=taken.blob.tags) if request.copy_tags else request
            return _put_copy(tx, target, tagged, guard, source, taken, copy_id)

        return await work.write(ctx.engine, target.scope, commit)


def _check(target: BlobName, request: CopyBlob) -> None:
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)


def _check_block_blob(source: Blob) -> None:
    """Copy Blob From URL takes no other, and says so in these words (measured on Azure); Copy Blob takes them all."""
    if source.blob_type is not BlobType.BLOCK:
        raise StorageError(Code.CannotVerifyCopySource, status=409, message="The copy source must be a block blob.")


def check_tags(tags: dict[str, str] | None, source: CopySource, *, copy_tags: bool) -> None:
    if not copy_tags:
        return
    if tags:
        raise StorageError(Code.BothUserTagsAndSourceTagsCopyPresentException)
    if isinstance(source, RemoteSource):
        raise StorageError(Code.NotImplemented, message="Tags are copied from blobs of this server only.")
    if not source.may_read_tags:
        raise unverified_by(StorageError(Code.AuthorizationPermissionMismatch))


async def taken_from(ctx: Context, source: LocalSource, request: CopyBlob, *, plain: bool = False) -> Taken:
    """The content of the source. `plain`: its refusals are told as they are."""

    def check(blob: Blob, now: int) -> None:
        if blob.copy_pending:
            raise StorageError(Code.PendingCopyOperation)
        if not (source.same_account and request.tier in BLOCK_TIERS and request.tier != ARCHIVE):
            check_online(blob, now)  # with an online tier the copy is what rehydrates it

    try:
        return await take(ctx, source, check)
    except StorageError as error:
        raise (error if plain else unverified_by(error)) from None


def _put_copy(
    tx: Transaction,
    target: BlobName,
    request: CopyBlob,
    guard: Guard,
    source: LocalSource,
    taken: Taken,
    copy_id: str,
    *,
    infinite_lease: bool = False,
) -> Copied:
    size = taken.blob.size

    def make(container_id: int, tick: int) -> Blob:
        state = CopyState(id=copy_id, source=source.url, status=CopyStatus.SUCCESS, copied=size, total=size, completed=tick)
        blob = copied_blob(taken.blob, target, request, tick)
        return replace(blob, container_id=container_id, copy=state, **attach(tx, taken, tick, target.scope))

    blob = put_in_place(tx, target, guard, taken.blob.blob_type, make, same_type=True, infinite_lease=infinite_lease)
    return _copied(blob, copy_id)


async def _copy_remote(
    ctx: Context, target: BlobName, request: CopyBlobFromUrl, guard: Guard, source: RemoteSource, copy_id: str
) -> Copied:
    expected = Checksums(md5=request.content_md5)
    async with opened(ctx, source) as body:
        _check_block_blob(body.blob)
        with ctx.activity.since(ctx.now()) as work:
            received = await receive_body(ctx, body, MAX_SYNC_COPY, expected)

            def make(tx: Transaction, container_id: int, tick: int) -> Blob:
                put_received(tx, tick, received)
                size = received.size
                state = CopyState(
                    id=copy_id, source=source.shown, status=CopyStatus.SUCCESS, copied=size, total=size, completed=tick
                )
                blob = copied_blob(body.blob, target, request, tick)
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
                blob = put_in_place(tx, target, guard, BlobType.BLOCK, lambda *new: make(tx, *new), same_type=True)
                return replace(_copied(blob, copy_id), content_crc64=received.crc64)

            return await write_received(ctx, target, work, received, commit)


def copied_blob(source: Blob, target: BlobName, request: CopyBlob, tick: int) -> Blob:
    """The record of the copy. Content, container and copy state are the caller's to add."""
    return moved_to(
        Blob,
        source,
        name=target.blob,
        etag=tick,
        created=tick,
        metadata=request.metadata or source.metadata,
        tags=request.tags,
        lease=None,
        sealed=request.seal and source.blob_type is BlobType.APPEND,
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
        content_md5=blob.content_md5,
        copy_id=copy_id,
        copy_status=CopyStatus.SUCCESS,
    )


async def _verify(ctx: Context, source: LocalSource, taken: Taken, md5: bytes) -> None:
    digest = Digest()
    async with opened(ctx, source) as body:
        if body.blob.etag != taken.blob.etag:
            raise StorageError(Code.SourceConditionNotMet)  # it changed between two looks
        while piece := await body.read():
            digest.update(piece)
    verify(Checksums(md5=md5), digest.md5(), digest.crc64())
