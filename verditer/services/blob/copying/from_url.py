"""Put Blob, Put Block, Append Block and Put Page From URL: the operation without "From URL", with a body that is read from a
source. The checksums of the request are those of the source.

Put Blob From URL moves no bytes when the source is a block blob of this server and the request has no checksum to verify.
"""

import msgspec

from verditer.core.errors import Code, Limit, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA, PUT_BLOB_BYTES, limit_for
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.copying.capture import CapturedBlob, capture_source
from verditer.services.blob.copying.copy import check_tags
from verditer.services.blob.encryption import shown_encryption
from verditer.services.blob.kinds.append import AppendBlock, append_block
from verditer.services.blob.kinds.block import PutBlob, PutBlock, block_blob, put_blob, put_block
from verditer.services.blob.kinds.page import PutPages, put_pages
from verditer.services.blob.new_blob import put_new_blob
from verditer.services.content.sharing import attach
from verditer.services.context import Context
from verditer.services.copying.sources import BlobSource, CopySource, opened
from verditer.services.outbound import SourceRange
from verditer.stream.digest import digest

replace = msgspec.structs.replace
_HEADERS = ("content_type", "content_encoding", "content_language", "content_disposition", "cache_control")


class PutBlobFromUrl(PutBlob, frozen=True, kw_only=True):
    copy_properties: bool = True
    copy_tags: bool = False


class PutBlockFromUrl(PutBlock, frozen=True, kw_only=True):
    source_range: SourceRange | None = None


class AppendBlockFromUrl(AppendBlock, frozen=True, kw_only=True):
    source_range: SourceRange | None = None


class PutPagesFromUrl(PutPages, frozen=True, kw_only=True):
    source_range: SourceRange | None = None


async def put_blob_from_url(ctx: Context, target: BlobName, request: PutBlobFromUrl, guard: Guard, source: CopySource) -> Written:
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)
    check_tags(request.tags, source, copy_tags=request.copy_tags)
    shares = request.encryption_key is None and request.content_md5 is None and request.blob_content_md5 is None
    if shares and isinstance(source, BlobSource) and source.encryption.is_plain:
        written = await _share(ctx, target, request, guard, source)
        if written is not None:
            return written
    async with opened(ctx, source) as body:
        _check_size(body.length, request)
        written = await put_blob(ctx, target, _filled(request, body.blob), guard, body)
    return written.as_part(request.version, md5_sent=request.content_md5 is not None)


async def put_block_from_url(
    ctx: Context, target: BlobName, request: PutBlockFromUrl, guard: Guard, source: CopySource
) -> Written:
    async with opened(ctx, source, request.source_range) as body:
        return await put_block(ctx, target, request, guard, body)


async def append_block_from_url(
    ctx: Context, target: BlobName, request: AppendBlockFromUrl, guard: Guard, source: CopySource
) -> Written:
    async with opened(ctx, source, request.source_range) as body:
        return await append_block(ctx, target, request, guard, body)


async def put_pages_from_url(
    ctx: Context, target: BlobName, request: PutPagesFromUrl, guard: Guard, source: CopySource
) -> Written:
    if request.source_range is None:
        raise StorageError(Code.MissingRequiredHeader, field="source_range")
    async with opened(ctx, source, request.source_range) as body:
        return await put_pages(ctx, target, request, guard, body)


async def _share(ctx: Context, target: BlobName, request: PutBlobFromUrl, guard: Guard, source: BlobSource) -> Written | None:
    """Share the content of the source. None: the source is not a block blob, so its bytes have to be copied."""
    with ctx.activity.begin(ctx.now()) as work:
        captured = await capture_source(ctx, source)
        if captured.blob.blob_type is not BlobType.BLOCK:
            return None
        _check_size(captured.blob.size, request)

        def commit(tx: Transaction) -> Written:
            blob = put_new_blob(
                tx,
                target,
                guard,
                BlobType.BLOCK,
                lambda *new: _shared(tx, target, request, captured, *new),
                request=request,
            )
            return Written(
                etag=blob.etag,
                content_crc64=_crc64(captured),
                version_id=blob.version_id,
                encryption=shown_encryption(blob),
            )

        return await work.write(ctx.engine, target.scope, commit)


def _crc64(captured: CapturedBlob) -> bytes | None:
    """Of a content that is in memory. That of a larger one, whose bytes were not read, is left out."""
    content = captured.content
    return digest(content.data)[1] if content.state.inline else None


def _shared(
    tx: Transaction, target: BlobName, request: PutBlobFromUrl, captured: CapturedBlob, container_id: int, tick: int
) -> Blob:
    filled = _filled(request, captured.blob)
    blob = block_blob(container_id, target.blob, filled, tick, size=0, inline=False, md5=captured.blob.content_md5)
    content = replace(captured.content, blocks=())  # the block list is not copied
    return replace(blob, **attach(tx, content, tick, target.scope).fields())


def _filled(request: PutBlobFromUrl, source: Blob) -> PutBlobFromUrl:
    """Properties that the request omits are those of the source. Metadata is not copied."""
    given = (
        {name: getattr(source, name) for name in _HEADERS if getattr(request, name) is None} if request.copy_properties else {}
    )
    return replace(request, **given, tags=source.tags if request.copy_tags else request.tags)


def _check_size(size: int | None, request: PutBlobFromUrl) -> None:
    limit = limit_for(request.version, PUT_BLOB_BYTES)
    if size is not None and size > limit:
        raise StorageError(Code.RequestBodyTooLarge, details=Limit(limit))
