"""Block blobs: Put Blob, and blocks that are staged one by one and then committed as a list."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA, MAX_UNCOMMITTED_BLOCKS, PUT_BLOB_BYTES, PUT_BLOCK_BYTES, limit_for
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType, Block, StagedBlob
from verditer.core.records.container import Container
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.current import current_and_staged, current_blob, require_block_blob
from verditer.services.blob.encryption import EncryptionRequest, chosen_encryption, keyed, shown_encryption
from verditer.services.blob.expiry import LastingRequest
from verditer.services.blob.new_blob import put_new_blob
from verditer.services.content.layout import put_inline
from verditer.services.content.receiving import put_received, receive_body, write_received
from verditer.services.context import Context
from verditer.services.removal import remove
from verditer.services.settings import settings_of
from verditer.stream.digest import Checksums
from verditer.stream.intake import Source

replace = msgspec.structs.replace


class NewBlobProperties(LastingRequest, frozen=True, kw_only=True):
    """The properties, metadata, tags and tier that a client gives a new blob."""

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    blob_content_md5: bytes | None = None
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    tags: dict[str, str] | None = None
    tier: str | None = None


class PutBlob(NewBlobProperties, frozen=True, kw_only=True):
    version: str
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


class PutBlock(EncryptionRequest, frozen=True, kw_only=True):
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
    ctx = keyed(ctx, request)
    expected = Checksums(md5=request.blob_content_md5 or request.content_md5, crc64=request.content_crc64)
    with ctx.activity.begin(ctx.now()) as work:
        received = await receive_body(ctx, body, limit_for(request.version, PUT_BLOB_BYTES), expected)

        def build(tx: Transaction, container_id: int, tick: int) -> Blob:
            put_received(tx, tick, received)
            inline = received.inline is not None
            return block_blob(container_id, target.blob, request, tick, size=received.size, inline=inline, md5=received.md5)

        def commit(tx: Transaction) -> Written:
            """The guard is checked again: the blob may have changed while the body arrived."""
            blob = put_new_blob(tx, target, guard, BlobType.BLOCK, lambda *new: build(tx, *new), request=request)
            return Written(
                etag=blob.etag,
                content_md5=received.md5,
                content_crc64=received.crc64,
                version_id=blob.version_id,
                encryption=shown_encryption(blob),
            )

        written = await write_received(ctx, target.scope, work, received, commit)
    return written.for_version(request.version, received.md5)


def _check_early(tx: Transaction, target: BlobName, guard: Guard) -> None:
    """Refuse the request before its body is received."""
    _, previous = current_blob(tx, target)
    guard.check(previous, tx.now)
    check_online(previous, tx.now)


async def put_block(ctx: Context, target: BlobName, request: PutBlock, guard: Guard, body: Source) -> Written:
    """Stage a block. The committed blob does not change; a blob without committed blocks remains invisible."""
    check_blob_name(target.blob)
    if not body.ended:
        await ctx.engine.read(target.scope, lambda tx: _check_staging(tx, target, request, guard))
    ctx = keyed(ctx, request)
    expected = Checksums(md5=request.content_md5, crc64=request.content_crc64)
    with ctx.activity.begin(ctx.now()) as work:
        received = await receive_body(ctx, body, limit_for(request.version, PUT_BLOCK_BYTES), expected)
        if not received.size:
            raise StorageError(Code.InvalidHeaderValue, field="content_length", value=0)  # sent in chunks: known only now

        def commit(tx: Transaction) -> Written:
            container, staged = _check_staging(tx, target, request, guard)
            chosen = None
            if container.encryption is not None or not request.is_plain:
                chosen = chosen_encryption(container, request, settings_of(tx, target.account).encryption_scopes)
            tick = tx.tick()
            former = tx.get(Block, staged.container_id, target.blob, request.block_id)
            if former is not None:
                remove(tx, former)
            if received.inline is not None:
                put_inline(tx, tick, received.inline)
            tx.put(
                Block(
                    container_id=staged.container_id,
                    name=target.blob,
                    block_id=request.block_id,
                    size=received.size,
                    content_id=tick,
                    extent=received.extent,
                    key_sha256=request.encryption_key_sha256,
                )
            )
            tx.put(replace(staged, count=staged.count + (former is None), touched=tx.now))
            return Written(etag=tick, content_md5=received.md5, content_crc64=received.crc64, encryption=chosen)

        written = await write_received(ctx, target.scope, work, received, commit)
    return written.as_part(request.version, md5_sent=request.content_md5 is not None)


def _check_staging(tx: Transaction, target: BlobName, request: PutBlock, guard: Guard) -> tuple[Container, StagedBlob]:
    container, blob, staged = current_and_staged(tx, target)
    require_block_blob(blob)
    guard.check(blob, tx.now)
    check_online(blob, tx.now)
    length = len(request.block_id)
    if staged is None:
        staged = StagedBlob(container_id=container.id, name=target.blob, count=0, id_length=length, touched=tx.now)
    if staged.id_length != length:
        raise StorageError(Code.InvalidBlobOrBlock)
    if staged.count >= MAX_UNCOMMITTED_BLOCKS:
        raise StorageError(Code.BlockCountExceedsLimit)
    return container, staged


def block_blob(
    container_id: int, name: str, request: NewBlobProperties, tick: int, *, size: int, inline: bool, md5: bytes | None
) -> Blob:
    """The record of a new block blob. `tick` is its ETag and its content id."""
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
