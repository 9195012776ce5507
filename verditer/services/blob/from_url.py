"""Put Blob, Put Block, Append Block and Put Page From URL: the operation of that name, with a body that is read from a source.
The checksums of the source are those of the body.

Put Blob From URL moves no bytes when the source is a block blob of this server and nobody wants them summed.
"""

import msgspec

from verditer.core.errors import Code, StorageError, missing_header
from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA, PUT_BLOB_BYTES, limit_for
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.append import AppendBlock, append_block
from verditer.services.blob.block import PutBlob, PutBlock, block_blob, put_blob, put_block
from verditer.services.blob.copy import CopyBlob, check_tags, taken_from
from verditer.services.blob.page import PutPages, put_pages
from verditer.services.blob.placing import put_in_place
from verditer.services.blob.sharing import Taken, attach
from verditer.services.blob.sources import CopySource, LocalSource, Range, opened
from verditer.services.context import Context

replace = msgspec.structs.replace
_HEADERS = ("content_type", "content_encoding", "content_language", "content_disposition", "cache_control")


class PutBlobFromUrl(PutBlob, frozen=True, kw_only=True):
    copy_properties: bool = True
    copy_tags: bool = False


class PutBlockFromUrl(PutBlock, frozen=True, kw_only=True):
    source_range: Range | None = None


class AppendBlockFromUrl(AppendBlock, frozen=True, kw_only=True):
    source_range: Range | None = None


class PutPagesFromUrl(PutPages, frozen=True, kw_only=True):
    source_range: Range | None = None


async def put_blob_from_url(ctx: Context, target: BlobName, request: PutBlobFromUrl, guard: Guard, source: CopySource) -> Written:
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)
    check_tags(request.tags, source, copy_tags=request.copy_tags)
    if isinstance(source, LocalSource) and request.content_md5 is None and request.blob_content_md5 is None:
        written = await _share(ctx, target, request, guard, source)
        if written is not None:
            return written
    async with opened(ctx, source) as body:
        _check_size(body.length, request)
        return await put_blob(ctx, target, _filled(request, body.blob), guard, body)


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
        raise missing_header("x-ms-source-range")
    async with opened(ctx, source, request.source_range) as body:
        return await put_pages(ctx, target, request, guard, body)


async def _share(ctx: Context, target: BlobName, request: PutBlobFromUrl, guard: Guard, source: LocalSource) -> Written | None:
    """None: the source is of another type, and its bytes have to be put together anew."""
    with ctx.activity.since(ctx.now()) as work:
        taken = await taken_from(ctx, source, CopyBlob())
        if taken.blob.blob_type is not BlobType.BLOCK:
            return None
        _check_size(taken.blob.size, request)

        def commit(tx: Transaction) -> Written:
            blob = put_in_place(tx, target, guard, BlobType.BLOCK, lambda *new: _shared(tx, target, request, taken, *new))
            return Written(etag=blob.etag, content_md5=blob.content_md5, version_id=blob.version_id)

        return await work.write(ctx.engine, target.scope, commit)


def _shared(tx: Transaction, target: BlobName, request: PutBlobFromUrl, taken: Taken, container_id: int, tick: int) -> Blob:
    filled = _filled(request, taken.blob)
    blob = block_blob(container_id, target.blob, filled, tick, size=0, inline=False, md5=taken.blob.content_md5)
    return replace(blob, **attach(tx, replace(taken, blocks=()), tick, target.scope))  # its block list is not part of it


def _filled(request: PutBlobFromUrl, source: Blob) -> PutBlobFromUrl:
    """What the request leaves out, the source fills in; its metadata it keeps to itself."""
    given = (
        {name: getattr(source, name) for name in _HEADERS if getattr(request, name) is None} if request.copy_properties else {}
    )
    return replace(request, **given, tags=source.tags if request.copy_tags else request.tags)


def _check_size(size: int | None, request: PutBlobFromUrl) -> None:
    limit = limit_for(request.version, PUT_BLOB_BYTES)
    if size is not None and size > limit:
        raise StorageError(Code.RequestBodyTooLarge, details={"MaxLimit": str(limit)})
