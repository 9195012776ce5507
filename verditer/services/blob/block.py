"""Block blobs: Put Blob, and blocks that are staged one by one and then committed as a list."""

import msgspec

from verditer.core.errors import Code, StorageError, invalid_header
from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA, MAX_UNCOMMITTED_BLOCKS, PUT_BLOB_BYTES, PUT_BLOCK_BYTES, limit_for
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType, Block, StagedBlob
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.content import drop_block
from verditer.services.blob.current import current_and_staged, current_blob, require_block_blob
from verditer.services.blob.placing import put_in_place
from verditer.services.blob.receiving import as_told, put_received, receive_body, write_received
from verditer.services.context import Context
from verditer.stream.digest import Checksums
from verditer.stream.intake import Source

replace = msgspec.structs.replace


class BlobHeaders(msgspec.Struct, frozen=True, kw_only=True):
    """The HTTP headers a client gives a blob. The prefixed form wins over the plain one (`decode` settles that)."""

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    blob_content_md5: bytes | None = None
    metadata: dict[str, str] = {}
    tags: dict[str, str] | None = None
    tier: str | None = None


class PutBlob(BlobHeaders, frozen=True, kw_only=True):
    version: str
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


class PutBlock(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    block_id: bytes
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


async def put_blob(ctx: Context, target: BlobName, request: PutBlob, guard: Guard, body: Source) -> Written:
    """Create or replace a block blob from one request body."""
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)
    if not body.ended:
        await ctx.engine.read(target.scope, lambda tx: _check_early(tx, target, guard))
    expected = Checksums(md5=request.blob_content_md5 or request.content_md5, crc64=request.content_crc64)
    with ctx.activity.since(ctx.now()) as work:
        received = await receive_body(ctx, body, limit_for(request.version, PUT_BLOB_BYTES), expected)

        def make(tx: Transaction, container_id: int, tick: int) -> Blob:
            put_received(tx, tick, received)
            inline = received.inline is not None
            return block_blob(container_id, target.blob, request, tick, size=received.size, inline=inline, md5=received.md5)

        def commit(tx: Transaction) -> Written:
            """The guard checks again: others may have written while the body arrived."""
            blob = put_in_place(tx, target, guard, BlobType.BLOCK, lambda *new: make(tx, *new))
            return Written(etag=blob.etag, content_md5=received.md5, content_crc64=received.crc64, version_id=blob.version_id)

        written = await write_received(ctx, target, work, received, commit)
    return as_told(request.version, received.md5, written)


def _check_early(tx: Transaction, target: BlobName, guard: Guard) -> None:
    """A no that need not wait for the body."""
    _, previous = current_blob(tx, target)
    guard.check(previous, tx.now)
    check_online(previous, tx.now)


async def put_block(ctx: Context, target: BlobName, request: PutBlock, guard: Guard, body: Source) -> Written:
    """Stage a block. The blob's committed side is untouched; a blob that does not exist yet stays invisible."""
    check_blob_name(target.blob)
    if not body.ended:
        await ctx.engine.read(target.scope, lambda tx: _check_staging(tx, target, request, guard))
    expected = Checksums(md5=request.content_md5, crc64=request.content_crc64)
    with ctx.activity.since(ctx.now()) as work:
        received = await receive_body(ctx, body, limit_for(request.version, PUT_BLOCK_BYTES), expected)
        if not received.size:
            raise invalid_header("Content-Length", "0")  # in chunks, so that only now it is known

        def commit(tx: Transaction) -> Written:
            staged = _check_staging(tx, target, request, guard)
            tick = tx.tick()
            former = tx.get(Block, staged.container_id, target.blob, request.block_id)
            if former is not None:
                drop_block(tx, former)
            put_received(tx, tick, received, layout=False)
            tx.put(
                Block(
                    container_id=staged.container_id,
                    name=target.blob,
                    block_id=request.block_id,
                    size=received.size,
                    content_id=tick,
                    extent=received.extent,
                )
            )
            tx.put(replace(staged, count=staged.count + (former is None), touched=tx.now))
            if request.content_md5 is not None:
                return Written(etag=tick, content_md5=received.md5)
            return Written(etag=tick, content_crc64=received.crc64)

        written = await write_received(ctx, target, work, received, commit)
    return as_told(request.version, received.md5, written)


def _check_staging(tx: Transaction, target: BlobName, request: PutBlock, guard: Guard) -> StagedBlob:
    container, blob, staged = current_and_staged(tx, target)
    require_block_blob(blob)
    guard.check(blob, tx.now)
    check_online(blob, tx.now)
    length = len(request.block_id)
    if staged is None:
        return StagedBlob(container_id=container.id, name=target.blob, count=0, id_length=length, touched=tx.now)
    if staged.id_length != length:
        raise StorageError(Code.InvalidBlobOrBlock)
    if staged.count >= MAX_UNCOMMITTED_BLOCKS:
        raise StorageError(Code.BlockCountExceedsLimit)
    return staged


def block_blob(
    container_id: int, name: str, request: BlobHeaders, tick: int, *, size: int, inline: bool, md5: bytes | None
) -> Blob:
    """A new block blob, its content under the same tick as its ETag."""
    return Blob(
        container_id=container_id,
        name=name,
        etag=tick,
        created=tick,
        blob_type=BlobType.BLOCK,
        size=size,
        content_id=tick,
        inline=inline,
        content_type=request.content_type or "application/octet-stream",
        content_encoding=request.content_encoding,
        content_language=request.content_language,
        content_disposition=request.content_disposition,
        cache_control=request.cache_control,
        content_md5=md5,
        metadata=request.metadata,
        tags=request.tags,
        tier=request.tier,
        tier_changed=tick if request.tier else None,
    )
